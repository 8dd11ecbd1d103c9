// SPDX-License-Identifier: Apache-2.0
// A driver without a GPU, so that cuDNN makes plans that it compiles for the occasion, as those of
// attention: it looks for all these functions and calls few, to load what it has compiled. Nothing
// runs.

// NOLINTBEGIN(readability-identifier-naming): they are CUDA's
namespace {

constexpr int success = 0;
constexpr int no_device = 100;

/// Whatever it is called for, it is there.
int give(void** handle) {
  static int something = 0;
  *handle = &something;
  return success;
}
int give(const char** text) {
  *text = "made up";
  return success;
}

}  // namespace

extern "C" {

/// To the CUDA runtime: it looks no further.
int cuInit(unsigned /*flags*/) { return no_device; }
int cuDeviceGetCount(int* count) {
  *count = 1;
  return success;
}
int cuLibraryLoadData(void** library) { return give(library); }
int cuLibraryGetKernel(void** kernel) { return give(kernel); }

int cuGetErrorName(int /*error*/, const char** text) { return give(text); }
int cuGetErrorString(int /*error*/, const char** text) { return give(text); }

int cuCtxGetCurrent() { return success; }
int cuCtxGetDevice() { return success; }
int cuCtxGetLimit() { return success; }
int cuCtxPopCurrent() { return success; }
int cuCtxPushCurrent() { return success; }
int cuDeviceGet() { return success; }
int cuDeviceGetAttribute() { return success; }
int cuDevicePrimaryCtxRelease() { return success; }
int cuDevicePrimaryCtxReset() { return success; }
int cuDevicePrimaryCtxRetain() { return success; }
int cuDriverGetVersion() { return success; }
int cuFuncGetAttribute() { return success; }
int cuFuncSetAttribute() { return success; }
int cuKernelGetAttribute() { return success; }
int cuKernelSetAttribute() { return success; }
int cuLaunchCooperativeKernel() { return success; }
int cuLaunchKernel() { return success; }
int cuLaunchKernelEx() { return success; }
int cuLibraryLoadFromFile() { return success; }
int cuLibraryUnload() { return success; }
int cuLinkAddData() { return success; }
int cuLinkAddData_v2() { return success; }
int cuLinkAddFile_v2() { return success; }
int cuLinkComplete() { return success; }
int cuLinkCreate() { return success; }
int cuLinkCreate_v2() { return success; }
int cuLinkDestroy() { return success; }
int cuMemcpyDtoH_v2() { return success; }
int cuModuleGetFunction() { return success; }
int cuModuleGetGlobal_v2() { return success; }
int cuModuleLoadData() { return success; }
int cuModuleLoadDataEx() { return success; }
int cuModuleLoadFatBinary() { return success; }
int cuModuleUnload() { return success; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor() { return success; }
int cuOccupancyMaxPotentialClusterSize() { return success; }
int cuStreamGetCtx() { return success; }
int cuStreamSynchronize() { return success; }
int cuTensorMapEncodeTiled() { return success; }

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
