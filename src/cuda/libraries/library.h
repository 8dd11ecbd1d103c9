// SPDX-License-Identifier: Apache-2.0
// Products, convolutions and attention as their libraries offer them: the algorithms that a library
// has for a form, and one of them, ready to run. Planner and programs know no more of it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "forms.h"

namespace crossover::cuda {

/// Which an algorithm spoils.
struct Workspace {
  void* at = nullptr;
  std::int64_t bytes = 0;
};

/// One form by one algorithm. `Arguments`: a form with the addresses of its operands; what the form
/// has no use for is null.
template <class Arguments>
class Prepared {
 public:
  Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  virtual ~Prepared() = default;

  /// Puts it into the stream. Throws DeviceFailed and OutOfMemory; another std::runtime_error where
  /// the library refuses after all to run what it proposed.
  virtual void execute(cudaStream_t stream, const Arguments& of,
                       const Workspace& workspace) const = 0;

  /// What the library calls the algorithm; empty where it has no name for it.
  [[nodiscard]] virtual std::string name() const { return ""; }
  /// How much of the workspace it works in, where the library tells.
  [[nodiscard]] virtual std::int64_t workspace_bytes() const { return 0; }
};

template <class Arguments>
class Library {
 public:
  using Form = decltype(Arguments::form);

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  virtual ~Library() = default;

  /// How many algorithms it proposes for the form; 0: it has none. Throws Unsupported where there
  /// is no library.
  [[nodiscard]] virtual int algorithms(const Form& form) = 0;

  /// By the algorithm of that number, from 0, the library's best guess. It may keep what fixed()
  /// says of the arguments, and ends before the library does. Throws what execute() throws.
  [[nodiscard]] virtual std::unique_ptr<Prepared<Arguments>> make(const Arguments& of,
                                                                  int algorithm) = 0;
};

using CalledProduct = ProductArguments<Called>;
using Product = Prepared<CalledProduct>;
using ProductLibrary = Library<CalledProduct>;
using MakeProductLibrary = std::function<std::unique_ptr<ProductLibrary>(Precision)>;

using CalledConvolution = ConvolutionArguments<Called>;
using PreparedConvolution = Prepared<CalledConvolution>;
using ConvolutionLibrary = Library<CalledConvolution>;
using MakeConvolutionLibrary =
    std::function<std::unique_ptr<ConvolutionLibrary>(Precision, std::int64_t memory_bytes)>;

using CalledSdpa = SdpaArguments<Called>;
using PreparedSdpa = Prepared<CalledSdpa>;
using SdpaLibrary = Library<CalledSdpa>;
using MakeSdpaLibrary =
    std::function<std::unique_ptr<SdpaLibrary>(Precision, std::int64_t memory_bytes)>;

/// Matrix products on cuBLASLt, with the workspace that programs have. f32 multiplies in full
/// single precision; tf32 keeps 10 bits of a factor's mantissa. Sums are f32 in any precision.
std::unique_ptr<ProductLibrary> make_cublaslt_library(Precision precision);

/// What the device lacks for products of that precision, in words; empty where it has them.
std::string missing_for_products(const cudaDeviceProp& device, Precision precision);

/// Convolutions on cuDNN, within the workspace of a GPU with that memory: tf32 on tensor cores.
std::unique_ptr<ConvolutionLibrary> make_cudnn_library(Precision precision,
                                                       std::int64_t memory_bytes);

/// Attention likewise. It has no algorithms without cuDNN.
std::unique_ptr<SdpaLibrary> make_sdpa_library(Precision precision, std::int64_t memory_bytes);

/// The same for a GPU that need not be here, as cuDNN describes one in JSON: its algorithms have
/// names and workspaces, and do not run. Only in a build with cuDNN.
std::unique_ptr<ConvolutionLibrary> make_cudnn_library_for(const std::string& device,
                                                           Precision precision,
                                                           std::int64_t memory_bytes);

std::unique_ptr<SdpaLibrary> make_sdpa_library_for(const std::string& device, Precision precision,
                                                   std::int64_t memory_bytes);

/// "9.19.0"; empty without cuDNN.
std::string cudnn_version();

/// Opens it for dlsym(). NVIDIA's Python packages come first where pip has put them beside the one
/// that has this program (site-packages/nvidia/*/lib and site-packages/crossover_bench/build); then
/// LD_LIBRARY_PATH, where the build found it, and where the system looks. Null: dlerror() says why.
void* open_library(const std::string& name);

/// "13.0", of the compiler that cuDNN finds; empty where there is none, and so no attention of
/// cuDNN's and fewer of its convolutions.
std::string nvrtc_version();

/// What is the same in every execution of what a library prepares.
inline auto fixed(const CalledProduct& of) { return std::tuple(of.form, of.vector.at, of.mask.at); }
inline auto fixed(const CalledConvolution& of) { return of.form; }
inline auto fixed(const CalledSdpa& of) { return of.form; }

}  // namespace crossover::cuda
