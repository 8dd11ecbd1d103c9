// SPDX-License-Identifier: Apache-2.0
// Whether the blocks of a kernel keep out of each other's way, which running them one after another
// does not show.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace cuda_host {

/// Runs each block by itself on the memory as the launch found it, and then all of them one after
/// another, which is what remains. `run(block)` gives what a block did wrong, or nothing. Returns
/// that, or which blocks wrote to one address, or that one reads what another writes; else nothing.
std::string run_apart(const std::vector<unsigned>& blocks, const std::vector<const void*>& memory,
                      const std::function<std::string(unsigned block)>& run);

}  // namespace cuda_host
