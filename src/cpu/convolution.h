// SPDX-License-Identifier: Apache-2.0
// Convolutions by oneDNN: which kernel each pass takes, and the layouts that follow from it.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "layout.h"
#include "lowering.h"

namespace crossover::cpu {

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

/// How whoever computes it likes best to make dw, and to read w in the forward pass, where images
/// lie as they do.
Layout weight_gradient_layout(const ConvolutionGrad& op, const Lowering& to);
Layout forward_weights_layout(const Convolution& op, const Lowering& to);

}  // namespace crossover::cpu
