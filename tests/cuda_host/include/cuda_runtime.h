// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA runtime that src/cuda calls, declared for the emulation in tests/cuda_host.
// Names, numbers and signatures are those of CUDA 12 and 13; everything else is our own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "cuda_host/kernel.h"

#define CUDART_VERSION 13000

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInsufficientDriver = 35,
  cudaErrorCallRequiresNewerDriver = 36,
  cudaErrorDevicesUnavailable = 46,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorECCUncorrectable = 214,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchTimeout = 702,
  cudaErrorLaunchFailure = 719,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureMerge = 902,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorCapturedEvent = 907,
  cudaErrorInvalidClusterSize = 912,
  cudaErrorUnknown = 999
};

enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3
};

enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };

enum cudaDeviceAttr {
  cudaDevAttrKernelExecTimeout = 17,
  cudaDevAttrIntegrated = 18,
  cudaDevAttrCooperativeLaunch = 95
};

inline constexpr unsigned cudaStreamNonBlocking = 0x1;
inline constexpr unsigned cudaEventDisableTiming = 0x2;
inline constexpr unsigned cudaEventRecordExternal = 0x1;
inline constexpr unsigned cudaHostAllocDefault = 0x0;

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;
using cudaGraphNode_t = struct CUgraphNode_st*;
using cudaGraphConditionalHandle = unsigned long long;

enum cudaGraphNodeType { cudaGraphNodeTypeConditional = 13 };
enum cudaGraphConditionalHandleFlags { cudaGraphCondAssignDefault = 1 };
enum cudaGraphConditionalNodeType { cudaGraphCondTypeWhile = 1 };

struct cudaConditionalNodeParams {
  cudaGraphConditionalHandle handle;
  cudaGraphConditionalNodeType type;
  unsigned size;
  cudaGraph_t* phGraph_out;
};

/// CUDA's has the parameters of every type of node in a union.
struct cudaGraphNodeParams {
  cudaGraphNodeType type;
  cudaConditionalNodeParams conditional;
};

struct cudaGraphEdgeData;

/// Fields that describe a device to a person; CUDA has many more.
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  std::size_t sharedMemPerBlockOptin;
  int maxThreadsPerBlock;
  int major;
  int minor;
  int multiProcessorCount;
  int l2CacheSize;
  int pciBusID;
  int pciDeviceID;
  int pciDomainID;
  int clusterLaunch;
};

cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t error);

cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes,
                            cudaStream_t stream = nullptr);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);

cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* dependency_data,
                                          std::size_t dependency_count, cudaStreamCaptureMode mode);
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags);
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned default_launch_value = 0, unsigned flags = 0);
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                             const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData* dependency_data, std::size_t dependency_count,
                             cudaGraphNodeParams* parameters);
/// In a kernel.
void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

/// As in CUDA's header: typed forms of the allocations.
template <class T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
template <class T>
cudaError_t cudaHostAlloc(T** memory, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(memory), bytes, flags);
}

namespace cuda_host {

struct Size {
  unsigned blocks = 1, threads = 1;
  unsigned shared_bytes = 0;
  unsigned rows = 1;         ///< of so many blocks: the grid's second dimension
  bool cooperative = false;  ///< all blocks run at once, and can wait for each other
  /// So many blocks at a time run at once, and reach each other's shared memory; 0: no clusters.
  unsigned cluster_blocks = 0;
};

/// Lets the kernel's launches ask for so many bytes of dynamic shared memory, which without it may
/// be 48 KB: cudaFuncSetAttribute(cudaFuncAttributeMaxDynamicSharedMemorySize).
cudaError_t allow_shared_bytes(const void* kernel, unsigned bytes);

/// Of the block that runs: as many bytes as its launch asked for, full of garbage.
void* dynamic_shared();

/// Launches a kernel: what `kernel<<<blocks, threads, 0, stream>>>(arguments...)` does, with the
/// error as its result. The arguments are copied; every word of them that is the address of device
/// or pinned memory counts as memory that the kernel uses.
cudaError_t launch(Size size, const Call& call, cudaStream_t stream);

template <class... P>
cudaError_t launch(Size size, void (*function)(P...), const std::tuple<P...>& arguments,
                   cudaStream_t stream) {
  static_assert((std::is_trivially_copyable_v<P> && ...),
                "kernels take their arguments bit by bit");
  struct Bound {
    void (*function)(P...);
    std::tuple<P...> arguments;
  };
  static_assert(alignof(Bound) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  const Bound bound{function, arguments};
  const auto parts = std::apply(
      [](const auto&... argument) {
        return std::array<Argument, sizeof...(P)>{
            Argument{&argument, sizeof(argument), std::is_pointer_v<P>}...};
      },
      bound.arguments);
  const auto thread = [](const void* copy) {
    const auto& kept = *static_cast<const Bound*>(copy);
    std::apply(kept.function, kept.arguments);
  };
  return launch(size,
                {reinterpret_cast<const void*>(function), thread, &bound, sizeof(bound), parts},
                stream);
}

/// How many clusters of that kernel the device has room for at once:
/// cudaOccupancyMaxActiveClusters(). The emulation has room for one or for none.
cudaError_t active_clusters(int* clusters, Size size, const void* kernel);

/// Whether the program holds code for the device: no more than what a test has set.
cudaError_t find_code();
int generation_of_code();

}  // namespace cuda_host
