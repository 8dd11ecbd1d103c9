// SPDX-License-Identifier: Apache-2.0
// What a Workload costs, counted over its operations: the basis of the roofline and predictions.
#pragma once

#include <cstdint>

#include "crossover/step.h"

namespace crossover {

/// flops: additions and multiplications, those of a convolution as if nothing were padding; one per
/// element for ReLU, its derivative, a bias and a dropout, 4 for sigmoid (exponential, addition,
/// division, sign) and tanh, 3 for the derivative, and of the other activations and of their
/// derivatives what src/operations/fit.h says; one per place of each window of a pooling, one
/// per window for the gradient of a maximum; 7 per element for batch normalization, 10 for its
/// gradients, 8 and 13 for layer normalization; 6 per score of an attention beside its two
/// products, and beside the five of its gradient, which computes the scores again; what causality
/// hides does not count; 7 per gate and 8 per cell of an LSTM beside its products, 5 and 10 for its
/// gradients; 5 per logit and 2 per row of them for softmax cross-entropy with its gradient, 4
/// and 14 per element for mean squared error and binary cross-entropy with theirs; 2 per parameter
/// for SGD, 4 with momentum, 14 for AdamW; none for a Cast, a Reshape and an Embedding, and none
/// for the gradient factor of an optimizer. avoidable_flops: 20 of the 36 multiplications, each
/// with its addition, of 2x2 results of a convolution in float32 that has_winograd(); its
/// transforms are not counted. bytes: every operand read once and every result written once, as if
/// nothing stayed in a cache. launches: what a framework starts separately: a matrix product, a
/// reduction, an elementwise pass.
Cost cost(const Workload& workload, const Op& op);
Cost cost(const Workload& workload, const Step& step);
Cost cost(const Workload& workload);  ///< the whole order, once

/// Bytes of all tensors that the step touches, each counted once: its least memory traffic with
/// cold caches.
std::int64_t footprint_bytes(const Workload& workload, const Step& step);

}  // namespace crossover
