// SPDX-License-Identifier: Apache-2.0
// CUDA's part of crossover::two, which two.h includes where nvcc compiles, or CROSSOVER_TWO_CUDA is
// defined: the first GPU, and its memory.
#pragma once

#include <cuda_runtime_api.h>

#include <any>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "crossover/two.h"

namespace crossover::two {

/// Throws DeviceLost with what CUDA says.
inline void require(cudaError_t error) {
  if (error != cudaSuccess) {
    throw DeviceLost(std::string("CUDA: ") + cudaGetErrorString(error));
  }
}

/// Of a library of CUDA's, "cuFFT", whose calls return 0 or the number of what went wrong.
template <class Status>
void require(Status status, const char* library) {
  if (const auto number = static_cast<int>(status); number != 0) {
    throw std::runtime_error(std::string(library) + ": error " + std::to_string(number));
  }
}

namespace detail {

struct CudaEvent {
  CudaEvent() { require(cudaEventCreate(&event)); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() { cudaEventDestroy(event); }
  cudaEvent_t event{};
};

}  // namespace detail

/// Of what `call` does in all streams but those that were made with cudaStreamNonBlocking.
inline double cuda_seconds(const std::function<void()>& call) {
  const detail::CudaEvent begin;
  const detail::CudaEvent end;
  require(cudaEventRecord(begin.event, cudaStreamLegacy));
  call();
  require(cudaEventRecord(end.event, cudaStreamLegacy));
  require(cudaEventSynchronize(end.event));
  constexpr double of_a_millisecond = 1e-3;
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin.event, end.event));
  return of_a_millisecond * milliseconds;
}

/// The first GPU of CUDA's. The harness waits for all of its streams; that which it hands out takes
/// turns with the default one, so that plain copies and the events above see its work.
inline Device cuda() {
  int count = 0;
  cudaDeviceProp found{};
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    return {.kind = "gpu", .missing = std::string("no GPU: ") + cudaGetErrorString(error)};
  }
  require(cudaGetDeviceProperties(&found, 0));
  Device device = gpu(found.name, [] { require(cudaDeviceSynchronize()); });
  device.seconds = cuda_seconds;
  device.flush = [bytes = 2 * static_cast<std::size_t>(found.l2CacheSize),
                  scratch = std::shared_ptr<void>()]() mutable {
    if (!scratch) {
      void* at = nullptr;
      require(cudaMalloc(&at, bytes));
      scratch.reset(at, cudaFree);
    }
    require(cudaMemset(scratch.get(), 0, bytes));
  };
  device.stream = [made = std::shared_ptr<CUstream_st>()]() mutable -> std::any {
    if (!made) {
      cudaStream_t stream{};
      require(cudaStreamCreate(&stream));
      made.reset(stream, cudaStreamDestroy);
    }
    return cudaStream_t(made.get());
  };
  return device;
}

/// Room for so many values on the GPU, of which nothing is set. It is copied from and to the host's
/// pageable memory: a side that copies by other means has its own cudaMemcpy.
template <class Value>
class CudaArray {
 public:
  explicit CudaArray(std::size_t size) : size_(size) {
    void* at = nullptr;
    require(cudaMalloc(&at, bytes()));
    at_ = static_cast<Value*>(at);
  }
  CudaArray(const CudaArray&) = delete;
  CudaArray& operator=(const CudaArray&) = delete;
  ~CudaArray() { cudaFree(at_); }

  [[nodiscard]] Value* data() const { return at_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return size_ * sizeof(Value); }

  /// `from` has at least size() values.
  void copy_in(const std::vector<Value>& from) const {
    require(cudaMemcpy(at_, from.data(), bytes(), cudaMemcpyHostToDevice));
  }
  void copy_out(std::vector<Value>& to) const {
    to.resize(size_);
    require(cudaMemcpy(to.data(), at_, bytes(), cudaMemcpyDeviceToHost));
  }

 private:
  std::size_t size_;
  Value* at_ = nullptr;
};

}  // namespace crossover::two
