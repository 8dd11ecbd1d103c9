// SPDX-License-Identifier: Apache-2.0
// What a step puts into the stream, as data: the planner decides it, tests read it, bind.h makes
// calls of it. Needs no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "../libraries/convolution_form.h"
#include "../libraries/product_form.h"
#include "arrangement.h"
#include "crossover/step.h"

namespace crossover::cuda {

/// Which rows a step reads and from where: straight from the data set, or from one of the staging
/// buffers.
struct Position {
  std::int64_t first_row = 0;
  int buffer = in_place;
  static constexpr int in_place = -1;
};
/// For operands that stay where they are.
constexpr Position somewhere{.buffer = 0};

/// Where an operand lies in the device block. Only a view depends on the position.
struct Operand {
  std::int64_t offset = -1;  ///< bytes; -1: there is none
  std::int64_t row_bytes = 0;
  std::int64_t staged = -1;  ///< its place in the first staging buffer
  std::int64_t buffer_bytes = 0;
  Type type = Type::f32;

  [[nodiscard]] bool exists() const { return offset >= 0 || staged >= 0; }
  [[nodiscard]] bool is_view() const { return staged >= 0 || row_bytes > 0; }
  [[nodiscard]] std::int64_t at(const Position& position) const {
    return staged >= 0 && position.buffer >= 0 ? staged + position.buffer * buffer_bytes
                                               : offset + position.first_row * row_bytes;
  }
};

/// The part of it that begins so many bytes after it.
inline Operand part_of(Operand whole, std::int64_t bytes) {
  whole.offset += bytes;
  whole.staged += whole.staged >= 0 ? bytes : 0;
  return whole;
}

/// Of tensors or spans that one kernel takes: they travel as its parameters.
constexpr std::size_t max_spans = 32;

/// Tensors whose rows one kernel gathers.
constexpr std::size_t max_gathered = 8;

struct ProductLaunch {
  ProductForm form;
  Operand a, b, d, vector, mask;
};
/// y = activation(x + bias), bias [columns]: what no epilogue did. x is f32, and y itself where
/// that is f32: so the product is not rounded to 16 bits before its bias.
struct BiasActivateLaunch {
  Operand x, bias, y;
  std::int64_t rows = 0, columns = 0;
  Activation activation = Activation::identity;
};
/// Several from one type to another: so none of them reads what another writes. Or of 16 bits as
/// they are, where the copy of a parameter is kept beside the one that its optimizer writes.
struct CastLaunch {
  struct One {
    Operand x, y;
    std::int64_t count = 0;
  };
  std::vector<One> casts;  ///< at most max_spans
};
struct ActivateLaunch {
  Operand x, y;
  std::int64_t count = 0;
  Activation activation = Activation::identity;
};
struct ActivateGradLaunch {
  Operand y, dy, dx;
  std::int64_t count = 0;
  Activation activation = Activation::identity;
};
struct AddLaunch {
  Operand a, b, y;
  std::int64_t count = 0;
};
/// Sums of equal parts of the rows: sums [parts, columns].
struct ColumnSumsLaunch {
  Operand matrix, sums;
  std::int64_t rows = 0, columns = 0;
  bool accumulate = false;  ///< where parts is 1
  std::int64_t parts = 1;
};
struct LossLaunch {
  Operand logits, labels, loss, dlogits;
  std::int64_t rows = 0, classes = 0;
  std::int64_t time = 1;      ///< the label of row t * batch + b is labels[b, t]
  float factor = 0;           ///< scale / rows
  bool advance = false;       ///< the last loss of its step also counts the run
  int threads = 1;            ///< of a row: one, a warp, or a block
  bool in_one_block = false;  ///< all of it; else its mean is a launch of its own
};
/// loss = the mean of the losses of rows, which the launch before it has left.
struct MeanLossLaunch {
  Operand loss;
  std::int64_t rows = 0;
  bool advance = false;
};
/// Counts a run where the step has no loss to do it.
struct AdvanceLaunch {};

/// Consecutive tensors that an optimizer treats alike.
struct Span {
  std::vector<std::int64_t> offsets;  ///< of parameters, gradients, then states
  std::int64_t count = 0;
  double weight_decay = 0;
  Operand copy;  ///< of the parameters in 16 bits, where there is one
};
struct SgdLaunch {
  std::vector<Span> spans;   ///< at most max_spans
  double learning_rate = 0;  ///< times the gradient factor
};
/// Increments the time and derives this update's factors from it.
struct AdamWTimeLaunch {
  Operand time;
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, gradient_factor = 1;
};
struct AdamWLaunch {
  std::vector<Span> spans;  ///< at most max_spans
  double learning_rate = 0;
};

// ---- images, channels-last: [batch, height, width, channels]

/// x, w and y of a Convolution, or their gradients: the form's pass says which one is written.
struct ConvolutionLaunch {
  ConvolutionForm form;
  Operand x, w, y, bias;
};
/// y = activation(y + bias), y [rows, channels], bias f32: what the library did not fuse.
struct ChannelBiasLaunch {
  Operand y, bias;
  std::int64_t rows = 0, channels = 0;
  Activation activation = Activation::identity;
};

/// Batch normalization sees an image as [rows, channels]. Its sums are taken in two launches: of
/// `chunks` parts of the rows first, then of these sums.
struct ChannelSums {
  std::int64_t rows = 0, channels = 0;
  std::int64_t chunks = 1;
  Operand partial;  ///< f32 [chunks, 2, channels]
};
struct BatchNormStatisticsLaunch {
  Operand x;
  ChannelSums sums;
};
struct BatchNormLaunch {
  Operand x, scale, shift, addend, y, mean, inverse_deviation;
  ChannelSums sums;
  double epsilon = 0;
  Activation activation = Activation::identity;
};
struct BatchNormGradSumsLaunch {
  Operand x, mean, inverse_deviation, y, dy, dy_more;
  ChannelSums sums;
  Activation activation = Activation::identity;
};
struct BatchNormGradLaunch {
  BatchNormGradSumsLaunch of;
  Operand scale, dx, dscale, dshift, daddend;
};

/// A window over images, and how many positions it has.
struct Pooling {
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;
  std::int64_t positions_down = 0, positions_across = 0;
  std::int64_t size = 1, stride = 1, padding = 0;
};
struct MaxPoolLaunch {
  Operand x, y, where;
  Pooling pooling;
};
struct MaxPoolGradLaunch {
  Operand y, where, dy, dx;
  Pooling pooling;
  Activation x_activation = Activation::identity;
};
struct AveragePoolLaunch {
  Operand x, y;
  Pooling pooling;
};
struct AveragePoolGradLaunch {
  Operand x, dy, dx;
  Pooling pooling;
  Activation x_activation = Activation::identity;
};
/// Between x [batch, pixels, channels] and y [batch, channels].
struct GlobalAveragePoolLaunch {
  Operand x, y;
  std::int64_t batch = 0, pixels = 0, channels = 0;
};
struct GlobalAveragePoolGradLaunch {
  Operand dy, dx;
  std::int64_t batch = 0, pixels = 0, channels = 0;
};

/// y = x, element by element in the plain order.
struct ReshapeLaunch {
  Operand x, y;
  std::int64_t count = 0;
  Arrangement from, to;

  [[nodiscard]] bool moves() const { return !from.is_plain() || !to.is_plain(); }
};

// ---- dropout, sequences

/// Increments an i32.
struct CountLaunch {
  Operand counter;
};
/// Dropout, or its gradient from dy: the same but for what they are called.
struct DropoutLaunch {
  Operand x, y, step;
  std::int64_t count = 0;
  Arrangement arrangement;
  double probability = 0;
  std::int64_t seed = 0;
};
struct EmbeddingLaunch {
  Operand tokens, table, y;
  std::int64_t batch = 0, time = 0, width = 0;
};
/// Rows of dtable whose token occurs; the others are not touched.
struct EmbeddingGradLaunch {
  Operand tokens, dy, dtable;
  std::int64_t batch = 0, time = 0, width = 0;
};
/// `count` f32 become 0.
struct ZeroLaunch {
  Operand to;
  std::int64_t count = 0;
};
/// One time step: from `sums` f32 [batch, 4 hidden], the products without their biases; it may be
/// where `gates` is. Without c_before, that is 0.
struct LstmGatesLaunch {
  Operand sums, b_ih, b_hh, c_before, gates, c, h;
  std::int64_t batch = 0, hidden = 0;
};
/// One time step backwards. carry_h and carry_c f32 [batch, hidden] hold what comes from the step
/// after it, which the last one does not have; carry_c then holds what goes to the step before.
struct LstmGatesGradLaunch {
  Operand gates, c_before, c, dh, dgates, carry_h, carry_c;
  std::int64_t batch = 0, hidden = 0;
  bool is_last = false;  ///< it also makes carry_h 0
};

using Launch =
    std::variant<ProductLaunch, BiasActivateLaunch, CastLaunch, ActivateLaunch, ActivateGradLaunch,
                 AddLaunch, ColumnSumsLaunch, LossLaunch, MeanLossLaunch, AdvanceLaunch, SgdLaunch,
                 AdamWTimeLaunch, AdamWLaunch, ConvolutionLaunch, ChannelBiasLaunch,
                 BatchNormStatisticsLaunch, BatchNormLaunch, BatchNormGradSumsLaunch,
                 BatchNormGradLaunch, MaxPoolLaunch, MaxPoolGradLaunch, AveragePoolLaunch,
                 AveragePoolGradLaunch, GlobalAveragePoolLaunch, GlobalAveragePoolGradLaunch,
                 ReshapeLaunch, CountLaunch, DropoutLaunch, EmbeddingLaunch, EmbeddingGradLaunch,
                 ZeroLaunch, LstmGatesLaunch, LstmGatesGradLaunch>;

}  // namespace crossover::cuda
