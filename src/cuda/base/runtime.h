// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime with owners and exceptions: checks, streams, events, graphs, memory, times,
// discovery.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace crossover::cuda {

/// Throws with the function, the status in words, file and line: DeviceFailed where the device
/// can't be used any more, OutOfMemory where that is what the status says, else std::runtime_error.
void check(cudaError_t status, const char* call, const char* file, int line);
void check(cublasStatus_t status, const char* call, const char* file, int line);

/// The same on standard error, for destructors.
void report(cudaError_t status, const char* call, const char* file, int line) noexcept;
void report(cublasStatus_t status, const char* call, const char* file, int line) noexcept;

#define CROSSOVER_CUDA_CHECK(call) ::crossover::cuda::check((call), #call, __FILE__, __LINE__)
#define CROSSOVER_CUDA_REPORT(call) ::crossover::cuda::report((call), #call, __FILE__, __LINE__)

/// Until the stream has done all that is in it.
inline void wait(cudaStream_t stream) { CROSSOVER_CUDA_CHECK(cudaStreamSynchronize(stream)); }

/// Owns a handle of one of NVIDIA's libraries; `release` gives it back.
template <class T, auto release>
class Owner {
 public:
  Owner() = default;
  explicit Owner(T handle) : handle_(handle) {}
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, T{})) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() {
    if (handle_ != T{}) {
      CROSSOVER_CUDA_REPORT(release(handle_));
    }
  }

  [[nodiscard]] T get() const { return handle_; }
  explicit operator bool() const { return handle_ != T{}; }

 private:
  T handle_{};
};

/// Waits for the stream's work, which may use memory that is freed next.
cudaError_t finish_and_destroy(cudaStream_t stream);

using Stream = Owner<cudaStream_t, &finish_and_destroy>;
using Event = Owner<cudaEvent_t, &cudaEventDestroy>;
using Graph = Owner<cudaGraph_t, &cudaGraphDestroy>;
using GraphExec = Owner<cudaGraphExec_t, &cudaGraphExecDestroy>;
using DeviceMemory = Owner<void*, &cudaFree>;
using PinnedMemory = Owner<void*, &cudaFreeHost>;

Stream make_stream();      ///< without order towards the default stream
Event make_event();        ///< for order only: takes no time
Event make_timed_event();  ///< keeps the device's time

/// Throw OutOfMemory with the bytes needed, and free where the device tells.
DeviceMemory allocate_device(std::int64_t bytes);
PinnedMemory allocate_pinned(std::int64_t bytes);

/// Records what `issue` puts into the stream, instead of running it.
GraphExec capture(cudaStream_t stream, const std::function<void()>& issue);

/// Ready to be launched in the stream, at the first launch as at any other.
GraphExec instantiate(cudaGraph_t graph, cudaStream_t stream);

/// Seconds of each piece on the stream by the GPU's clock, with the pieces back to back; the median
/// of a few runs. As one graph: of pieces that are launched one by one, the time until the CPU
/// comes with the next would count. A piece only puts work into the stream; its code must have been
/// loaded.
std::vector<double> device_seconds(cudaStream_t stream,
                                   const std::vector<std::function<void()>>& pieces);

/// Repeats it for a twentieth of a second, in which a GPU that did nothing raises its clocks.
void keep_busy(const std::function<void()>& work);

/// Seconds that the CPU spends in `timed`, likewise; `after` is not timed.
double host_seconds(
    const std::function<void()>& timed, const std::function<void()>& after = [] {});

/// A GPU by the number that the runtime gives it, and what the runtime says of it.
struct Device {
  int ordinal = 0;
  cudaDeviceProp properties{};
  double start_seconds = 0;  ///< for CUDA's context, which every process has to wait for

  /// Makes it the calling thread's: before anything is planned, made or run on it.
  void use() const { CROSSOVER_CUDA_CHECK(cudaSetDevice(ordinal)); }
};

/// The device, or the reason why it can't be used: one of the two is set.
struct Discovery {
  Device device;
  std::string reason;
};
Discovery discover(int ordinal);

std::string version_text(int version);  ///< 12040 -> "12.4"

}  // namespace crossover::cuda
