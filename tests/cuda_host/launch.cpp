// SPDX-License-Identifier: Apache-2.0
// Kernels: block after block in an order of chance, on shared memory full of garbage.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "block.h"
#include "memory.h"
#include "streams.h"

// Made by the linker where a kernel declares shared memory: the section's borders.
extern "C" {
extern volatile std::uint64_t __start_cuda_host_shared[]  // NOLINT(bugprone-reserved-identifier)
    __attribute__((weak));
extern volatile std::uint64_t __stop_cuda_host_shared[]  // NOLINT(bugprone-reserved-identifier)
    __attribute__((weak));
}

namespace cuda_host {
namespace {

/// Redzones between the variables are written as well.
__attribute__((no_sanitize("address", "undefined"))) void spoil_shared_memory() {
  for (volatile std::uint64_t* word = __start_cuda_host_shared; word < __stop_cuda_host_shared;
       ++word) {
    *word = ~std::uint64_t{0};
  }
}

void run_grid(Size size, const Kernel& kernel) {
  std::vector<unsigned> blocks(size.blocks);
  std::iota(blocks.begin(), blocks.end(), 0U);
  std::shuffle(blocks.begin(), blocks.end(), state().random);
  gridDim = dim3(size.blocks);
  blockDim = dim3(size.threads);
  for (const unsigned block : blocks) {
    spoil_shared_memory();
    blockIdx = {block, 0, 0};
    if (const std::string error = run_block(kernel.thread, size.threads); !error.empty()) {
      violation("in a kernel, " + error);
      fail_context(cudaErrorLaunchFailure);
      return;
    }
  }
}

}  // namespace

cudaError_t launch(Size size, Kernel kernel, cudaStream_t handle) {
  if (const cudaError_t error = enter("kernel")) {
    return result(error);
  }
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) {
    return result(cudaErrorInvalidResourceHandle);
  }
  if (!state().device.has_code) {
    return result(cudaErrorNoKernelImageForDevice);
  }
  constexpr unsigned most_threads = 1024;
  if (size.blocks == 0 || size.threads == 0 || size.threads > most_threads ||
      size.blocks > 2147483647U) {
    return result(cudaErrorInvalidConfiguration);
  }
  for (const void* pointer : kernel.pointers) {
    if (pointer != nullptr && where_is(pointer) == Where::pageable) {
      violation("a kernel gets the address " + hex(pointer) +
                ", which is in no device or pinned memory");
      fail_context(cudaErrorIllegalAddress);
      return cudaSuccess;  // as on a device: a later call tells
    }
  }
  Work work{.what = "kernel", .run = {}, .blocks = blocks_of(kernel.words)};
  work.run = [size, kernel = std::move(kernel)] { run_grid(size, kernel); };
  return result(enqueue(*stream, std::move(work)));
}

}  // namespace cuda_host
