// SPDX-License-Identifier: Apache-2.0
// Matrix products, which several operations consist of, by oneDNN's matmul.
#pragma once

#include <array>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "crossover/step.h"
#include "lowering.h"

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

/// Throws dnnl::error.
dnnl::matmul::primitive_desc describe_product(const dnnl::engine& engine,
                                              const ProductShape& shape);

/// Adds a kernel that takes all its operands in the plain layout.
void add_product(Lowering& to, const ProductShape& shape, ProductOperands operands);

}  // namespace crossover::cpu
