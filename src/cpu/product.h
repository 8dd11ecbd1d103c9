// SPDX-License-Identifier: Apache-2.0
// One matrix product: a oneDNN matmul made once, with all it needs to run.
#pragma once

#include <array>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "crossover/step.h"

namespace crossover::cpu {

/// c [m, n] = activation(a [m, k] b [k, n] + bias [n]), or c += a b. Strides are in elements: a
/// matrix stored transposed is a view with its strides exchanged.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::array<std::int64_t, 2> a_strides{}, b_strides{};
  bool bias = false;
  Activation activation = Activation::identity;
  bool accumulate = false;
  Type operand_type = Type::f32;  ///< of a and b
  Type result_type = Type::f32;   ///< of c and the bias
};

/// Empty where oneDNN multiplies in that precision with instructions made for it; else what is
/// missing, in words.
std::string missing_for_products(Precision precision);

class Product {
 public:
  /// Made for the number of OpenMP threads in force; execute() must find the same. Throws
  /// dnnl::error.
  Product(const dnnl::engine& engine, dnnl::stream stream, const ProductShape& shape);

  /// Bytes of the scratchpad that execute() asks for.
  [[nodiscard]] std::int64_t scratchpad_bytes() const { return scratchpad_bytes_; }

  void use_scratchpad(void* scratchpad);

  /// The operands of one run; bias may be null where the shape has none.
  void execute(const void* a, const void* b, const void* bias, void* c);

 private:
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  dnnl::memory a_, b_, bias_, c_, scratchpad_;
  std::array<const void*, 4> bound_{};  ///< what a_, b_, bias_, c_ point to now
  std::array<dnnl_exec_arg_t, 5> arguments_{};
  int argument_count_ = 0;
  std::int64_t scratchpad_bytes_ = 0;
};

}  // namespace crossover::cpu
