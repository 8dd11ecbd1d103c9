// SPDX-License-Identifier: Apache-2.0
// The variables that kernels declare __shared__, the dynamic shared memory of a launch, and
// asynchronous copies of a block's threads into them.
#pragma once

#include <string>

namespace cuda_host {

/// Fills them with garbage, as a block finds them, and makes that of the launch anew, for each of
/// so many blocks that run at once.
void spoil_shared_memory(unsigned dynamic_bytes, unsigned blocks = 1);

/// Fills that of the launch with garbage in one of those blocks.
void spoil_block(unsigned block);

/// Where `of`, which is in the dynamic shared memory of one block, is in that of another; null
/// where it is not in it.
void* dynamic_shared_of(void* of, unsigned block, unsigned other);

/// Whether it is in the dynamic shared memory of a block that is not the one that runs.
bool is_shared_of_another(const void* address);

/// Before a block's threads run.
void forget_async_copies();
/// After they have: the empty string, or that a copy was never waited for.
std::string check_async_copies();

}  // namespace cuda_host
