// SPDX-License-Identifier: Apache-2.0
// One block of a kernel: its threads take turns, and change only where they wait for each other.
#pragma once

#include <functional>
#include <string>

namespace cuda_host {

/// Runs all threads of a block, in an order of chance. The empty string, or what they did wrong.
std::string run_block(const std::function<void()>& thread, unsigned threads);

}  // namespace cuda_host
