// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend does for a Workload, decided on the host without any call of CUDA: memory,
// products with their epilogues, kernels and their order. program.h only carries it out.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "crossover/backend.h"
#include "crossover/step.h"

namespace crossover::cuda {

/// What cuBLASLt does to a product's result D, column-major [m, n], before it is stored.
enum class Epilogue {
  none,
  bias,            ///< + vector [m]
  relu,            ///< max(., 0)
  relu_bias,       ///< both
  relu_mask,       ///< relu, and a bit for each positive element into the mask
  relu_mask_bias,  ///< with bias
  drelu,           ///< * mask
  drelu_bias_sum,  ///< drelu, and the sums over n into vector [m]: the layer below's bias gradient
  b_sum,           ///< the sums of B over k into vector [n]: the same layer's bias gradient
};
bool reads_vector(Epilogue epilogue);
bool writes_vector(Epilogue epilogue);
bool uses_mask(Epilogue epilogue);
bool writes_mask(Epilogue epilogue);

/// D (+)= A B in cuBLASLt's column-major terms, everything dense: our row-major [rows, columns] is
/// its [columns, rows]. A is stored as [m, k], or as [k, m] where it is transposed; B likewise.
/// An epilogue's vector has the type of D.
struct ProductForm {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  Epilogue epilogue = Epilogue::none;
  std::int64_t alignment_a = 0, alignment_b = 0, alignment_d = 0;  ///< bytes, of the addresses
  Type factors = Type::f32;                                        ///< A and B
  Type result = Type::f32;                                         ///< D

  // clang-tidy 14 takes the comparison with zero that the compiler makes for ours.
  // NOLINTNEXTLINE(modernize-use-nullptr,readability-implicit-bool-conversion)
  auto operator<=>(const ProductForm&) const = default;
};
std::string to_string(const ProductForm& form);

/// cuBLASLt's bit mask of D [m, n]: columns of `mask_leading` bits.
std::int64_t mask_leading(std::int64_t m);
std::int64_t mask_bytes(std::int64_t m, std::int64_t n);

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

// ---- one launch each, but for the loss of a large batch, which takes two
// --------------------------

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

/// What the launch's time counts as in a profile.
OpCategory category_of(const Launch& launch);

/// Rows of the data set that a step reads, as they come into a staging buffer.
struct StagedInput {
  Id source = none;
  std::int64_t row_bytes = 0;  ///< of the source
  std::int64_t bytes = 0;      ///< of the batch
  std::int64_t staged = 0;     ///< place in the first staging buffer
};

struct StepPlan {
  std::vector<Launch> launches;
  std::vector<StagedInput> inputs;
};

struct Plan {
  std::vector<std::int64_t> offset;  ///< by tensor, in the device block; -1: view, unused, or on
                                     ///< the host
  std::vector<std::int64_t> host_offset;  ///< by tensor, in the host block; -1: not there
  std::int64_t host_bytes = 0;
  std::int64_t buffer_bytes = 0;  ///< between staging buffers
  int buffers = 0;                ///< staging buffers
  std::int64_t row_losses = 0;    ///< place of f32 [rows of the largest loss]
  std::int64_t factors = 0;       ///< place of the optimizer's factors
  std::int64_t run = 0;           ///< place of the i64 counter of runs
  std::int64_t workspace = 0;     ///< place of cuBLASLt's
  std::int64_t workspace_bytes = 0;
  std::int64_t bytes = 0;  ///< of the whole device block
  Id loss = none;          ///< the tensor that loss_every_step reads
  std::vector<StepPlan> steps;
};

/// Whether the library has an algorithm for a product.
using Supports = std::function<bool(const ProductForm&)>;

constexpr std::int64_t workspace_for_products = std::int64_t{32} << 20;
constexpr std::int64_t factors_bytes = 256;
constexpr std::size_t max_spans = 32;  ///< that one kernel takes: they travel as its parameters

/// The Workload must have been check()ed. A product that the library refuses with an epilogue is
/// planned without it, and own kernels do the rest. Throws Unsupported where it refuses the plain
/// one.
Plan make_plan(const Workload& workload, const CompileOptions& options, const Supports& supports);

}  // namespace crossover::cuda
