// SPDX-License-Identifier: Apache-2.0
#include "product.h"

namespace crossover::cpu {
namespace {

dnnl::memory::data_type type_of(Type type) {
  switch (type) {
    case Type::f32:
      return dnnl::memory::data_type::f32;
    case Type::i32:
      return dnnl::memory::data_type::s32;
    case Type::bf16:
      return dnnl::memory::data_type::bf16;
    case Type::f16:
      return dnnl::memory::data_type::f16;
  }
  return dnnl::memory::data_type::undef;
}

dnnl::memory::desc matrix(Type type, std::int64_t rows, std::int64_t columns,
                          const std::array<std::int64_t, 2>& strides) {
  return {{rows, columns}, type_of(type), dnnl::memory::dims{strides[0], strides[1]}};
}

dnnl::primitive_attr attributes(const ProductShape& shape) {
  dnnl::post_ops after;
  if (shape.accumulate) {
    after.append_sum(1.0F);
  }
  if (shape.activation == Activation::relu) {
    after.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
  } else if (shape.activation == Activation::sigmoid) {
    after.append_eltwise(dnnl::algorithm::eltwise_logistic, 0.0F, 0.0F);
  }
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  // Its own scratchpad would be allocated by oneDNN behind our back, in the timed loop for all we
  // know.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
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
  return "the CPU has no instructions for products of bf16 (AVX512_BF16 or AMX), or oneDNN does "
         "not use them";
}

Product::Product(const dnnl::engine& engine, dnnl::stream stream, const ProductShape& shape)
    : stream_(std::move(stream)) {
  // Plain layouts: asked with format_tag::any, oneDNN 3.2 picks row-major itself for AVX2, the one
  // instruction set measured so far; and a blocked layout would have to be converted in each
  // update.
  const auto a = matrix(shape.operand_type, shape.m, shape.k, shape.a_strides);
  const auto b = matrix(shape.operand_type, shape.k, shape.n, shape.b_strides);
  const auto c = matrix(shape.result_type, shape.m, shape.n, {shape.n, 1});
  const auto bias =
      shape.bias ? matrix(shape.result_type, 1, shape.n, {shape.n, 1}) : dnnl::memory::desc{};
  const dnnl::primitive_attr attr = attributes(shape);
  const dnnl::matmul::primitive_desc made =
      shape.bias ? dnnl::matmul::primitive_desc(engine, a, b, bias, c, attr)
                 : dnnl::matmul::primitive_desc(engine, a, b, c, attr);
  primitive_ = dnnl::matmul(made);
  scratchpad_bytes_ = static_cast<std::int64_t>(made.scratchpad_desc().get_size());
  a_ = dnnl::memory(a, engine, nullptr);
  b_ = dnnl::memory(b, engine, nullptr);
  c_ = dnnl::memory(c, engine, nullptr);
  scratchpad_ = dnnl::memory(made.scratchpad_desc(), engine, nullptr);
  const auto add_argument = [&](int index, const dnnl::memory& memory) {
    arguments_.at(static_cast<std::size_t>(argument_count_++)) = {index, memory.get()};
  };
  add_argument(DNNL_ARG_SRC, a_);
  add_argument(DNNL_ARG_WEIGHTS, b_);
  add_argument(DNNL_ARG_DST, c_);
  add_argument(DNNL_ARG_SCRATCHPAD, scratchpad_);
  if (shape.bias) {
    bias_ = dnnl::memory(bias, engine, nullptr);
    add_argument(DNNL_ARG_BIAS, bias_);
  }
}

void Product::use_scratchpad(void* scratchpad) { scratchpad_.set_data_handle(scratchpad); }

void Product::execute(const void* a, const void* b, const void* bias, void* c) {
  // Most operands never move; only a batch of rows of the data set does.
  const auto bind = [](dnnl::memory& memory, const void*& bound, const void* data) {
    if (data != bound) {
      memory.set_data_handle(const_cast<void*>(data));  // oneDNN does not write through its inputs
      bound = data;
    }
  };
  bind(a_, bound_[0], a);
  bind(b_, bound_[1], b);
  bind(bias_, bound_[2], bias);
  bind(c_, bound_[3], c);
  // The C function, because the C++ one collects its arguments in a vector on every call.
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), stream_.get(), argument_count_, arguments_.data()),
      "oneDNN could not execute a matrix product");
}

}  // namespace crossover::cpu
