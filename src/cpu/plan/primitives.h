// SPDX-License-Identifier: Apache-2.0
// oneDNN: its primitives, matrix products and convolutions.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../base/layout.h"
#include "crossover/activation.h"
#include "crossover/step.h"
#include "lowering.h"

namespace crossover::cpu {

// ---- A oneDNN primitive made once, with all it needs to run.

/// Bytes of the scratchpad that a primitive asks for.
std::int64_t scratchpad_bytes(const dnnl::primitive_desc_base& description);

class BoundPrimitive {
 public:
  /// `arguments`: DNNL_ARG_..., one for each operand. Made for the number of OpenMP threads in
  /// force; execute() must find the same. Throws dnnl::error.
  BoundPrimitive(const dnnl::primitive_desc_base& description, const dnnl::engine& engine,
                 dnnl::stream stream, std::span<const int> arguments,
                 std::span<const Operand> operands, void* scratchpad);
  BoundPrimitive(const BoundPrimitive&) = delete;  // a copy would share its arguments' places
  BoundPrimitive& operator=(const BoundPrimitive&) = delete;
  ~BoundPrimitive() = default;

  void execute(const Position& now);

 private:
  /// An operand that lies elsewhere in each run: a batch of rows of the data set.
  struct Moving {
    dnnl_memory_t memory = nullptr;
    Operand operand;
  };

  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::vector<Moving> moving_;
};

// ---- What every oneDNN primitive is made with, and what it does to its result before that is
// stored.

inline void append(Activation activation, dnnl::post_ops& to) {
  if (activation != Activation::identity) {
    with_activation(activation, [&to](auto of) {
      const auto& function = decltype(of)::template onednn<dnnl::algorithm>;
      to.append_eltwise(function.algorithm, function.alpha, function.beta);
    });
  }
}

/// activation(result), or activation(result + what was there).
inline dnnl::primitive_attr attributes(Activation activation = Activation::identity,
                                       bool accumulate = false) {
  dnnl::post_ops after;
  if (accumulate) {
    after.append_sum(1.0F);
  }
  append(activation, after);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  // Its own scratchpad would be allocated by oneDNN behind our back, in the timed loop for all we
  // know.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// ---- Matrix products, which several operations consist of, by oneDNN's matmul.

/// c [m, n] = activation(a [m, k] b [k, n] + bias [n]), or c += a b. Strides are in elements: a
/// matrix stored transposed is a view with its strides exchanged.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::array<std::int64_t, 2> a_strides{}, b_strides{};
  bool bias = false;
  Activation activation = Activation::identity;
  bool accumulate = false;
  /// It never changes: where oneDNN likes a blocked layout best, it gets it before the first step.
  bool b_is_constant = false;
  Type operand_type = Type::f32;  ///< of a and b
  Type result_type = Type::f32;   ///< of c and the bias
};

/// What a product reads and writes: tensors, parts of them, or of the workspace. No bias where the
/// shape has none.
struct ProductOperands {
  Argument a, b, bias, c;
};

/// Empty where oneDNN multiplies in that precision with instructions made for it; else what is
/// missing, in words.
std::string missing_for_products(Precision precision);

/// Throws Unsupported where something is missing for products of that type.
void require_products(Type type);

/// With all operands where tensors have them. Throws Unsupported, dnnl::error.
dnnl::matmul::primitive_desc describe_product(const dnnl::engine& engine,
                                              const ProductShape& shape);

/// Adds a kernel that takes all its operands in the plain layout, but for a b that is constant.
void add_product(Lowering& to, const ProductShape& shape, ProductOperands operands);

// ---- Convolutions by oneDNN: which kernel each pass takes, and the layouts that follow from it.

/// What oneDNN has for a pass, and how it takes its operands. Each throws Unsupported where
/// something is missing for products of that type, dnnl::error.
dnnl::convolution_forward::primitive_desc describe_forward(const Convolution& op,
                                                           const Lowering& to);
dnnl::convolution_backward_data::primitive_desc describe_backward_data(const ConvolutionGrad& op,
                                                                       const Lowering& to);
dnnl::convolution_backward_weights::primitive_desc describe_backward_weights(
    const ConvolutionGrad& op, const Lowering& to);

/// Threads of each pass.
int convolution_threads(const Tensor& w, const Tensor& y, const Lowering& to);

/// How oneDNN likes best to make dw, and to read w in the forward pass, where images lie as they
/// do.
Layout weight_gradient_layout(const ConvolutionGrad& op, const Lowering& to);
Layout forward_weights_layout(const Convolution& op, const Lowering& to);

}  // namespace crossover::cpu
