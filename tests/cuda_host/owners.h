// SPDX-License-Identifier: Apache-2.0
// For the tests of the emulation itself: streams, events and memory that are given back.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cuda_host.h"
#include "memory.h"
#include "queue.h"

namespace cuda_host::test {

/// Writes its digit behind those that are there.
inline void digit(int* number, int value) { *number = *number * 10 + value; }

/// What the device has been asked for is done, or has failed.
inline cudaError_t synchronize() {
  run_everything();
  return cudaStreamSynchronize(nullptr);
}

struct Stream {
  cudaStream_t handle = nullptr;

  Stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), cudaSuccess); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    cudaStreamSynchronize(handle);
    cudaStreamDestroy(handle);
  }
  operator cudaStream_t() const { return handle; }  // NOLINT(google-explicit-constructor)
};

struct Event {
  cudaEvent_t handle = nullptr;

  explicit Event(bool timed = false) {
    EXPECT_EQ(timed ? cudaEventCreate(&handle)
                    : cudaEventCreateWithFlags(&handle, cudaEventDisableTiming),
              cudaSuccess);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(handle); }
  operator cudaEvent_t() const { return handle; }  // NOLINT(google-explicit-constructor)
};

/// Numbers in device memory.
template <class T>
struct OnDevice {
  T* data = nullptr;
  std::size_t bytes;

  explicit OnDevice(const std::vector<T>& values) : bytes(values.size() * sizeof(T)) {
    EXPECT_EQ(cudaMalloc(&data, bytes), cudaSuccess);
    const Opened opened;
    std::memcpy(data, values.data(), bytes);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data); }

  /// What it holds behind the default stream: no other one is waited for.
  [[nodiscard]] std::vector<T> values() const {
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    std::vector<T> copy(bytes / sizeof(T));
    const Opened opened;
    std::memcpy(copy.data(), data, bytes);
    return copy;
  }
};

/// Numbers in page-locked memory.
template <class T>
struct Pinned {
  T* data = nullptr;

  explicit Pinned(std::size_t count) {
    EXPECT_EQ(cudaHostAlloc(&data, count * sizeof(T), cudaHostAllocDefault), cudaSuccess);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { cudaFreeHost(data); }
};

template <class... P, class... A>
cudaError_t run(void (*kernel)(P...), Size size, cudaStream_t stream, A... arguments) {
  return launch(size, kernel, std::tuple<P...>(arguments...), stream);
}

}  // namespace cuda_host::test
