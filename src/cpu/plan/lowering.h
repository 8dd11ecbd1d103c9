// SPDX-License-Identifier: Apache-2.0
// A Workload's steps become kernels: data that says what will run, on how many threads and on which
// tensors in which layout, before there is memory. ../operations says it for each operation.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <variant>
#include <vector>

#include "../base/layout.h"
#include "crossover/backend.h"

namespace crossover::cpu {

// ---- What a kernel finds when it is called: where its operands lie now, and its threads.

/// Which part of the order is running.
struct Position {
  std::int64_t first_row = 0;
  std::int64_t run = 0;
};

/// Where an operand lies; a view moves with the first row of the batch.
class Operand {
 public:
  Operand() = default;
  explicit Operand(std::byte* base, std::int64_t row_bytes = 0)
      : base_(base), row_bytes_(row_bytes) {}

  [[nodiscard]] std::byte* at(const Position& position) const {
    return base_ + position.first_row * row_bytes_;
  }
  [[nodiscard]] bool moves() const { return row_bytes_ != 0; }
  [[nodiscard]] Operand from(std::int64_t bytes) const {
    return Operand(base_ + bytes, row_bytes_);
  }

 private:
  std::byte* base_ = nullptr;
  std::int64_t row_bytes_ = 0;
};

struct Invocation {
  const Operand* operands;  ///< in the order in which the kernel was planned with them
  const Position& now;
  int threads;

  template <class T>
  [[nodiscard]] T* operand(std::size_t index) const {
    return reinterpret_cast<T*>(operands[index].at(now));
  }
};

/// A loop of ours.
using Loop = std::function<void(const Invocation&)>;

// ---- Kernels, and the workload that becomes them.

/// Whether it trains: else it is a forward_pass(), or a single layer.
bool trains(const Workload& workload);

/// Whether it is a whole forward_pass(), whose parameters never change. Of a single layer, as
/// --family=Layer has it, the weights are those of training.
bool is_used(const Workload& workload);

/// A oneDNN primitive, with scratchpad_mode::user.
struct Primitive {
  /// Called once, with the number of threads in force that will run it. May throw Unsupported.
  /// Empty where lowering had to ask oneDNN already.
  std::function<dnnl::primitive_desc_base(const dnnl::engine&)> describe;
  std::vector<int> arguments;               ///< DNNL_ARG_..., one for each operand
  dnnl::primitive_desc_base description{};  ///< what describe() said; empty before
};

/// A loop of ours, or a primitive.
using Work = std::variant<Loop, Primitive>;

/// Where an operand lies.
enum class Memory {
  nowhere,    ///< the operation has no such operand
  tensor,     ///< where its tensor lies
  copies,     ///< in a copy in the layout that the kernel asks for, in scratch memory
  workspace,  ///< in scratch memory that the kernels of one operation share
  kept        ///< in memory of its own, for what is made once
};

/// Where a kernel finds an operand.
struct Place {
  Memory memory = Memory::nowhere;
  Id id = none;             ///< of a tensor
  std::int64_t offset = 0;  ///< bytes from the start of the tensor, or of that scratch memory
};

struct PlannedKernel {
  OpCategory category{};
  int threads = 1;
  std::vector<Place> operands;
  Work work;
  std::int64_t moved_bytes = 0;  ///< read and written by a reorder
};

/// What a kernel uses: a tensor in the layout in which it takes it, or a part of the workspace.
struct Argument {
  Id id = none;
  bool read = false, written = false;
  Layout layout;
  /// Bytes from the start of the tensor, which is then taken in the plain layout, or of the
  /// workspace or of what is kept. A kernel that writes a part of a tensor updates it.
  std::int64_t offset = 0;
  Memory memory = Memory::tensor;  ///< or workspace, or kept

  [[nodiscard]] Argument from(std::int64_t bytes) const {
    Argument part = *this;
    part.offset += bytes;
    return part;
  }
};
inline Argument reads(Id id, const Layout& layout = {}) { return {id, true, false, layout}; }
inline Argument writes(Id id, Layout layout = {}) { return {id, false, true, std::move(layout)}; }
inline Argument updates(Id id, Layout layout = {}) { return {id, true, true, std::move(layout)}; }

/// What lowering gives.
struct LoweredWorkload {
  std::vector<std::vector<PlannedKernel>> steps;
  std::vector<PlannedKernel> once;   ///< before the first step, and whenever tensors were uploaded
  std::vector<Layout> layouts;       ///< by tensor
  std::int64_t copies_bytes = 0;     ///< that the copies of one kernel's operands take at most
  std::int64_t workspace_bytes = 0;  ///< that the kernels of one operation share at most
  std::int64_t kept_bytes = 0;       ///< that kernels of `once` write
};

/// What each operation writes its kernels into.
class Lowering {
 public:
  /// `workload` must outlive it. `settled`: layouts that stand before any operation is asked.
  Lowering(const Workload& workload, int threads, dnnl::engine engine,
           const std::map<Id, Layout>& settled, Execution execution, Ranks* ranks);

  void begin_step() { lowered_.steps.emplace_back(); }
  void begin_operation() { reserved_bytes_ = 0; }

  /// So much of the workspace, for the kernels of the operation that is being lowered.
  Argument reserve(std::int64_t bytes);

  /// So much memory of its own, for what a kernel of add_once() makes.
  Argument keep(std::int64_t bytes);

  /// Adds a kernel. A tensor that no kernel had before lies from now on as this one asks for; of
  /// one that lies otherwise the kernel gets a copy, made before it and written back after it by
  /// kernels of their own.
  void add(OpCategory category, int threads, const std::vector<Argument>& arguments, Work work);

  /// The same of one that only reads parameters, in a Workload that does not train: it runs before
  /// the first step, and not with it.
  void add_once(OpCategory category, int threads, const std::vector<Argument>& arguments,
                Work work);

  /// Adds a kernel that writes `to` from `from`, each where it lies, converting layout and type.
  /// One of both layouts must be plain, or both of the same extents.
  void add_reorder(OpCategory category, Id from, Id to);

  /// The layout in which an elementwise kernel runs over all these tensors at once: that of the
  /// first one that has a layout without padding, else the plain one.
  [[nodiscard]] Layout elementwise_layout(std::initializer_list<Id> ids) const;

  /// The layout in which the tensor lies: the one that stands already, or from now on `wanted`.
  const Layout& settle(Id id, const Layout& wanted);

  [[nodiscard]] const Layout& layout(Id id) const { return lowered_.layouts[index(id)]; }
  [[nodiscard]] const Workload& workload() const { return workload_; }
  [[nodiscard]] const dnnl::engine& engine() const { return engine_; }
  [[nodiscard]] Ranks* ranks() const { return ranks_; }
  [[nodiscard]] bool overlaps_sums() const { return execution_ == Execution::overlapped; }
  [[nodiscard]] bool takes_winograd() const { return execution_ == Execution::winograd; }
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
  void add_to(std::vector<PlannedKernel>& step, OpCategory category, int threads,
              const std::vector<Argument>& arguments, Work work);
  [[nodiscard]] PlannedKernel copy(Id id, const Layout& from, const Layout& to) const;

  const Workload& workload_;
  const int threads_;
  const dnnl::engine engine_;
  const Execution execution_;
  Ranks* const ranks_;
  std::int64_t reserved_bytes_ = 0;
  LoweredWorkload lowered_;
  std::vector<bool> is_settled_;
};

/// Whether it is a parameter that no step changes, so that what is made of it is made once.
bool is_constant(const Lowering& to, Id id);

}  // namespace crossover::cpu
