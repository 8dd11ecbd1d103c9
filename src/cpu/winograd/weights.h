// SPDX-License-Identifier: Apache-2.0
// The weights of a convolution as Winograd's F(2x2, 3x3) multiplies with them, G g G^T of each
// kernel g of 3x3, and back: few numbers beside the images.
#pragma once

#include <cstdint>

namespace crossover::cpu::winograd {

struct Weights {
  std::int64_t out = 0, in = 0;  ///< channels; multiples of `lanes`
  std::int64_t lanes = 0;        ///< at most 16
};

/// For the forward pass, from w [out][in][3][3]: to[points][out / lanes][in][lanes], of inputs
/// [begin, end).
void transform_weights(const Weights& of, const float* w, float* to, std::int64_t begin,
                       std::int64_t end);

/// For the gradient of the images, which is a convolution of dy by the mirrored kernels:
/// to[points][in / lanes][out][lanes], of outputs [begin, end).
void transform_mirrored_weights(const Weights& of, const float* w, float* to, std::int64_t begin,
                                std::int64_t end);

/// The gradient dw [out][in][3][3], G^T s G, of inputs [begin, end); s is the sum of `parts` arrays
/// [points][in / lanes][out / lanes][lanes of in][lanes of out].
void transform_back(const Weights& of, const float* sums, std::int64_t parts, float* dw,
                    std::int64_t begin, std::int64_t end);

}  // namespace crossover::cpu::winograd
