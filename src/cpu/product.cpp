// SPDX-License-Identifier: Apache-2.0
#include "product.h"

#include <algorithm>

#include "post_operations.h"

namespace crossover::cpu {
namespace {

dnnl::memory::desc matrix(Type type, std::int64_t rows, std::int64_t columns,
                          const std::array<std::int64_t, 2>& strides) {
  return {{rows, columns}, onednn_type(type), dnnl::memory::dims{strides[0], strides[1]}};
}

}  // namespace

std::string missing_for_products(Precision precision) {
  if (precision == Precision::f32) {
    return "";
  }
  if (precision != Precision::bf16) {
    return "the CPU backend multiplies f32 and bf16, not " + to_string(precision);
  }
  // oneDNN has a bf16 product from AVX-512 on; without the instructions it converts to f32, slowly.
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  for (const dnnl::cpu_isa with_bf16 :
       {dnnl::cpu_isa::avx512_core_bf16, dnnl::cpu_isa::avx512_core_fp16,
        dnnl::cpu_isa::avx512_core_amx, dnnl::cpu_isa::avx512_core_amx_fp16}) {
    if (isa == with_bf16) {
      return "";
    }
  }
  return "the CPU has no bf16 instructions (AVX512_BF16 or AMX), or oneDNN does "
         "not use them";
}

void require_products(Type type) {
  const Precision precision = type == Type::bf16  ? Precision::bf16
                              : type == Type::f16 ? Precision::f16
                                                  : Precision::f32;
  if (const std::string missing = missing_for_products(precision); !missing.empty()) {
    throw Unsupported(missing);
  }
}

dnnl::matmul::primitive_desc describe_product(const dnnl::engine& engine,
                                              const ProductShape& shape) {
  // Plain layouts: asked with format_tag::any, oneDNN 3.2 picks row-major itself for AVX2, the one
  // instruction set measured so far; and a blocked layout would have to be converted in each
  // update.
  const auto a = matrix(shape.operand_type, shape.m, shape.k, shape.a_strides);
  const auto b = matrix(shape.operand_type, shape.k, shape.n, shape.b_strides);
  const auto c = matrix(shape.result_type, shape.m, shape.n, {shape.n, 1});
  if (!shape.bias) {
    return {engine, a, b, c, attributes(shape.activation, shape.accumulate)};
  }
  const auto bias = matrix(shape.result_type, 1, shape.n, {shape.n, 1});
  return {engine, a, b, bias, c, attributes(shape.activation, shape.accumulate)};
}

namespace {

/// A sum of many terms, for one row or column of c. oneDNN adds its terms one after another to what
/// c has: each addition rounds as c does, and of terms that are far smaller little is left.
bool adds_terms_to_what_is_there(const ProductShape& shape) {
  constexpr std::int64_t many = 64;
  return shape.accumulate && std::min(shape.m, shape.n) == 1 && shape.k > many &&
         shape.result_type == Type::f32;
}

void add_sum(Lowering& to, const Argument& sum, Argument c, std::int64_t count) {
  c.read = c.written = true;
  to.add(OpCategory::product, 1, {sum, c}, [count](const Invocation& call) {
    const float* from = call.operand<const float>(0);
    float* into = call.operand<float>(1);
    for (std::int64_t i = 0; i < count; ++i) {
      into[i] += from[i];
    }
  });
}

}  // namespace

void add_product(Lowering& to, const ProductShape& shape, ProductOperands operands) {
  if (adds_terms_to_what_is_there(shape)) {
    const std::int64_t count = shape.m * shape.n;
    const Argument sum = to.reserve(count * bytes(Type::f32));
    ProductShape alone = shape;
    alone.accumulate = false;
    ProductOperands into = operands;
    into.c = sum;
    add_product(to, alone, into);
    add_sum(to, sum, operands.c, count);
    return;
  }
  Primitive matmul{.describe =
                       [shape](const dnnl::engine& engine) {
                         require_products(shape.operand_type);
                         return describe_product(engine, shape);
                       },
                   .arguments = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}};
  operands.a.read = operands.b.read = operands.bias.read = true;
  operands.c.written = true;
  operands.c.read |= shape.accumulate;
  std::vector<Argument> arguments{operands.a, operands.b, operands.c};
  if (shape.bias) {
    matmul.arguments.push_back(DNNL_ARG_BIAS);
    arguments.push_back(operands.bias);
  }
  const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                       static_cast<double>(shape.k);
  to.add(OpCategory::product, to.threads_for_flops(flops), arguments, std::move(matmul));
}

}  // namespace crossover::cpu
