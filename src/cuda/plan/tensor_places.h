// SPDX-License-Identifier: Apache-2.0
// Where tensors, staging buffers and everything else lie in the device block, and a streamed data
// set in the host block; and in which order the elements of a tensor lie there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "crossover/memory.h"
#include "crossover/step.h"
#include "launches/launch.h"
#include "narrow.h"
#include "plan.h"

namespace crossover::cuda {

// ---- Which tensors lie channels-last on the device, and how elements get there and back. Nothing
// else knows: images and the weights of convolutions lie as cuDNN likes them best, everything else
// row-major.

/// Of images. Tensor cores take channels-last; f32 has none of their plans, and those that it has
/// convert channels-last images to the plain layout and back within their workspace
/// (docs/evidence/cuda.md has how much).
constexpr Layout image_layout(Precision precision) {
  return precision == Precision::f32 ? Layout::plain : Layout::channels_last;
}

/// By tensor: as image_layout() says lie the images and weights of operations on images, and what
/// elementwise operations, optimizers and views tie to them. Throws Unsupported where an operation
/// that needs rows of features reads an image.
std::vector<Layout> choose_layouts(const Workload& workload, Precision precision);

Arrangement arrangement_of(Layout layout, const Shape& shape);

/// Elements of so many bytes, from the plain layout to the arrangement.
void arrange(std::span<const std::byte> plain, std::byte* arranged, const Arrangement& arrangement,
             std::int64_t element_bytes);
/// And back.
void restore(const std::byte* arranged, std::span<std::byte> plain, const Arrangement& arrangement,
             std::int64_t element_bytes);

// ---- Places

class TensorPlaces {
 public:
  /// Places the Workload's tensors and the staging buffers, and writes down in the plan where. Both
  /// must outlive this.
  TensorPlaces(const Workload& workload, Precision precision, LaunchPlan& plan);

  /// Room for so many bytes after all that has been placed.
  std::int64_t reserve(std::int64_t bytes);
  /// Where reserve() would put something.
  [[nodiscard]] std::int64_t end() const;
  /// Makes the block reach at least so far.
  void extend(std::int64_t end);

  /// Without a place where the tensor is `none`.
  [[nodiscard]] Operand operand(Id id) const;
  [[nodiscard]] Layout layout(Id id) const { return plan_[id].layout; }
  /// The largest power of two that divides every address at which a step's operand will lie.
  [[nodiscard]] std::int64_t alignment(const Operand& operand, int step) const;
  /// Parameters, gradients and states are padded to multiples of it.
  [[nodiscard]] std::int64_t parameter_alignment() const { return parameter_alignment_; }
  /// Where an optimizer writes a parameter's copy in 16 bits as well; without a place where no
  /// parameter has one. That of a span of parameters begins where that of its first one does.
  [[nodiscard]] Operand copy_of(Id parameter) const;
  /// Where an optimizer keeps what a Cast to this tensor would make; without a place where none
  /// does.
  [[nodiscard]] Operand kept(Id cast) const;
  [[nodiscard]] bool has_buffers() const { return plan_.mode.buffers > 0; }
  [[nodiscard]] bool gathers() const { return plan_.mode.gathers(); }
  [[nodiscard]] int streams() const { return plan_.mode.streams; }
  [[nodiscard]] bool overlaps_sums() const { return plan_.mode.overlaps_sums; }
  /// An input's rows as they come into a staging buffer in a step's runs.
  [[nodiscard]] StagedInput staged_input(Id view, int step) const;

 private:
  void place_copies(const std::vector<CopiedParameter>& copied);

  const Workload& workload_;
  LaunchPlan& plan_;
  std::int64_t parameter_alignment_ = MemoryPlan::alignment;
  std::int64_t parameters_ = 0;        ///< place of the first one
  Operand copies_;                     ///< of its copy in 16 bits
  std::vector<std::int64_t> staged_;   ///< by tensor: an input's place in the first buffer, or -1
  std::vector<std::int64_t> row_gcd_;  ///< by step: divides the first row of each of its runs
};

}  // namespace crossover::cuda
