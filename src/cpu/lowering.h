// SPDX-License-Identifier: Apache-2.0
// A Workload's steps become kernels: data that says what will run, on how many threads and on which
// tensors in which layout, before there is memory. operations/ says it for each operation.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <variant>
#include <vector>

#include "crossover/backend.h"
#include "invocation.h"
#include "layout.h"

namespace crossover::cpu {

/// A oneDNN primitive, with scratchpad_mode::user.
struct Primitive {
  /// Called once, with the number of threads in force that will run it. May throw Unsupported.
  std::function<dnnl::primitive_desc_base(const dnnl::engine&)> describe;
  std::vector<int> arguments;               ///< DNNL_ARG_..., one for each operand
  dnnl::primitive_desc_base description{};  ///< what describe() said; empty before
};

/// A loop of ours, or a primitive.
using Work = std::variant<Loop, Primitive>;

/// Where a kernel finds an operand: where its tensor lies, or in a copy in the layout that the
/// kernel asks for, which lies in scratch memory.
struct Place {
  Id id = none;            ///< none: the operation has no such operand
  std::int64_t copy = -1;  ///< bytes from the start of the copies; -1: no copy
};

struct PlannedKernel {
  OpCategory category{};
  int threads = 1;
  std::vector<Place> operands;
  Work work;
};

/// A tensor that a kernel uses, and the layout in which it takes it.
struct Argument {
  Id id = none;
  bool read = false, written = false;
  Layout layout;
};
inline Argument reads(Id id, Layout layout = {}) { return {id, true, false, std::move(layout)}; }
inline Argument writes(Id id, Layout layout = {}) { return {id, false, true, std::move(layout)}; }
inline Argument updates(Id id, Layout layout = {}) { return {id, true, true, std::move(layout)}; }

/// What lowering gives.
struct LoweredWorkload {
  std::vector<std::vector<PlannedKernel>> steps;
  std::vector<Layout> layouts;    ///< by tensor
  std::int64_t copies_bytes = 0;  ///< that the copies of one kernel's operands take at most
};

/// What each operation writes its kernels into.
class Lowering {
 public:
  /// `workload` must outlive it. `settled`: layouts that stand before any operation is asked.
  Lowering(const Workload& workload, int threads, const std::map<Id, Layout>& settled);

  void begin_step() { lowered_.steps.emplace_back(); }

  /// Adds a kernel. A tensor that no kernel had before lies from now on as this one asks for; of
  /// one that lies otherwise the kernel gets a copy, made before it and written back after it by
  /// kernels of their own.
  void add(OpCategory category, int threads, const std::vector<Argument>& arguments, Work work);

  /// The layout in which an elementwise kernel runs over all these tensors at once: that of the
  /// first one that has a layout without padding, else the plain one.
  [[nodiscard]] Layout elementwise_layout(std::initializer_list<Id> ids) const;

  /// The layout in which the tensor lies: the one that stands already, or from now on `wanted`.
  const Layout& settle(Id id, const Layout& wanted);

  [[nodiscard]] const Layout& layout(Id id) const { return lowered_.layouts[index(id)]; }
  [[nodiscard]] const Workload& workload() const { return workload_; }
  const Tensor& operator[](Id id) const { return workload_[id]; }
  [[nodiscard]] std::int64_t count(Id id) const { return elements(workload_[id].shape); }

  /// How many threads pay for a product, for a pass over so many bytes, or over a tensor.
  [[nodiscard]] int threads_for_flops(double flops) const;
  [[nodiscard]] int threads_for_bytes(double bytes) const;
  [[nodiscard]] int threads_for(Id id) const;

  /// All that was added; the end of it.
  LoweredWorkload finish() { return std::move(lowered_); }

 private:
  static std::size_t index(Id id) { return static_cast<std::size_t>(id); }
  [[nodiscard]] PlannedKernel copy(Id id, const Layout& from, const Layout& to) const;

  const Workload& workload_;
  const int threads_;
  LoweredWorkload lowered_;
  std::vector<bool> is_settled_;
};

/// All steps of a Workload that does check(). Makes nothing of oneDNN.
LoweredWorkload lower(const Workload& workload, int threads,
                      const std::map<Id, Layout>& settled = {});

}  // namespace crossover::cpu
