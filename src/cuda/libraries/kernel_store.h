// SPDX-License-Identifier: Apache-2.0
// Kernels that were compiled when a program ran, kept on disk for the next one: in
// $XDG_CACHE_HOME/crossover-kernels, or ~/.cache/crossover-kernels. A kernel is code: nobody else
// may read or write there, or nothing is kept and nothing taken.
#pragma once

#include <string>

namespace crossover::cuda {

/// The code that was kept for that key; empty where there is none. `key`: all that the code is made
/// from.
std::string kept_kernel(const std::string& key);

/// What can't be written is compiled again the next time.
void keep_kernel(const std::string& key, const std::string& code);

}  // namespace crossover::cuda
