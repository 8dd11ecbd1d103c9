// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies of a block's threads into shared memory.
#pragma once

#include <string>

namespace cuda_host {

/// Before a block's threads run.
void forget_async_copies();
/// After they have: the empty string, or that a copy was never waited for.
std::string check_async_copies();

}  // namespace cuda_host
