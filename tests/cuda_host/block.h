// SPDX-License-Identifier: Apache-2.0
// One block of a kernel, or all of a cooperative launch: threads take turns, and change only where
// they wait for each other.
#pragma once

#include <functional>
#include <string>

namespace cuda_host {

/// Runs all threads of a block, in an order of chance. The empty string, or what they did wrong.
std::string run_block(const std::function<void()>& thread, unsigned threads);

/// The same with all blocks of a cooperative launch, which wait for each other but have no shared
/// memory, barriers within a block or asynchronous copies.
std::string run_blocks(const std::function<void()>& thread, unsigned blocks, unsigned threads);

}  // namespace cuda_host
