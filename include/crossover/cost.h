// SPDX-License-Identifier: Apache-2.0
// What a Workload costs, counted over its operations: the basis of the roofline and predictions.
#pragma once

#include <cstdint>

#include "crossover/step.h"

namespace crossover {

/// flops: additions and multiplications; one per element for ReLU, its derivative and a bias, 4 for
/// sigmoid (exponential, addition, division, sign), 3 for its derivative, 5 per logit and 2 per
/// sample for softmax cross-entropy with its gradient, 2 per parameter for SGD, 14 for AdamW; none
/// for a Cast, and none for the gradient factor of an optimizer.
/// bytes: every operand read once and every result written once, as if nothing stayed in a cache.
/// launches: what a framework starts separately: a matrix product, a reduction, an elementwise
/// pass.
Cost cost(const Workload& workload, const Op& op);
Cost cost(const Workload& workload, const Step& step);
Cost cost(const Workload& workload);  ///< the whole order, once

/// Bytes of all tensors that the step touches, each counted once: its least memory traffic with
/// cold caches.
std::int64_t footprint_bytes(const Workload& workload, const Step& step);

}  // namespace crossover
