// SPDX-License-Identifier: Apache-2.0
// A Program on the CPU: its tensors, its bound steps, and what runs them.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../base/layout.h"
#include "../plan/lowering.h"
#include "../plan/primitives.h"
#include "crossover/backend.h"
#include "crossover/extensions.h"
#include "crossover/memory.h"
#include "crossover/step.h"

namespace crossover::cpu {

// ---- Memory of a Program or a probe.

struct Free {
  void operator()(std::byte* memory) const noexcept {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
  }
};
using Block = std::unique_ptr<std::byte, Free>;

/// Aligned and zero, each part touched first by the thread that will use it; throws OutOfMemory.
Block allocate(std::int64_t bytes, int threads);

/// Sets bytes to zero, each by the thread that will use it, so that memory lies near its core.
void clear(int threads, void* memory, std::int64_t bytes);

// ---- The tensors of a Program in memory: where each lies, and the way in and out.

/// Bytes that each tensor takes in its layout, as plan_memory() wants to know them.
std::vector<std::int64_t> physical_bytes(const std::vector<Tensor>& tensors,
                                         const std::vector<Layout>& layouts);

class Tensors {
 public:
  /// One layout for each tensor, and a place for physical_bytes(). All start as zero. Throws
  /// OutOfMemory.
  Tensors(std::vector<Tensor> tensors, std::vector<Layout> layouts, MemoryPlan plan, int threads);

  /// See Program, and of rows TakesRows.
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

// ---- The kernels of a Program, bound to its memory: nothing is left to decide.

struct Kernel {
  OpCategory category;
  int threads;  ///< that must be in force when it is called
  Loop loop;
  std::vector<Operand> operands;

  void call(const Position& now) const { loop({operands.data(), now, threads}); }
};

/// Memory that kernels share, because they run one after another.
struct Scratch {
  std::int64_t primitive_bytes = 0;  ///< what a primitive asks for
  std::int64_t copies_bytes = 0;     ///< operands in another layout than their tensors'
  std::int64_t workspace_bytes = 0;  ///< what the kernels of one operation pass on
  std::int64_t kept_bytes = 0;       ///< not shared: what kernels that run once make

  [[nodiscard]] std::int64_t bytes() const {
    return primitive_bytes + copies_bytes + workspace_bytes + kept_bytes;
  }
};

class BoundSteps {
 public:
  /// The primitives of `lowered` are described for `engine`. Throws OutOfMemory, dnnl::error.
  BoundSteps(const LoweredWorkload& lowered, const Tensors& tensors, const Scratch& scratch,
             const dnnl::engine& engine, int threads);

  [[nodiscard]] std::span<const Kernel> operator[](int step) const {
    return steps_[static_cast<std::size_t>(step)];
  }
  [[nodiscard]] std::span<const Kernel> once() const { return once_; }

 private:
  std::vector<Kernel> bind(const std::vector<PlannedKernel>& kernels, const Tensors& tensors);
  Kernel bind(const PlannedKernel& kernel, const Tensors& tensors);
  [[nodiscard]] Operand operand(const Place& place, const Tensors& tensors) const;

  const dnnl::engine engine_;
  const dnnl::stream stream_;
  const Block primitive_scratch_;
  const Block copies_;
  const Block workspace_;
  const Block kept_;
  std::vector<std::unique_ptr<BoundPrimitive>> primitives_;
  std::vector<Kernel> once_;
  std::vector<std::vector<Kernel>> steps_;
};

// ---- Eager execution: kernel by kernel, each on its number of threads.

class EagerExecution {
 public:
  /// `steps` must outlive it.
  EagerExecution(const BoundSteps& steps, std::vector<Run> order, int threads);

  /// What comes before the first step, and again where a tensor was uploaded since.
  void run_once() const;

  /// Runs positions [first, first + count) of the order.
  void run(std::int64_t first, std::int64_t count) const;

  /// See Program::profile().
  [[nodiscard]] Profile profile() const;

 private:
  template <class Visit>
  void for_each_kernel(std::int64_t first, std::int64_t count, const Visit& visit) const;

  const BoundSteps& steps_;
  const std::vector<Run> order_;
  const int threads_;
};

// ---- All of it.

class CpuProgram : public Program, public TakesRows {
 public:
  /// `steps` are bound to `tensors`.
  CpuProgram(Tensors tensors, std::unique_ptr<const BoundSteps> steps, std::vector<Run> order,
             const ProgramFacts& facts, int threads)
      : Program(facts),
        tensors_(std::move(tensors)),
        steps_(std::move(steps)),
        execution_(*steps_, std::move(order), threads) {}

  void upload(Id id, std::span<const std::byte> from) override {
    tensors_.upload(id, from);
    is_ready_ = false;
  }
  void download(Id id, std::span<std::byte> to) override { tensors_.download(id, to); }

  void upload_row(Id id, std::int64_t row, std::span<const std::byte> from) override {
    tensors_.upload_row(id, row, from);
  }

  void enqueue(std::int64_t first, std::int64_t count) override {
    make_ready();
    execution_.run(first, count);
  }
  void wait() override {}  // enqueue() returns when all is done

  Profile profile() override {
    make_ready();
    return execution_.profile();
  }

 private:
  void make_ready() {
    if (!is_ready_) {
      execution_.run_once();
      is_ready_ = true;
    }
  }

  Tensors tensors_;
  const std::unique_ptr<const BoundSteps> steps_;
  const EagerExecution execution_;
  bool is_ready_ = false;
};

}  // namespace crossover::cpu
