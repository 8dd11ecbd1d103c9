// SPDX-License-Identifier: Apache-2.0
// A kernel for one network by NVRTC, whose text (kernels/tailored.cuh and what it includes) is part
// of the program.
#include "tailored_kernel.h"

#include "crossover/backend.h"

#if __has_include(<nvrtc.h>)

#include <cuda.h>
#include <nvrtc.h>

#include <array>
#include <string>
#include <vector>

#include "../base/runtime.h"
#include "../plan/tailored_text.h"
#include "kernel_store.h"

namespace crossover::cuda {
namespace {

// ---- Compiled

/// Throws Unsupported with NVRTC's words.
void check(nvrtcResult result, const std::string& what) {
  if (result != NVRTC_SUCCESS) {
    throw Unsupported("NVRTC " + what + ": " + nvrtcGetErrorString(result));
  }
}

std::string version() {
  int major = 0;
  int minor = 0;
  check(nvrtcVersion(&major, &minor), "tells no version");
  return std::to_string(major) + "." + std::to_string(minor);
}

class Source {
 public:
  explicit Source(const std::string& text) {
    std::vector<const char*> names;
    std::vector<const char*> texts;
    for (const TailoredHeader& header : tailored_headers()) {
      names.push_back(header.name);
      texts.push_back(header.text);
    }
    check(nvrtcCreateProgram(&program_, text.c_str(), "tailored.cu", static_cast<int>(names.size()),
                             texts.data(), names.data()),
          "takes no program");
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { nvrtcDestroyProgram(&program_); }

  /// The code of a device.
  [[nodiscard]] std::string compiled(const std::vector<std::string>& options) const {
    std::vector<const char*> words;
    words.reserve(options.size());
    for (const std::string& option : options) {
      words.push_back(option.c_str());
    }
    if (const nvrtcResult result =
            nvrtcCompileProgram(program_, static_cast<int>(words.size()), words.data());
        result != NVRTC_SUCCESS) {
      std::size_t size = 0;
      std::string log;
      if (nvrtcGetProgramLogSize(program_, &size) == NVRTC_SUCCESS) {
        log.resize(size);
        nvrtcGetProgramLog(program_, log.data());
      }
      throw Unsupported("NVRTC " + version() + " can't compile a kernel for this network (" +
                        nvrtcGetErrorString(result) + "): " + log.substr(0, log.find('\n')));
    }
    std::size_t size = 0;
    check(nvrtcGetCUBINSize(program_, &size), "has made no code");
    std::string code(size, '\0');
    check(nvrtcGetCUBIN(program_, code.data()), "has made no code");
    return code;
  }

 private:
  nvrtcProgram program_ = nullptr;
};

std::string code_of(const tailored::Shape& shape) {
  int device = 0;
  cudaDeviceProp properties{};
  CROSSOVER_CUDA_CHECK(cudaGetDevice(&device));
  CROSSOVER_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  const std::string text = tailored_source(shape);
  const std::vector<std::string> options =
      tailored_options(10 * properties.major + properties.minor);
  std::string key = "NVRTC " + version() + "\n";
  for (const std::string& option : options) {
    key += option + "\n";
  }
  key += text;
  for (const TailoredHeader& header : tailored_headers()) {
    key += std::string(header.name) + "\n" + header.text;
  }
  std::string code = kept_kernel(key);
  if (code.empty()) {
    code = Source(text).compiled(options);
    keep_kernel(key, code);
  }
  return code;
}

// ---- Run

/// Throws Unsupported or DeviceFailed with the driver's words.
void check(CUresult result) {
  if (result == CUDA_SUCCESS) {
    return;
  }
  const char* text = nullptr;
  const bool is_told = cuGetErrorString(result, &text) == CUDA_SUCCESS && text != nullptr;
  throw DeviceFailed("a kernel made for the network failed: " +
                     (is_told ? std::string(text) : std::to_string(static_cast<int>(result))));
}

class Kernel : public TailoredKernel {
 public:
  explicit Kernel(const tailored::Shape& shape)
      : blocks_(static_cast<unsigned>(shape.blocks)),
        threads_(static_cast<unsigned>(shape.threads)),
        shared_bytes_(static_cast<unsigned>(layout_of(shape).floats) * unsigned{sizeof(float)}) {
    const std::string code = code_of(shape);
    check(cuModuleLoadData(&module_, code.data()));
    try {
      check(cuModuleGetFunction(&function_, module_, tailored_kernel_name));
      check(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               static_cast<int>(shared_bytes_)));
    } catch (...) {
      cuModuleUnload(module_);
      throw;
    }
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() override { cuModuleUnload(module_); }

  void launch(cudaStream_t stream, const tailored::Arguments& arguments,
              int copies) const override {
    tailored::Arguments of = arguments;
    std::array<void*, 1> parameters{&of};
    check(cuLaunchKernel(function_, static_cast<unsigned>(copies) * blocks_, 1, 1, threads_, 1, 1,
                         shared_bytes_, stream, parameters.data(), nullptr));
  }

 private:
  unsigned blocks_, threads_, shared_bytes_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

}  // namespace

std::unique_ptr<TailoredKernel> make_tailored_kernel(const tailored::Shape& shape) {
  return std::make_unique<Kernel>(shape);
}

}  // namespace crossover::cuda

#else

namespace crossover::cuda {

std::unique_ptr<TailoredKernel> make_tailored_kernel(const tailored::Shape& /*shape*/) {
  throw Unsupported(
      "this program was built by a toolkit without NVRTC's header (nvrtc.h), and so makes no "
      "kernel "
      "for a network");
}

}  // namespace crossover::cuda

#endif
