// SPDX-License-Identifier: Apache-2.0
// The tensors of a Program in memory: where each lies, and the way in and out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "block.h"
#include "crossover/memory.h"
#include "crossover/step.h"
#include "invocation.h"
#include "layout.h"

namespace crossover::cpu {

/// Bytes that each tensor takes in its layout, as plan_memory() wants to know them.
std::vector<std::int64_t> physical_bytes(const std::vector<Tensor>& tensors,
                                         const std::vector<Layout>& layouts);

class Tensors {
 public:
  /// One layout for each tensor, and a place for physical_bytes(). All start as zero. Throws
  /// OutOfMemory.
  Tensors(std::vector<Tensor> tensors, std::vector<Layout> layouts, MemoryPlan plan, int threads);

  /// See Program.
  void upload(Id id, std::span<const std::byte> from);
  void download(Id id, std::span<std::byte> to) const;
  void upload_row(Id id, std::int64_t row, std::span<const std::byte> from);

  [[nodiscard]] Operand operand(Id id) const;

 private:
  /// Where a tensor that can be copied lies; throws std::invalid_argument where it can't, or not in
  /// `size` bytes.
  [[nodiscard]] std::byte* place(Id id, std::size_t size) const;

  [[nodiscard]] const Tensor& tensor(Id id) const { return tensors_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Layout& layout(Id id) const { return layouts_[static_cast<std::size_t>(id)]; }

  std::vector<Tensor> tensors_;
  std::vector<Layout> layouts_;
  MemoryPlan plan_;
  Block memory_;
};

}  // namespace crossover::cpu
