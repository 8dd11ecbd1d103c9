// SPDX-License-Identifier: Apache-2.0
// What kernels take of CUDA's header of that name: copies into shared memory that happen at any
// time until the thread waits for them.
#pragma once

#include <cstddef>

namespace cuda_host {

void copy_async(void* shared, const void* global, std::size_t bytes);
void commit_copies();
void wait_for_copies(std::size_t but_groups);

}  // namespace cuda_host

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): these are CUDA's names
inline void __pipeline_memcpy_async(void* shared, const void* global, std::size_t bytes) {
  cuda_host::copy_async(shared, global, bytes);
}
inline void __pipeline_commit() { cuda_host::commit_copies(); }
inline void __pipeline_wait_prior(std::size_t groups) { cuda_host::wait_for_copies(groups); }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
