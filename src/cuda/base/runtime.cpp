// SPDX-License-Identifier: Apache-2.0
#include "runtime.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "crossover/backend.h"
#include "site.h"

namespace crossover::cuda {

// ---- Runtime

namespace {

/// The function that was called, not with what; the file without its folders.
std::string sentence(const char* status, const char* call, const char* file, int line) {
  const std::string_view called(call);
  const std::string_view path(file);
  std::ostringstream text;
  text << "CUDA: " << status << " in " << called.substr(0, called.find('(')) << " ("
       << path.substr(path.rfind('/') + 1) << ":" << line << ")";
  return text.str();
}

/// After some errors (a kernel that reads beyond its memory, a device fallen off the bus) every
/// later call fails too, whatever it is: with that error, or cudaSuccess where the device is well.
cudaError_t lasting_error() {
  static_cast<void>(cudaGetLastError());  // takes away an error that only its own call has
  std::size_t free = 0;
  std::size_t total = 0;
  const cudaError_t status = cudaMemGetInfo(&free, &total);
  static_cast<void>(cudaGetLastError());
  const bool of_a_capture =
      status == cudaErrorStreamCaptureUnsupported || status == cudaErrorStreamCaptureInvalidated;
  return of_a_capture ? cudaSuccess : status;
}

[[noreturn]] void fail(const std::string& what, bool out_of_memory) {
  if (const cudaError_t lasting = lasting_error(); lasting != cudaSuccess) {
    // A library's status says less than the error behind it.
    throw DeviceFailed(what + "; the GPU can't be used any more: " + cudaGetErrorString(lasting));
  }
  if (out_of_memory) {
    throw OutOfMemory(what);
  }
  throw std::runtime_error(what);
}

void print(const char* status, const char* call, const char* file, int line) noexcept {
  std::fprintf(stderr, "CUDA: %s in %s (%s:%d)\n", status, call, file, line);
}

}  // namespace

void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status != cudaSuccess) {
    fail(sentence(cudaGetErrorString(status), call, file, line),
         status == cudaErrorMemoryAllocation);
  }
}

void check(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    fail(sentence(cublasLtGetStatusString(status), call, file, line),
         status == CUBLAS_STATUS_ALLOC_FAILED);
  }
}

void report(cudaError_t status, const char* call, const char* file, int line) noexcept {
  if (status != cudaSuccess) {
    print(cudaGetErrorString(status), call, file, line);
  }
}

void report(cublasStatus_t status, const char* call, const char* file, int line) noexcept {
  if (status != CUBLAS_STATUS_SUCCESS) {
    print(cublasLtGetStatusString(status), call, file, line);
  }
}

cudaError_t finish_and_destroy(cudaStream_t stream) {
  const cudaError_t finished = cudaStreamSynchronize(stream);
  const cudaError_t destroyed = cudaStreamDestroy(stream);
  return finished != cudaSuccess ? finished : destroyed;
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  CROSSOVER_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

Event make_event() {
  cudaEvent_t event = nullptr;
  CROSSOVER_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return Event(event);
}

Event make_timed_event() {
  cudaEvent_t event = nullptr;
  CROSSOVER_CUDA_CHECK(cudaEventCreate(&event));
  return Event(event);
}

namespace {

/// With the host's, of which more can be had than is free now.
bool shares_memory() {
  int device = 0;
  int integrated = 0;
  CROSSOVER_CUDA_CHECK(cudaGetDevice(&device));
  CROSSOVER_CUDA_CHECK(cudaDeviceGetAttribute(&integrated, cudaDevAttrIntegrated, device));
  return integrated != 0;
}

}  // namespace

DeviceMemory allocate_device(std::int64_t bytes) {
  std::size_t free = 0;
  std::size_t total = 0;
  const auto refuse = [&] {
    throw OutOfMemory("the GPU's memory does not hold " + std::to_string(bytes) + " bytes: " +
                      std::to_string(free) + " of " + std::to_string(total) + " are free");
  };
  CROSSOVER_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  // Some drivers would give the host's memory for the rest, and move it at each access.
  if (static_cast<std::size_t>(bytes) > free && !shares_memory()) {
    refuse();
  }
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    CROSSOVER_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    refuse();
  }
  CROSSOVER_CUDA_CHECK(status);
  return DeviceMemory(memory);
}

PinnedMemory allocate_pinned(std::int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t status =
      cudaHostAlloc(&memory, static_cast<std::size_t>(bytes), cudaHostAllocDefault);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw OutOfMemory("the system does not give " + std::to_string(bytes) +
                      " bytes of page-locked memory");
  }
  CROSSOVER_CUDA_CHECK(status);
  return PinnedMemory(memory);
}

GraphExec capture(cudaStream_t stream, const std::function<void()>& issue) {
  // Only this thread's calls are watched: others may go on with devices of their own.
  CROSSOVER_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t recorded = nullptr;
  try {
    issue();
  } catch (...) {
    static_cast<void>(
        cudaStreamEndCapture(stream, &recorded));  // the first error is the one to tell
    static_cast<void>(cudaGetLastError());
    const Graph incomplete(recorded);
    throw;
  }
  CROSSOVER_CUDA_CHECK(cudaStreamEndCapture(stream, &recorded));
  const Graph graph(recorded);
  return instantiate(graph.get(), stream);
}

GraphExec instantiate(cudaGraph_t graph, cudaStream_t stream) {
  cudaGraphExec_t executable = nullptr;
  CROSSOVER_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  GraphExec ready(executable);
  CROSSOVER_CUDA_CHECK(cudaGraphUpload(ready.get(), stream));  // not at the first launch
  return ready;
}

std::string version_text(int version) {
  constexpr int major = 1000;
  constexpr int minor = 10;
  return std::to_string(version / major) + "." + std::to_string(version % major / minor);
}

namespace {

std::string no_gpu(const std::string& why) { return "none (" + why + ")"; }

std::string reason_for(cudaError_t status, const std::string& device) {
  switch (status) {
    case cudaErrorNoDevice:
      return no_gpu("no device");
    case cudaErrorDevicesUnavailable:
      return no_gpu(device + " is busy, or its compute mode lets nobody else use it");
    case cudaErrorMemoryAllocation:
      return no_gpu(device + " has no memory left to start on");
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return no_gpu("this program holds no code for " + device +
                    ": build it with CMAKE_CUDA_ARCHITECTURES=native");
    default:
      return no_gpu(device + ": " + cudaGetErrorString(status));
  }
}

std::string reason_for_no_driver() {
  int driver = 0;
  int runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  if (driver == 0) {
    return no_gpu("no NVIDIA driver is loaded");
  }
  return no_gpu("the driver supports CUDA " + version_text(driver) + ", this program needs " +
                version_text(runtime) + ": update the driver or build with an older toolkit");
}

}  // namespace

Discovery discover(int ordinal) {
  Discovery found{.device = {.ordinal = ordinal}, .reason = {}};
  const auto start = std::chrono::steady_clock::now();
  cudaDeviceProp& properties = found.device.properties;
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) {
    status = count <= ordinal ? cudaErrorNoDevice : cudaGetDeviceProperties(&properties, ordinal);
  }
  if (status == cudaErrorInsufficientDriver) {
    found.reason = reason_for_no_driver();
  } else if (status != cudaSuccess) {
    found.reason = reason_for(status, "the device");
  } else {
    const std::string name(static_cast<const char*>(properties.name));
    // Freeing nothing starts the device, which tells whether it may be used at all.
    if ((status = cudaSetDevice(ordinal)) != cudaSuccess ||
        (status = cudaFree(nullptr)) != cudaSuccess || (status = find_kernels()) != cudaSuccess) {
      found.reason = reason_for(status, name);
    }
  }
  static_cast<void>(cudaGetLastError());  // a reason is no error of what comes next
  found.device.start_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return found;
}

// ---- Timing

namespace {

constexpr int times = 5;
using Samples = std::array<double, times>;

double median(Samples samples) {
  std::sort(samples.begin(), samples.end());
  return samples[times / 2];
}

}  // namespace

std::vector<double> device_seconds(cudaStream_t stream,
                                   const std::vector<std::function<void()>>& pieces) {
  std::vector<Event> events;
  for (std::size_t i = 0; i <= pieces.size(); ++i) {
    events.push_back(make_timed_event());
  }
  const auto record = [stream](const Event& event) {
    CROSSOVER_CUDA_CHECK(cudaEventRecordWithFlags(event.get(), stream, cudaEventRecordExternal));
  };
  const GraphExec graph = capture(stream, [&] {
    record(events.front());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      pieces[i]();
      record(events[i + 1]);
    }
  });
  // Where something throws, events and graph may still be in use.
  const Owner<cudaStream_t, &cudaStreamSynchronize> finish(stream);
  std::vector<Samples> samples(pieces.size());
  for (int time = -1; time < times; ++time) {  // the first only warms up
    CROSSOVER_CUDA_CHECK(cudaGraphLaunch(graph.get(), stream));
    CROSSOVER_CUDA_CHECK(cudaStreamSynchronize(stream));
    for (std::size_t i = 0; i < pieces.size() && time >= 0; ++i) {
      constexpr double second_per_millisecond = 1e-3;
      float milliseconds = 0;
      CROSSOVER_CUDA_CHECK(
          cudaEventElapsedTime(&milliseconds, events[i].get(), events[i + 1].get()));
      samples[i][static_cast<std::size_t>(time)] = milliseconds * second_per_millisecond;
    }
  }
  std::vector<double> medians;
  std::transform(samples.begin(), samples.end(), std::back_inserter(medians), median);
  return medians;
}

void keep_busy(const std::function<void()>& work) {
  constexpr auto long_enough = std::chrono::milliseconds(50);
  const auto start = std::chrono::steady_clock::now();
  do {
    work();
  } while (std::chrono::steady_clock::now() - start < long_enough);
}

double host_seconds(const std::function<void()>& timed, const std::function<void()>& after) {
  Samples samples{};
  for (double& seconds : samples) {
    const auto start = std::chrono::steady_clock::now();
    timed();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    after();
  }
  return median(samples);
}

}  // namespace crossover::cuda
