// SPDX-License-Identifier: Apache-2.0
// What a step puts into the stream, as data: the planner decides it, tests read it, bind.h makes
// calls of it. Needs no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "../product_form.h"
#include "crossover/step.h"

namespace crossover::cuda {

/// Which rows a step reads and from where: straight from the data set, or from one of the staging
/// buffers.
struct Position {
  std::int64_t first_row = 0;
  int buffer = in_place;
  static constexpr int in_place = -1;
};

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

// One launch each, but for the loss of a large batch, which takes two.

/// Of tensors or spans that one kernel takes: they travel as its parameters.
constexpr std::size_t max_spans = 32;

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
/// Several from one type to another: so none of them reads what another writes.
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
struct ColumnSumsLaunch {
  Operand matrix, sums;
  std::int64_t rows = 0, columns = 0;
  bool accumulate = false;
};
struct LossLaunch {
  Operand logits, labels, loss, dlogits;
  std::int64_t rows = 0, classes = 0;
  float factor = 0;      ///< scale / batch
  bool advance = false;  ///< the last loss of its step also counts the run
};
/// Counts a run where the step has no loss to do it.
struct AdvanceLaunch {};

/// Consecutive tensors that an optimizer treats alike.
struct Span {
  std::vector<std::int64_t> offsets;  ///< of parameters, gradients, then states
  std::int64_t count = 0;
  double weight_decay = 0;
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

using Launch = std::variant<ProductLaunch, BiasActivateLaunch, CastLaunch, ActivateLaunch,
                            ActivateGradLaunch, AddLaunch, ColumnSumsLaunch, LossLaunch,
                            AdvanceLaunch, SgdLaunch, AdamWTimeLaunch, AdamWLaunch>;

}  // namespace crossover::cuda
