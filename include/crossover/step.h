// SPDX-License-Identifier: Apache-2.0
// A training step as data: operations on numbered tensors, without any device in it.
//
// Everything that is timed is a Workload. The reference interpreter (reference.h) defines what each
// operation means; backends compile it (backend.h); cost.h counts it.
// Matrices are row-major; a tensor of more than two dimensions counts as [leading(shape), last].
// Floating-point tensors of one operation are of one type, but where T stands for it here: T is
// f32, bf16 or f16. Whatever the types, an operation computes its result from the stored operands
// as if exactly, and rounds it once, to the nearest number of the type that stores it, ties to
// even.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "crossover/tensor.h"

namespace crossover {

enum class Activation { identity, relu, sigmoid };

/// y = activation(x wT + bias).  x [batch, in], w [out, in], bias [out] or none, y [batch, out].
/// x and w are T; y is T or f32, and the bias of y's type.
struct Linear {
  Id x = none, w = none, bias = none, y = none;
  Activation activation = Activation::identity;
};

/// Gradients of a Linear with identity activation, from dy [batch, out]:
/// dw (+)= dyT x, dbias (+)= column sums of dy, dx = (dy w) * x_activation'.
/// x_activation is the activation that made x, its derivative taken from x itself; identity: no
/// factor. dx and dbias may be none. (+)= adds where `accumulate` is set and overwrites otherwise.
/// dx comes first: dw may be w itself, and dbias the layer's bias, which so are updated in place.
/// x, w, dy and dx are T; dw and dbias are f32.
struct LinearGrad {
  Id x = none, w = none, dy = none, dx = none, dw = none, dbias = none;
  Activation x_activation = Activation::identity;
  bool accumulate = false;
};

/// y = x in another type, elementwise: from f32, or to it.
struct Cast {
  Id x = none, y = none;
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
/// logits [batch, classes] f32, labels [batch] i32, loss [runs] f32, dlogits [batch, classes] T.
struct SoftmaxCrossEntropy {
  Id logits = none, labels = none, loss = none, dlogits = none;
  double scale =
      1;  ///< 1 / k where gradients are accumulated over k batches, times the factor that
          ///< keeps small gradients within the range of f16; it leaves the loss alone
};

/// w -= learning_rate * (gradient_factor * g) for each parameter. All f32.
struct Sgd {
  std::vector<Id> parameters, gradients;
  double learning_rate = 0;
  double gradient_factor = 1;  ///< takes back what the loss's `scale` put into the gradients. A
                               ///< gradient that is not finite makes its parameter not finite
};

/// AdamW (Loshchilov & Hutter 2019) as PyTorch computes it, decay decoupled:
/// w *= 1 - lr * decay; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g g;
/// w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + epsilon).
/// g stands for gradient_factor * gradient, as in Sgd. All f32, but for `step`, which is t: one i32
/// that the operation increments before use.
struct AdamW {
  std::vector<Id> parameters, gradients, m, v;
  std::vector<double> weight_decay;  ///< one for each parameter
  Id step = none;
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;
  double gradient_factor = 1;
};

/// c = op(a) op(b), where op transposes if its flag is set: op(a) [m, k], op(b) [k, n], c [m, n].
/// The product by itself, for measuring. c is neither a nor b. a and b are T; c is T or f32.
struct Gemm {
  Id a = none, b = none, c = none;
  bool transpose_a = false, transpose_b = false;
};

using Op = std::variant<Linear, LinearGrad, Cast, Activate, ActivateGrad, Add, SoftmaxCrossEntropy,
                        Sgd, AdamW, Gemm>;

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

/// What a Workload's storage types ask for: bf16, f16, or f32, which tf32 shares. Throws
/// std::invalid_argument where it stores both types of 16 bits.
Precision stored_precision(const Workload& workload);

/// The same as check(), and that the Workload is one of this precision.
void check(const Workload& workload, Precision precision);

}  // namespace crossover
