// SPDX-License-Identifier: Apache-2.0
// The list of operations. To add one: docs/adding.md.
//
// Matrices are row-major; a tensor of more than two dimensions counts as [leading(shape), last].
// Floating-point tensors of one operation are of one type, but where T stands for it: T is f32,
// bf16 or f16. Whatever the types, an operation computes its result from the stored operands as if
// exactly, and rounds it once, to the nearest number of the type that stores it, ties to even.
#pragma once

#include <variant>

#include "crossover/operation.h"
#include "crossover/operations/attention.h"
#include "crossover/operations/dense.h"
#include "crossover/operations/elementwise.h"
#include "crossover/operations/image.h"
#include "crossover/operations/loss.h"
#include "crossover/operations/movement.h"
#include "crossover/operations/normalization.h"
#include "crossover/operations/recurrent.h"
#include "crossover/operations/resample.h"
#include "crossover/operations/update.h"

namespace crossover {

template <Operation... Operations>
using OneOf = std::variant<Operations...>;

using Op = OneOf<Linear, LinearGrad, Cast, Activate, ActivateGrad, Add, SoftmaxCrossEntropy, Update,
                 Gemm, Convolution, ConvolutionGrad, ChannelBiasGrad, Norm, NormGrad, Pool,
                 PoolGrad, Dropout, DropoutGrad, Embedding, EmbeddingGrad, PositionEmbedding,
                 PositionEmbeddingGrad, Attention, AttentionGrad, Recurrent, RecurrentGrad, Reshape,
                 ElementwiseLoss, Rearrange, Multiply, MultiplyGrad, Softmax, SoftmaxGrad, Matmul,
                 AllReduce, Zero, Map, MapGrad, Resample>;

const char* name(const Op& op);  ///< "Linear", "LinearGrad", ...

OpCategory category(const Op& op);

Operands operands(const Op& op);

/// The rule by which an operation updates parameters; null where it does not, or by another rule.
template <class Rule>
const Rule* rule_of(const Op& op) {
  const auto* update = std::get_if<Update>(&op);
  return update == nullptr ? nullptr : std::get_if<Rule>(&update->rule);
}

/// The products of an operation, in the order in which it computes them: of a layer y = x wT,
/// dx = dy w, dw = dyT x. Empty where it is none.
std::vector<OpProduct> products_of(const Workload& workload, const Op& op);

}  // namespace crossover
