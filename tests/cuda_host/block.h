// SPDX-License-Identifier: Apache-2.0
// One block of a kernel, a cluster or all of a cooperative launch: threads take turns, and change
// only where they wait for each other.
#pragma once

#include <functional>
#include <string>

namespace cuda_host {

/// Blocks that run at once.
struct Group {
  enum class Kind { block, cluster, grid };
  Kind kind = Kind::block;
  unsigned first = 0, blocks = 1;  ///< of the grid's row
  unsigned threads = 1;            ///< of a block
  unsigned row = 0;
};

/// Runs all threads of a group, in an order of chance. The empty string, or what they did wrong.
/// The blocks of a cooperative launch have no shared memory, barriers of a block or asynchronous
/// copies. What a cluster's block has in shared memory is garbage until its first thread starts,
/// and again when its last one has ended.
std::string run_group(const std::function<void()>& thread, const Group& group);

/// Which block of its cluster the thread belongs to that runs; 0 where there is none.
unsigned cluster_rank();

}  // namespace cuda_host
