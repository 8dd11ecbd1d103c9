// SPDX-License-Identifier: Apache-2.0
#include "../libraries/library.h"

#include <algorithm>
#include <cmath>

#include "../base/runtime.h"

namespace crossover::cuda {
namespace {

void fill(void* to, int byte, std::int64_t bytes, cudaStream_t stream) {
  if (to != nullptr) {
    CROSSOVER_CUDA_CHECK(cudaMemsetAsync(to, byte, static_cast<std::size_t>(bytes), stream));
  }
}

template <class T>
T read(const void* from, cudaStream_t stream) {
  T value{};
  CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(&value, from, sizeof value, cudaMemcpyDeviceToHost, stream));
  CROSSOVER_CUDA_CHECK(cudaStreamSynchronize(stream));
  return value;
}

/// All operands zero, and every bit of a mask that the product reads set.
void clear(const CalledProduct& of, cudaStream_t stream) {
  const ProductForm& form = of.form;
  const std::int64_t vector = form.epilogue == Epilogue::b_sum ? form.n : form.m;
  fill(of.a, 0, form.m * form.k * bytes(form.factors), stream);
  fill(of.b, 0, form.k * form.n * bytes(form.factors), stream);
  fill(of.d, 0, form.m * form.n * bytes(form.result), stream);
  fill(of.vector, 0, vector * bytes(form.result), stream);
  fill(of.mask, writes_mask(form.epilogue) ? 0 : 0xff, mask_bytes(form.m, form.n), stream);
}

/// Three quarters of the way to the next number of tf32, which is the other one.
constexpr float factor_of_tf32 = 1 + 0.75F * 0x1p-10F;
constexpr float rounded_to_tf32 = 1 + 0x1p-10F;

void put_factor(void* at, cudaStream_t stream) {
  CROSSOVER_CUDA_CHECK(
      cudaMemcpyAsync(at, &factor_of_tf32, sizeof factor_of_tf32, cudaMemcpyHostToDevice, stream));
}

/// From what became of the square of that number.
Tf32Factors factors_of(float square) {
  constexpr float few_ulp = 0x1p-20F;
  if (std::abs(square - factor_of_tf32 * factor_of_tf32) < few_ulp) {
    return Tf32Factors::exact;
  }
  return std::abs(square - rounded_to_tf32 * rounded_to_tf32) < few_ulp ? Tf32Factors::rounded
                                                                        : Tf32Factors::truncated;
}

}  // namespace

Tf32Factors measure_tf32_factors(const Product& product, const CalledProduct& of,
                                 const Workspace& workspace, cudaStream_t stream) {
  // The only product of D's first element that is not zero.
  clear(of, stream);
  for (const Address& first : {of.a, of.b}) {
    put_factor(first, stream);
  }
  product.execute(stream, of, workspace);
  return factors_of(read<float>(of.d, stream));
}

Tf32Factors measure_tf32_factors(const PreparedConvolution& convolution,
                                 const CalledConvolution& of, const Workspace& workspace,
                                 cudaStream_t stream) {
  const ConvolutionForm& form = of.form;
  const auto clear = [&](void* to, std::int64_t count) {
    fill(to, 0, count * bytes(Type::f32), stream);
  };
  clear(of.x, form.batch * form.in * form.height * form.width);
  clear(of.w, form.out * form.in / form.groups * form.size.product());
  clear(of.y, form.batch * form.out * form.positions_down * form.positions_across);
  clear(of.bias, form.out);
  // The first element of y and one of x, the first unless dilation steps over it, meet by this
  // weight, whichever of the three is made of the others.
  const bool plain = form.layout == Layout::plain;
  const auto place = [](std::int64_t padding, std::int64_t dilation) {
    return (padding + dilation - 1) / dilation;
  };
  const Pair at(place(form.padding.down, form.dilation.down),
                place(form.padding.across, form.dilation.across));
  const std::int64_t row =
      std::min(at.down * form.dilation.down - form.padding.down, form.height - 1);
  const std::int64_t column =
      std::min(at.across * form.dilation.across - form.padding.across, form.width - 1);
  auto* image = static_cast<float*>(of.x) + (row * form.width + column) * (plain ? 1 : form.in);
  auto* weight = static_cast<float*>(of.w) +
                 (at.down * form.size.across + at.across) * (plain ? 1 : form.in / form.groups);
  void* result = form.pass == ConvolutionPass::forward ? of.y.at
                 : form.pass == ConvolutionPass::dx    ? image
                                                       : weight;
  for (void* to : {static_cast<void*>(image), static_cast<void*>(weight), of.y.at}) {
    if (to != result) {
      put_factor(to, stream);
    }
  }
  convolution.execute(stream, of, workspace);
  return factors_of(read<float>(result, stream));
}

bool measure_mask_at_zero(const Product& product, const CalledProduct& of,
                          const Workspace& workspace, cudaStream_t stream) {
  clear(of, stream);
  product.execute(stream, of, workspace);
  return (read<unsigned char>(of.mask, stream) & 1U) != 0;
}

}  // namespace crossover::cuda
