// SPDX-License-Identifier: Apache-2.0
// The made-up device, and the names of errors.
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "state.h"

using namespace cuda_host;

namespace {

struct Text {
  cudaError_t error;
  const char* name;
  const char* sentence;
};

constexpr Text texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorCallRequiresNewerDriver, "cudaErrorCallRequiresNewerDriver",
     "API call is not supported in the installed CUDA driver"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorInvalidClusterSize, "cudaErrorInvalidClusterSize", "invalid cluster size"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const Text& text(cudaError_t error) {
  for (const Text& one : texts) {
    if (one.error == error) {
      return one;
    }
  }
  static constexpr Text none{cudaErrorUnknown, "unrecognized error code",
                             "unrecognized error code"};
  return none;
}

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
  if (const cudaError_t error = enter("cudaFuncGetAttributes")) {
    return result(error);
  }
  return result(state().device.has_code ? cudaSuccess : cudaErrorNoKernelImageForDevice);
}

const char* cudaGetErrorName(cudaError_t error) { return text(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return text(error).sentence; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = enter("cudaGetLastError");
  const cudaError_t last = std::exchange(state().last, state().sticky);
  return error != cudaSuccess ? error : last;
}

cudaError_t cudaPeekAtLastError() {
  const cudaError_t error = enter("cudaPeekAtLastError");
  return error != cudaSuccess ? error : state().last;
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (const cudaError_t error = enter("cudaDriverGetVersion")) {
    return result(error);
  }
  *version = state().device.driver_version;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (const cudaError_t error = enter("cudaRuntimeGetVersion")) {
    return result(error);
  }
  *version = state().device.runtime_version;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (const cudaError_t error = enter("cudaGetDeviceCount")) {
    return result(error);
  }
  if (const cudaError_t error = present()) {
    return result(error);
  }
  *count = state().device.count;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (const cudaError_t error = enter("cudaGetDevice")) {
    return result(error);
  }
  *device = 0;
  return result(present());
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = enter("cudaSetDevice")) {
    return result(error);
  }
  if (const cudaError_t error = present()) {
    return result(error);
  }
  if (device < 0 || device >= state().device.count) {
    return result(cudaErrorInvalidDevice);
  }
  // Since CUDA 12 the context is made here.
  std::this_thread::sleep_for(
      std::chrono::duration<double>(std::exchange(state().device.start_seconds, 0)));
  return result(state().device.busy);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = enter("cudaGetDeviceProperties")) {
    return result(error);
  }
  if (const cudaError_t error = present()) {
    return result(error);
  }
  if (device < 0 || device >= state().device.count) {
    return result(cudaErrorInvalidDevice);
  }
  *properties = {};
  static_cast<void>(std::snprintf(properties->name, sizeof(properties->name), "Emulated GPU"));
  properties->totalGlobalMem = state().device.bytes;
  properties->sharedMemPerBlock = static_cast<std::size_t>(shared_bytes_without_consent);
  properties->sharedMemPerBlockOptin = state().device.shared_bytes;
  properties->regsPerBlock = 65536;
  properties->warpSize = warpSize;
  properties->maxThreadsPerBlock = state().device.threads;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = state().device.threads;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 2147483647;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->major = state().device.major;
  properties->minor = 9;  // no device has it
  properties->pciBusID = device;
  properties->clusterLaunch = state().device.major >= 9 ? 1 : 0;
  properties->multiProcessorCount = state().device.multiprocessors;
  properties->asyncEngineCount = 2;
  properties->memoryBusWidth = 64;
  properties->l2CacheSize = state().device.cache_bytes;
  properties->maxThreadsPerMultiProcessor = 2048;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device)) {
    return error;
  }
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = properties.maxThreadsPerBlock;
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = properties.warpSize;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrKernelExecTimeout:
      *value = state().device.has_display ? 1 : 0;
      return cudaSuccess;
    case cudaDevAttrIntegrated:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrCooperativeLaunch:
      *value = state().device.launches_cooperative ? 1 : 0;
      return cudaSuccess;
    case cudaDevAttrComputeMode:
      *value = cudaComputeModeDefault;
      return cudaSuccess;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
      *value = 1000000;  // kHz
      return cudaSuccess;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = properties.memoryBusWidth;
      return cudaSuccess;
    case cudaDevAttrL2CacheSize:
      *value = properties.l2CacheSize;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      return cudaSuccess;
  }
  return result(cudaErrorInvalidValue);
}
