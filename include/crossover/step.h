// SPDX-License-Identifier: Apache-2.0
// A training step as data: operations on numbered tensors, without any device in it.
//
// Everything that is timed is a Workload. The reference interpreter (reference.h) defines what each
// operation means; backends compile it (backend.h); cost.h counts it.
// Matrices are row-major; a tensor of more than two dimensions counts as [leading(shape), last].
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "crossover/tensor.h"

namespace crossover {

enum class Activation { identity, relu, sigmoid };

/// y = activation(x wT + bias).  x [batch, in], w [out, in], bias [out] or none, y [batch, out].
struct Linear {
  Id x = none, w = none, bias = none, y = none;
  Activation activation = Activation::identity;
};

/// Gradients of a Linear with identity activation, from dy [batch, out]:
/// dw (+)= dyT x, dbias (+)= column sums of dy, dx = (dy w) * x_activation'.
/// x_activation is the activation that made x, its derivative taken from x itself; identity: no
/// factor. dx and dbias may be none. (+)= adds where `accumulate` is set and overwrites otherwise.
/// dx comes first: dw may be w itself, and dbias the layer's bias, which so are updated in place.
struct LinearGrad {
  Id x = none, w = none, dy = none, dx = none, dw = none, dbias = none;
  Activation x_activation = Activation::identity;
  bool accumulate = false;
};

/// y = activation(x), elementwise.
struct Activate {
  Id x = none, y = none;
  Activation activation = Activation::identity;
};

/// dx = dy * activation', elementwise, the derivative taken from the activation's result y.
struct ActivateGrad {
  Id y = none, dy = none, dx = none;
  Activation activation = Activation::identity;
};

/// y = a + b, elementwise: a residual join, and the sum of gradients where a value is used twice.
struct Add {
  Id a = none, b = none, y = none;
};

/// loss[run] = mean over the batch of -log softmax(logits)[label], natural logarithm;
/// dlogits = (softmax(logits) - onehot(label)) * scale / batch.
/// logits and dlogits [batch, classes], labels [batch] i32, loss [runs].
struct SoftmaxCrossEntropy {
  Id logits = none, labels = none, loss = none, dlogits = none;
  double scale = 1;  ///< 1 / k where gradients are accumulated over k batches
};

/// w -= learning_rate * g for each parameter.
struct Sgd {
  std::vector<Id> parameters, gradients;
  double learning_rate = 0;
};

/// AdamW (Loshchilov & Hutter 2019) as PyTorch computes it, decay decoupled:
/// w *= 1 - lr * decay; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g g;
/// w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + epsilon).
/// `step` is t, one i32 that the operation increments before use.
struct AdamW {
  std::vector<Id> parameters, gradients, m, v;
  std::vector<double> weight_decay;  ///< one for each parameter
  Id step = none;
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;
};

/// c = op(a) op(b), where op transposes if its flag is set: op(a) [m, k], op(b) [k, n], c [m, n].
/// The product by itself, for measuring. c is neither a nor b.
struct Gemm {
  Id a = none, b = none, c = none;
  bool transpose_a = false, transpose_b = false;
};

using Op = std::variant<Linear, LinearGrad, Activate, ActivateGrad, Add, SoftmaxCrossEntropy, Sgd,
                        AdamW, Gemm>;

/// Operations in the order in which they run.
struct Step {
  std::vector<Op> ops;
};

/// One execution of a step: its input tensors view rows [first_row, first_row + batch) of their
/// sources.
struct Run {
  int step = 0;  ///< index into Workload::steps
  std::int64_t first_row = 0;
};

/// A few distinct steps over one table of tensors, and the order in which they run: a training
/// epoch (full batches, then a short one), or a single operation to be measured by itself.
struct Workload {
  std::vector<Tensor> tensors;
  std::vector<Step> steps;
  std::vector<Run> order;

  const Tensor& operator[](Id id) const { return tensors[static_cast<std::size_t>(id)]; }
};

/// The tensors that an operation reads and writes; absent ones (none) are left out.
/// An operand that is updated in place stands in both.
struct Operands {
  std::vector<Id> reads, writes;
};
Operands operands(const Op& op);

const char* name(const Op& op);  ///< "Linear", "LinearGrad", ...

/// Throws std::invalid_argument with the operation and the tensor at fault where shapes, types or
/// roles of a Workload do not fit what its operations ask for.
void check(const Workload& workload);

}  // namespace crossover
