// SPDX-License-Identifier: Apache-2.0
// Products, convolutions and attention as their libraries offer them: the algorithms that a library
// has for a form, and one of them, ready to run. And sums over ranks. Planner and programs know no
// more of it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>

#include "../plan/forms.h"
#include "crossover/backend.h"
#include "crossover/ranks.h"

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

// ---- What the kernel of a product or a convolution does where its library's manual leaves it
// open, found by running it on operands that tell. Kernels differ from shape to shape, so each form
// is asked by itself.

/// What becomes of a factor that tf32 does not hold. Writes to all operands, and waits.
Tf32Factors measure_tf32_factors(const Product& product, const CalledProduct& of,
                                 const Workspace& workspace, cudaStream_t stream);
Tf32Factors measure_tf32_factors(const PreparedConvolution& convolution,
                                 const CalledConvolution& of, const Workspace& workspace,
                                 cudaStream_t stream);

/// Whether the mask that the product writes (relu_mask, relu_mask_bias) lets a gradient pass where
/// ReLU's input is exactly 0. Writes to all operands, and waits.
bool measure_mask_at_zero(const Product& product, const CalledProduct& of,
                          const Workspace& workspace, cudaStream_t stream);

// ---- Sums over ranks, each with a GPU of its own, as their library makes them.

/// Where values lie on the device.
struct FloatSpan {
  float* first = nullptr;
  std::int64_t count = 0;
};

class Collectives {
 public:
  Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  virtual ~Collectives() = default;

  /// Puts into the stream, or into what captures it: each value becomes its sum over all ranks. The
  /// ranks make the same calls in the same order. Throws std::runtime_error.
  virtual void sum(std::span<const FloatSpan> spans, cudaStream_t stream) = 0;
};

/// NCCL's, on the calling thread's device; ready, so that no later call waits for what only a first
/// one does. All ranks call it at once. Throws Unsupported without NCCL, and
/// std::runtime_error with the call that failed and what NCCL says of it.
std::unique_ptr<Collectives> make_nccl(Ranks& ranks);

/// "2.28.9"; empty in a build without NCCL.
std::string nccl_version();

}  // namespace crossover::cuda
