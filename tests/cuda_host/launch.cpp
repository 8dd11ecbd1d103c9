// SPDX-License-Identifier: Apache-2.0
// Kernels: block after block in an order of chance, on shared memory full of garbage.
#include <algorithm>
#include <numeric>

#include "apart.h"
#include "async_copies.h"
#include "block.h"
#include "memory.h"
#include "shared_memory.h"
#include "streams.h"

namespace cuda_host {
namespace {

void run_grid(Size size, const Kernel& kernel, const std::vector<const void*>& memory) {
  std::vector<unsigned> blocks(size.blocks);
  std::iota(blocks.begin(), blocks.end(), 0U);
  std::shuffle(blocks.begin(), blocks.end(), state().random);
  gridDim = dim3(size.blocks);
  blockDim = dim3(size.threads);
  const auto run = [&](unsigned block) {
    spoil_shared_memory(size.shared_bytes);
    forget_async_copies();
    blockIdx = {block, 0, 0};
    std::string error = run_block(kernel.thread, size.threads);
    return error.empty() ? check_async_copies() : error;
  };
  std::string error;
  if (state().device.blocks_apart && size.blocks > 1) {
    error = run_apart(blocks, memory, run);
  } else {
    for (std::size_t i = 0; i < blocks.size() && error.empty(); ++i) {
      error = run(blocks[i]);
    }
  }
  if (!error.empty()) {
    violation("in a kernel, " + error);
    fail_context(cudaErrorLaunchFailure);
  }
}

}  // namespace

cudaError_t allow_shared_bytes(const void* kernel, unsigned bytes) {
  if (const cudaError_t error = enter("cudaFuncSetAttribute")) {
    return result(error);
  }
  if (bytes > state().device.shared_bytes) {
    return result(cudaErrorInvalidValue);
  }
  state().allowed_shared_bytes[kernel] = bytes;
  return cudaSuccess;
}

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
  const auto most_threads = static_cast<unsigned>(state().device.threads);
  if (size.blocks == 0 || size.threads == 0 || size.threads > most_threads ||
      size.blocks > 2147483647U) {
    return result(cudaErrorInvalidConfiguration);
  }
  const auto allowed = state().allowed_shared_bytes.find(kernel.function);
  if (size.shared_bytes > (allowed == state().allowed_shared_bytes.end()
                               ? shared_bytes_without_consent
                               : std::max(allowed->second, shared_bytes_without_consent))) {
    return result(cudaErrorInvalidValue);
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
  work.run = [size, kernel = std::move(kernel), memory = work.blocks] {
    run_grid(size, kernel, memory);
  };
  return result(enqueue(*stream, std::move(work)));
}

}  // namespace cuda_host
