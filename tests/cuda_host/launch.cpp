// SPDX-License-Identifier: Apache-2.0
// Kernels: block after block in an order of chance, on shared memory full of garbage.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "apart.h"
#include "block.h"
#include "fences.h"
#include "memory.h"
#include "shared_memory.h"
#include "streams.h"

namespace cuda_host {
namespace {

void end_kernel(const std::string& error) {
  if (!error.empty()) {
    violation("in a kernel, " + error);
    fail_context(cudaErrorLaunchFailure);
  }
}

/// Of all arguments, which lie anywhere.
std::vector<const void*> words_of(const Call& call) {
  std::vector<const void*> words;
  for (const Argument& argument : call.arguments) {
    for (std::size_t at = 0; at + sizeof(void*) <= argument.bytes; at += sizeof(void*)) {
      std::memcpy(&words.emplace_back(), static_cast<const char*>(argument.at) + at, sizeof(void*));
    }
  }
  return words;
}

/// `forgets`: all rows for the first one.
void run_grid(Size size, const std::function<void()>& thread,
              const std::vector<const void*>& memory, bool forgets) {
  const unsigned groups_of_row = size.blocks / std::max(size.cluster_blocks, 1U);
  std::vector<unsigned> groups(std::size_t{groups_of_row} * size.rows);
  std::iota(groups.begin(), groups.end(), 0U);
  std::shuffle(groups.begin(), groups.end(), state().random);
  gridDim = dim3(size.blocks, size.rows);
  blockDim = dim3(size.threads);
  if (size.cooperative) {
    spoil_shared_memory(size.shared_bytes);
    end_kernel(run_group(thread, {Group::Kind::grid, 0, size.blocks, size.threads}));
    return;
  }
  const bool is_cluster = size.cluster_blocks > 0;
  const unsigned together = std::max(size.cluster_blocks, 1U);
  const auto run = [&](unsigned group) {
    spoil_shared_memory(size.shared_bytes, together);
    forget_async_copies();
    std::string error = run_group(thread, {is_cluster ? Group::Kind::cluster : Group::Kind::block,
                                           group % groups_of_row * together, together, size.threads,
                                           forgets ? 0 : group / groups_of_row});
    return error.empty() ? check_async_copies() : error;
  };
  std::string error;
  if (state().device.blocks_apart && groups.size() > 1) {
    error = run_apart(groups, memory, run);
  } else {
    for (std::size_t i = 0; i < groups.size() && error.empty(); ++i) {
      error = run(groups[i]);
    }
  }
  end_kernel(error);
}

/// Of a kernel's launch, too.
bool allows_shared_bytes(const void* kernel, unsigned bytes) {
  const auto allowed = state().allowed_shared_bytes.find(kernel);
  return bytes <= (allowed == state().allowed_shared_bytes.end()
                       ? shared_bytes_without_consent
                       : std::max(allowed->second, shared_bytes_without_consent));
}

/// That the device has, whether or not it finds room for them.
bool is_cluster(Size size) {
  constexpr unsigned portable = 8;
  return state().device.major >= 9 && size.cluster_blocks <= portable &&
         size.blocks % size.cluster_blocks == 0;
}

}  // namespace

cudaError_t allow_shared_bytes(const void* kernel, unsigned bytes) {
  return call("cudaFuncSetAttribute", [&] {
    if (bytes > state().device.shared_bytes) {
      return cudaErrorInvalidValue;
    }
    state().allowed_shared_bytes[kernel] = bytes;
    return cudaSuccess;
  });
}

cudaError_t active_clusters(int* clusters, Size size, const void* kernel) {
  return call("cudaOccupancyMaxActiveClusters", [&] {
    if (size.cluster_blocks == 0 || !is_cluster(size)) {
      return cudaErrorInvalidClusterSize;
    }
    const bool fits = size.cluster_blocks <= state().device.cluster_blocks &&
                      size.threads <= static_cast<unsigned>(state().device.threads) &&
                      allows_shared_bytes(kernel, size.shared_bytes);
    *clusters =
        fits ? std::max(1, state().device.multiprocessors / static_cast<int>(size.cluster_blocks))
             : 0;
    return cudaSuccess;
  });
}

cudaError_t launch(Size size, const Call& kernel, cudaStream_t handle) {
  return call("kernel", [&] {
    CUstream_st* stream = find_stream(handle);
    if (stream == nullptr) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!state().device.has_code) {
      return cudaErrorNoKernelImageForDevice;
    }
    const auto most_threads = static_cast<unsigned>(state().device.threads);
    if (size.blocks == 0 || size.threads == 0 || size.threads > most_threads ||
        size.blocks > 2147483647U || size.rows == 0 || size.rows > 65535U) {
      return cudaErrorInvalidConfiguration;
    }
    if (size.cooperative && size.blocks > static_cast<unsigned>(state().device.multiprocessors)) {
      return cudaErrorCooperativeLaunchTooLarge;
    }
    if (size.cluster_blocks > 0 &&
        (!is_cluster(size) || size.cluster_blocks > state().device.cluster_blocks)) {
      return cudaErrorInvalidClusterSize;
    }
    if (!allows_shared_bytes(kernel.function, size.shared_bytes)) {
      return cudaErrorInvalidValue;
    }
    for (const Argument& argument : kernel.arguments) {
      if (!argument.is_pointer) {
        continue;
      }
      const void* pointer = nullptr;
      std::memcpy(&pointer, argument.at, sizeof(pointer));
      if (pointer != nullptr && where_is(pointer) == Where::pageable) {
        violation("a kernel gets the address " + hex(pointer) +
                  ", which is in no device or pinned memory");
        fail_context(cudaErrorIllegalAddress);
        return cudaSuccess;  // as on a device: a later call tells
      }
    }
    const std::vector<const void*> words = words_of(kernel);
    Work work{.what = "kernel", .run = {}, .blocks = blocks_of(words)};
    if (declared() != nullptr) {
      work.declared = reached(*declared(), words);
    }
    const auto* bytes = static_cast<const std::byte*>(kernel.bound);
    const bool forgets = size.rows > 1 && is_forgetful();
    work.run = [size, forgets, thread = kernel.thread,
                bound = std::vector(bytes, bytes + kernel.bytes), memory = work.blocks] {
      run_grid(
          size, [&] { thread(bound.data()); }, memory, forgets);
    };
    return enqueue(*stream, std::move(work));
  });
}

}  // namespace cuda_host
