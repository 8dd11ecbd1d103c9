// SPDX-License-Identifier: Apache-2.0
// Allocation, copies and fills. Which copies wait for what follows the manual's chapter "API
// synchronization behavior".
#include <cstring>
#include <vector>

#include "memory.h"
#include "streams.h"

using namespace cuda_host;

namespace {

cudaError_t allocate_for(const char* function, Where where, void** memory, std::size_t bytes) {
  *memory = nullptr;
  return call(function, [&] {
    if (state().device.busy != cudaSuccess) {
      return state().device.busy;
    }
    if (const cudaError_t error = unsafe_in_capture()) {
      return error;
    }
    if (bytes == 0) {
      return cudaSuccess;
    }
    *memory = allocate(where, bytes);
    if (*memory == nullptr) {
      return cudaErrorMemoryAllocation;
    }
    ++(where == Where::device ? state().live.device_blocks : state().live.pinned_blocks);
    return cudaSuccess;
  });
}

cudaError_t release_for(const char* function, Where where, void* memory) {
  const cudaError_t error = enter(function);
  if (memory == nullptr) {
    return result(error);
  }
  // Behind the context's end nothing runs, and nothing could be waited for.
  const std::string user = state().sticky == cudaSuccess ? user_of(memory) : "";
  if (!user.empty()) {
    violation(std::string(function) + " of memory that a " + user + " in the queue uses");
  }
  if (!release(where, memory)) {
    violation(std::string(function) + " of " + hex(memory) + ", where no block begins");
    return result(error != cudaSuccess ? error : cudaErrorInvalidValue);
  }
  --(where == Where::device ? state().live.device_blocks : state().live.pinned_blocks);
  const cudaError_t captured = unsafe_in_capture();
  return result(error != cudaSuccess ? error : captured);
}

/// Whether the direction is the one that the addresses have.
bool fits(cudaMemcpyKind kind, bool to_device, bool from_device) {
  return to_device == (kind != cudaMemcpyDeviceToHost) &&
         from_device == (kind != cudaMemcpyHostToDevice);
}

struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  cudaMemcpyKind kind = cudaMemcpyDeviceToDevice;

  [[nodiscard]] Where to_where() const { return where_is(to); }
  [[nodiscard]] Where from_where() const { return where_is(from); }
  [[nodiscard]] bool pageable_source() const { return from_where() == Where::pageable; }
  [[nodiscard]] bool pageable_target() const { return to_where() == Where::pageable; }

  [[nodiscard]] cudaError_t check() const {
    if (!is_inside(to, bytes) || !is_inside(from, bytes)) {
      violation("a copy of " + std::to_string(bytes) + " bytes runs over the end of its block");
      return cudaErrorInvalidValue;
    }
    if (!fits(kind, to_where() == Where::device, from_where() == Where::device)) {
      violation("a copy in another direction than its addresses say");
      return cudaErrorInvalidMemcpyDirection;
    }
    return cudaSuccess;
  }

  [[nodiscard]] Work work() const {
    return {.what = "copy of " + std::to_string(bytes) + " bytes",
            .run = [*this] { std::memcpy(to, from, bytes); },
            .blocks = blocks_of({to, from}),
            .loops = !pageable_source() && !pageable_target()};
  }

  /// The same, of what the source holds now.
  [[nodiscard]] Work staged() const {
    const auto* first = static_cast<const std::byte*>(from);
    Work same = work();
    same.run = [target = to, staged = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(target, staged.data(), staged.size());
    };
    return same;
  }
};

cudaError_t copy(CUstream_st& stream, const Copy& what) {
  if (what.bytes == 0) {
    return cudaSuccess;
  }
  if (const cudaError_t error = what.check()) {
    return error;
  }
  if (stream.capture) {  // a graph reads pageable memory, too, when it runs
    return enqueue(stream, what.work());
  }
  if (what.pageable_source() && !what.pageable_target()) {
    return enqueue(stream, what.staged());  // and may return before the device has it
  }
  if (const cudaError_t error = enqueue(stream, what.work())) {
    return error;
  }
  if (what.pageable_target()) {
    run_until(stream.last);
  }
  return state().sticky;
}

cudaError_t fill(CUstream_st& stream, void* memory, int value, std::size_t bytes) {
  if (bytes == 0) {
    return cudaSuccess;
  }
  if (where_is(memory) == Where::pageable || !is_inside(memory, bytes)) {
    violation("a fill of " + std::to_string(bytes) + " bytes outside of device memory");
    return cudaErrorInvalidValue;
  }
  return enqueue(stream, {.what = "fill of " + std::to_string(bytes) + " bytes",
                          .run = [=] { fill_bytes(memory, value, bytes); },
                          .blocks = blocks_of({memory})});
}

}  // namespace

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return allocate_for("cudaMalloc", Where::device, memory, bytes);
}

cudaError_t cudaFree(void* memory) { return release_for("cudaFree", Where::device, memory); }

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned /*flags*/) {
  return allocate_for("cudaHostAlloc", Where::pinned, memory, bytes);
}

cudaError_t cudaFreeHost(void* memory) {
  return release_for("cudaFreeHost", Where::pinned, memory);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call("cudaMemGetInfo", [&] {
    if (state().device.busy != cudaSuccess) {
      return state().device.busy;
    }
    *free = free_device_bytes();
    *total = state().device.bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  return call("cudaMemcpyAsync", [&] {
    CUstream_st* stream = find_stream(handle);
    if (stream == nullptr) {
      return cudaErrorInvalidResourceHandle;
    }
    return copy(*stream, {to, from, bytes, kind});
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t handle) {
  return call("cudaMemsetAsync", [&] {
    CUstream_st* stream = find_stream(handle);
    if (stream == nullptr) {
      return cudaErrorInvalidResourceHandle;
    }
    return fill(*stream, memory, value, bytes);
  });
}
