// SPDX-License-Identifier: Apache-2.0
// The made-up device, and the names of errors.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <thread>
#include <utility>

#include "state.h"

using namespace cuda_host;

namespace {

struct Text {
  cudaError_t error;
  const char* sentence;
};

constexpr Text texts[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorInvalidConfiguration, "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorNoDevice, "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"},
    {cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"},
    {cudaErrorIllegalAddress, "an illegal memory access was encountered"},
    {cudaErrorLaunchTimeout, "the launch timed out and was terminated"},
    {cudaErrorLaunchFailure, "unspecified launch failure"},
    {cudaErrorNotSupported, "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"},
    {cudaErrorInvalidClusterSize, "invalid cluster size"},
};

/// What calls give that need a driver and a device.
cudaError_t present() {
  if (state().device.driver_version / 1000 < state().device.runtime_version / 1000) {
    return cudaErrorInsufficientDriver;
  }
  return state().device.count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

}  // namespace

int cuda_host::generation_of_code() { return state().device.code; }

cudaError_t cuda_host::find_code() {
  return call("cudaFuncGetAttributes", [&] {
    return state().device.has_code ? cudaSuccess : cudaErrorNoKernelImageForDevice;
  });
}

/// Of the errors that reach a sentence in some test.
const char* cudaGetErrorString(cudaError_t error) {
  const auto* found = std::find_if(std::begin(texts), std::end(texts),
                                   [error](const Text& text) { return text.error == error; });
  return found == std::end(texts) ? "unrecognized error code" : found->sentence;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = enter("cudaGetLastError");
  const cudaError_t last = std::exchange(state().last, state().sticky);
  return error != cudaSuccess ? error : last;
}

cudaError_t cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", [&] {
    *version = state().device.driver_version;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return call("cudaRuntimeGetVersion", [&] {
    *version = state().device.runtime_version;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return call("cudaGetDeviceCount", [&] {
    if (const cudaError_t error = present()) {
      return error;
    }
    *count = state().device.count;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&] {
    *device = 0;
    return present();
  });
}

cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&] {
    if (const cudaError_t error = present()) {
      return error;
    }
    if (device < 0 || device >= state().device.count) {
      return cudaErrorInvalidDevice;
    }
    // Since CUDA 12 the context is made here.
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::exchange(state().device.start_seconds, 0)));
    return state().device.busy;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", [&] {
    if (const cudaError_t error = present()) {
      return error;
    }
    if (device < 0 || device >= state().device.count) {
      return cudaErrorInvalidDevice;
    }
    *properties = {};
    static_cast<void>(std::snprintf(properties->name, sizeof(properties->name), "Emulated GPU"));
    properties->totalGlobalMem = state().device.bytes;
    properties->sharedMemPerBlockOptin = state().device.shared_bytes;
    properties->maxThreadsPerBlock = state().device.threads;
    properties->major = state().device.major;
    properties->minor = 9;  // no device has it
    properties->pciBusID = device;
    properties->clusterLaunch = state().device.major >= 9 ? 1 : 0;
    properties->multiProcessorCount = state().device.multiprocessors;
    properties->l2CacheSize = state().device.cache_bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device)) {
    return error;
  }
  switch (attribute) {
    case cudaDevAttrKernelExecTimeout:
      *value = state().device.has_display ? 1 : 0;
      break;
    case cudaDevAttrCooperativeLaunch:
      *value = state().device.launches_cooperative ? 1 : 0;
      break;
    case cudaDevAttrIntegrated:
      *value = 0;
      break;
  }
  return cudaSuccess;
}
