// SPDX-License-Identifier: Apache-2.0
// The functions of NVIDIA's libraries that this program calls. It is linked to none of them, so
// that it starts where one is missing, and pays for one (cuBLASLt takes 230 MB) only where it is
// called: the first call of a function finds it. A program with another function of theirs does not
// link: it needs a line here.
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#ifdef CROSSOVER_LOADS_CUDNN
#include <cudnn.h>
#endif
#ifdef CROSSOVER_LOADS_NCCL
#include <nccl.h>
#endif
#if __has_include(<nvrtc.h>)
#include <nvrtc.h>
#endif

#include "crossover/backend.h"
#include "library.h"

namespace crossover::cuda {

void* open_library(const std::string& name) {
  std::error_code none;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none);
  const std::filesystem::path beside = program.parent_path() / "../../nvidia";
  for (const auto& package : std::filesystem::directory_iterator(beside, none)) {
    const std::filesystem::path file = package.path() / "lib" / name;
    if (!std::filesystem::exists(file, none)) {
      continue;
    }
    if (void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); opened != nullptr) {
      return opened;
    }
  }
  return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

namespace {

/// A library, which stays loaded.
class Loaded {
 public:
  /// `package`: Python's, which brings it.
  Loaded(std::string name, const std::string& package)
      : name_(std::move(name)), file_(open_library(name_)) {
    if (file_ == nullptr) {
      const char* const why = dlerror();
      missing_ = "there is no " + name_ + " (" + (why == nullptr ? "" : why) +
                 "): install the Python package " + package +
                 " beside crossover-bench, or add the folder of its libraries to LD_LIBRARY_PATH";
    }
  }

  /// Throws Unsupported where the library is missing, or has no such function.
  [[nodiscard]] void* find(const char* function) const {
    if (file_ == nullptr) {
      throw Unsupported(missing_);
    }
    void* const found = dlsym(file_, function);
    if (found == nullptr) {
      throw Unsupported("the " + name_ + " that is loaded has no " + function +
                        ": it is older than the one that this program was built with");
    }
    return found;
  }

 private:
  std::string name_;
  void* file_;
  std::string missing_;
};

std::string cuda_major() {
  constexpr int factor = 1000;
  return std::to_string(CUDART_VERSION / factor);
}

const Loaded& cublaslt() {
  static const Loaded library("libcublasLt.so." + cuda_major(), "nvidia-cublas");
  return library;
}

/// The driver, without which there is no GPU.
const Loaded& driver() {
  static const Loaded library("libcuda.so.1", "the driver");
  return library;
}

const Loaded& nvrtc() {
  static const Loaded library("libnvrtc.so." + cuda_major(), "nvidia-cuda-nvrtc");
  return library;
}

#ifdef CROSSOVER_LOADS_CUDNN
const Loaded& cudnn() {
  static const Loaded library("libcudnn.so.9", "nvidia-cudnn-cu" + cuda_major());
  return library;
}
#endif

#ifdef CROSSOVER_LOADS_NCCL
const Loaded& nccl() {
  static const Loaded library("libnccl.so.2", "nvidia-nccl-cu" + cuda_major());
  return library;
}
#endif

template <class Function>
struct Signature;

template <class Value, class... Parameters>
struct Signature<Value(Parameters...)> {
  using Result = Value;
  template <std::size_t place>
  using Parameter = std::tuple_element_t<place, std::tuple<Parameters...>>;
};

}  // namespace
}  // namespace crossover::cuda

// A function of a library, as its header declares it with so many parameters.
#define CROSSOVER_SIGNATURE(function) crossover::cuda::Signature<decltype(function)>
#define CROSSOVER_PARAMETER(function, place) CROSSOVER_SIGNATURE(function)::Parameter<place>
#define CROSSOVER_PARAMETERS_0(of)
#define CROSSOVER_ARGUMENTS_0
#define CROSSOVER_PARAMETERS_1(of) CROSSOVER_PARAMETER(of, 0) p0
#define CROSSOVER_PARAMETERS_2(of) CROSSOVER_PARAMETERS_1(of), CROSSOVER_PARAMETER(of, 1) p1
#define CROSSOVER_PARAMETERS_3(of) CROSSOVER_PARAMETERS_2(of), CROSSOVER_PARAMETER(of, 2) p2
#define CROSSOVER_PARAMETERS_4(of) CROSSOVER_PARAMETERS_3(of), CROSSOVER_PARAMETER(of, 3) p3
#define CROSSOVER_PARAMETERS_5(of) CROSSOVER_PARAMETERS_4(of), CROSSOVER_PARAMETER(of, 4) p4
#define CROSSOVER_PARAMETERS_6(of) CROSSOVER_PARAMETERS_5(of), CROSSOVER_PARAMETER(of, 5) p5
#define CROSSOVER_PARAMETERS_7(of) CROSSOVER_PARAMETERS_6(of), CROSSOVER_PARAMETER(of, 6) p6
#define CROSSOVER_PARAMETERS_8(of) CROSSOVER_PARAMETERS_7(of), CROSSOVER_PARAMETER(of, 7) p7
#define CROSSOVER_PARAMETERS_9(of) CROSSOVER_PARAMETERS_8(of), CROSSOVER_PARAMETER(of, 8) p8
#define CROSSOVER_PARAMETERS_10(of) CROSSOVER_PARAMETERS_9(of), CROSSOVER_PARAMETER(of, 9) p9
#define CROSSOVER_PARAMETERS_11(of) CROSSOVER_PARAMETERS_10(of), CROSSOVER_PARAMETER(of, 10) p10
#define CROSSOVER_PARAMETERS_12(of) CROSSOVER_PARAMETERS_11(of), CROSSOVER_PARAMETER(of, 11) p11
#define CROSSOVER_PARAMETERS_13(of) CROSSOVER_PARAMETERS_12(of), CROSSOVER_PARAMETER(of, 12) p12
#define CROSSOVER_PARAMETERS_14(of) CROSSOVER_PARAMETERS_13(of), CROSSOVER_PARAMETER(of, 13) p13
#define CROSSOVER_PARAMETERS_15(of) CROSSOVER_PARAMETERS_14(of), CROSSOVER_PARAMETER(of, 14) p14
#define CROSSOVER_PARAMETERS_16(of) CROSSOVER_PARAMETERS_15(of), CROSSOVER_PARAMETER(of, 15) p15
#define CROSSOVER_ARGUMENTS_1 p0
#define CROSSOVER_ARGUMENTS_2 CROSSOVER_ARGUMENTS_1, p1
#define CROSSOVER_ARGUMENTS_3 CROSSOVER_ARGUMENTS_2, p2
#define CROSSOVER_ARGUMENTS_4 CROSSOVER_ARGUMENTS_3, p3
#define CROSSOVER_ARGUMENTS_5 CROSSOVER_ARGUMENTS_4, p4
#define CROSSOVER_ARGUMENTS_6 CROSSOVER_ARGUMENTS_5, p5
#define CROSSOVER_ARGUMENTS_7 CROSSOVER_ARGUMENTS_6, p6
#define CROSSOVER_ARGUMENTS_8 CROSSOVER_ARGUMENTS_7, p7
#define CROSSOVER_ARGUMENTS_9 CROSSOVER_ARGUMENTS_8, p8
#define CROSSOVER_ARGUMENTS_10 CROSSOVER_ARGUMENTS_9, p9
#define CROSSOVER_ARGUMENTS_11 CROSSOVER_ARGUMENTS_10, p10
#define CROSSOVER_ARGUMENTS_12 CROSSOVER_ARGUMENTS_11, p11
#define CROSSOVER_ARGUMENTS_13 CROSSOVER_ARGUMENTS_12, p12
#define CROSSOVER_ARGUMENTS_14 CROSSOVER_ARGUMENTS_13, p13
#define CROSSOVER_ARGUMENTS_15 CROSSOVER_ARGUMENTS_14, p14
#define CROSSOVER_ARGUMENTS_16 CROSSOVER_ARGUMENTS_15, p15
// Defines it: what calls it links to this.
#define CROSSOVER_LOADED(library, function, count)                                              \
  CROSSOVER_SIGNATURE(function)::Result loaded_##function(                                      \
      CROSSOVER_PARAMETERS_##count(function)) __asm__(#function);                               \
  CROSSOVER_SIGNATURE(function)::Result loaded_##function(                                      \
      CROSSOVER_PARAMETERS_##count(function)) {                                                 \
    static auto* const found = /* NOLINT(cppcoreguidelines-avoid-non-const-global-variables) */ \
        reinterpret_cast<decltype(&(function))>(crossover::cuda::library().find(#function));    \
    return found(CROSSOVER_ARGUMENTS_##count);                                                  \
  }

CROSSOVER_LOADED(cublaslt, cublasLtCreate, 1)
CROSSOVER_LOADED(cublaslt, cublasLtDestroy, 1)
CROSSOVER_LOADED(cublaslt, cublasLtGetStatusString, 1)
CROSSOVER_LOADED(cublaslt, cublasLtGetVersion, 0)
CROSSOVER_LOADED(cublaslt, cublasLtMatmul, 16)
CROSSOVER_LOADED(cublaslt, cublasLtMatmulAlgoCheck, 8)
CROSSOVER_LOADED(cublaslt, cublasLtMatmulAlgoConfigSetAttribute, 4)
CROSSOVER_LOADED(cublaslt, cublasLtMatmulAlgoGetHeuristic, 10)
CROSSOVER_LOADED(cublaslt, cublasLtMatmulDescCreate, 3)
CROSSOVER_LOADED(cublaslt, cublasLtMatmulDescDestroy, 1)
CROSSOVER_LOADED(cublaslt, cublasLtMatmulDescSetAttribute, 4)
CROSSOVER_LOADED(cublaslt, cublasLtMatmulPreferenceCreate, 1)
CROSSOVER_LOADED(cublaslt, cublasLtMatmulPreferenceDestroy, 1)
CROSSOVER_LOADED(cublaslt, cublasLtMatmulPreferenceSetAttribute, 4)
CROSSOVER_LOADED(cublaslt, cublasLtMatrixLayoutCreate, 5)
CROSSOVER_LOADED(cublaslt, cublasLtMatrixLayoutDestroy, 1)
CROSSOVER_LOADED(cublaslt, cublasLtMatrixLayoutSetAttribute, 4)

CROSSOVER_LOADED(driver, cuFuncSetAttribute, 3)
CROSSOVER_LOADED(driver, cuGetErrorString, 2)
CROSSOVER_LOADED(driver, cuLaunchKernel, 11)
CROSSOVER_LOADED(driver, cuModuleGetFunction, 3)
CROSSOVER_LOADED(driver, cuModuleLoadData, 2)
CROSSOVER_LOADED(driver, cuModuleUnload, 1)

#if __has_include(<nvrtc.h>)
CROSSOVER_LOADED(nvrtc, nvrtcCompileProgram, 3)
CROSSOVER_LOADED(nvrtc, nvrtcCreateProgram, 6)
CROSSOVER_LOADED(nvrtc, nvrtcDestroyProgram, 1)
CROSSOVER_LOADED(nvrtc, nvrtcGetCUBIN, 2)
CROSSOVER_LOADED(nvrtc, nvrtcGetCUBINSize, 2)
CROSSOVER_LOADED(nvrtc, nvrtcGetErrorString, 1)
CROSSOVER_LOADED(nvrtc, nvrtcGetProgramLog, 2)
CROSSOVER_LOADED(nvrtc, nvrtcGetProgramLogSize, 2)
CROSSOVER_LOADED(nvrtc, nvrtcVersion, 2)
#endif

#ifdef CROSSOVER_LOADS_CUDNN
CROSSOVER_LOADED(cudnn, cudnnBackendCreateDescriptor, 2)
CROSSOVER_LOADED(cudnn, cudnnBackendDestroyDescriptor, 1)
CROSSOVER_LOADED(cudnn, cudnnBackendExecute, 3)
CROSSOVER_LOADED(cudnn, cudnnBackendFinalize, 1)
CROSSOVER_LOADED(cudnn, cudnnBackendGetAttribute, 6)
CROSSOVER_LOADED(cudnn, cudnnBackendSetAttribute, 5)
CROSSOVER_LOADED(cudnn, cudnnCreate, 1)
CROSSOVER_LOADED(cudnn, cudnnDestroy, 1)
CROSSOVER_LOADED(cudnn, cudnnGetErrorString, 1)
CROSSOVER_LOADED(cudnn, cudnnGetLastErrorString, 2)
CROSSOVER_LOADED(cudnn, cudnnGetStream, 2)
CROSSOVER_LOADED(cudnn, cudnnGetVersion, 0)
CROSSOVER_LOADED(cudnn, cudnnSetStream, 2)
#endif

#ifdef CROSSOVER_LOADS_NCCL
CROSSOVER_LOADED(nccl, ncclAllReduce, 7)
CROSSOVER_LOADED(nccl, ncclCommAbort, 1)
CROSSOVER_LOADED(nccl, ncclCommDestroy, 1)
CROSSOVER_LOADED(nccl, ncclCommInitRank, 4)
CROSSOVER_LOADED(nccl, ncclGetErrorString, 1)
CROSSOVER_LOADED(nccl, ncclGetLastError, 1)
CROSSOVER_LOADED(nccl, ncclGetUniqueId, 1)
CROSSOVER_LOADED(nccl, ncclGetVersion, 1)
CROSSOVER_LOADED(nccl, ncclGroupEnd, 0)
CROSSOVER_LOADED(nccl, ncclGroupStart, 0)
#endif
