// SPDX-License-Identifier: Apache-2.0
// How a Program's runs are put into the stream, and how their batches reach them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../base/runtime.h"
#include "bind.h"
#include "device_tensors.h"

namespace crossover::cuda {

// ---- What every way to run a Program's steps works with.

/// Where the host reads a step's loss, where it does after each.
class LossReader {
 public:
  explicit LossReader(const RunMode& mode)
      : host_(mode.loss_every_step ? allocate_pinned(sizeof(float)) : PinnedMemory()) {}
  /// Puts the copy of one run's loss into the binding's stream.
  void copy(const Binding& binding, std::int64_t run) const;

 private:
  PinnedMemory host_;
};

/// Beside the one that computes. Whatever is put into it ends before what the other gets next.
class SecondStream {
 public:
  /// There is none where the plan does not need it.
  explicit SecondStream(const RunMode& mode)
      : stream_(mode.has_second_stream() ? make_stream() : Stream()),
        point_(mode.has_second_stream() ? make_event() : Event()) {}

  [[nodiscard]] cudaStream_t get() const { return stream_.get(); }
  /// What it gets next waits for all that the other has been given.
  void fork_from(cudaStream_t other) const { follow(stream_.get(), other); }
  /// What the other gets next waits for all that this one has been given.
  void join(cudaStream_t other) const { follow(other, stream_.get()); }

 private:
  void follow(cudaStream_t next, cudaStream_t before) const {
    CROSSOVER_CUDA_CHECK(cudaEventRecord(point_.get(), before));
    CROSSOVER_CUDA_CHECK(cudaStreamWaitEvent(next, point_.get(), 0));
  }

  Stream stream_;
  Event point_;  ///< in the one whose turn it was
};

/// Parts of a Program that outlive its executor.
struct Running {
  const Workload& workload;
  const LaunchPlan& plan;
  const DeviceTensors& tensors;
  const LossReader& losses;
  const std::vector<BoundStep>& steps;
  const Binding binding;
  const SecondStream& second;
  std::int64_t& next_run;  ///< what the counter of runs comes to by what the stream has been given

  [[nodiscard]] const Run& run(std::int64_t index) const {
    return workload.order[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] std::int64_t runs() const {
    return static_cast<std::int64_t>(workload.order.size());
  }
  [[nodiscard]] cudaStream_t stream() const { return binding.stream; }

  /// Sets the device's counter of runs.
  void set_run(std::int64_t index) const;
  /// The same, where it will not stand there anyway.
  void start_at(std::int64_t index) const;
  /// After so many runs from start_at() on have been put into the stream.
  void count_on(std::int64_t count) const { next_run = (next_run + count) % runs(); }

  /// Puts a step's launches into the stream, one by one, or into both where parts run side by side.
  void issue(int step, const Position& position) const;
  /// A step's launches but for sums over ranks, which wait for all of them: in one stream.
  void issue_alone(int step, const Position& position) const;
  /// Puts the kernel into the stream that fetches the rows of the run whose turn it is.
  void gather(int step) const { cuda::gather(step_plan(step), binding); }
  /// Puts the order where gather() and other kernels read it; returns when it is there.
  void upload_order() const;

  [[nodiscard]] const StepPlan& step_plan(int step) const {
    return plan.steps[static_cast<std::size_t>(step)];
  }
  void stage(const OrderPart& part, int buffer, cudaStream_t on) const {
    tensors.stage(run(part.first), run(part.end - 1), buffer, on);
  }
  void wait() const { CROSSOVER_CUDA_CHECK(cudaStreamSynchronize(stream())); }
};

// ---- How a batch, or those of a part of the order, reach what reads them: they are on the device
// already, they come through a staging buffer, or through two that a stream of its own fills. One
// class for each; RunMode says which.

class Feeder {
 public:
  Feeder() = default;
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;
  virtual ~Feeder() = default;

  /// Before the first of several parts that follow one another.
  virtual void begin(const OrderPart& /*first*/) {}
  /// Puts into the streams what must come before the part. Where that reads.
  virtual Position before(const OrderPart& part) = 0;
  /// After a part was issued; `next`: what follows, if it is not empty.
  virtual void after(const OrderPart& /*next*/) {}
};

std::unique_ptr<Feeder> make_feeder(const Running& running);

// ---- How a Program's runs are put into the stream. One class for each Execution; RunMode says
// which.

class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  /// Runs [first, first + count) of the order; count > 0.
  virtual void enqueue(std::int64_t first, std::int64_t count) = 0;

  /// TrainsCopies::join() of Programs whose device blocks these are, its own the first; and the
  /// runs of all of them.
  virtual bool join(const std::vector<const std::byte*>& /*blocks*/) { return false; }
  virtual void enqueue_joined(std::int64_t /*first*/, std::int64_t /*count*/) {}

  /// Whether a pass over the whole order is issued at once, not step by step.
  [[nodiscard]] virtual bool issues_order_at_once() const { return false; }

  /// Issues a part of the order without its rows, which it reads at the position; of one run, but
  /// where one kernel trains many. For a profile.
  virtual void issue(const OrderPart& part, const Position& position) const = 0;
};

/// Throws what capturing graphs throws, and LoopsRefused. The block holds zeros before and after,
/// but for the order of runs that a kernel reads.
std::unique_ptr<Executor> make_executor(const Running& running);

/// Launch by launch, behind a kernel that gathers rows where the plan reads no others.
std::unique_ptr<Executor> make_eager(const Running& running);

/// Runs by one kernel, however many. Puts the order into the device's memory. Throws as calls of
/// CUDA do.
std::unique_ptr<Executor> make_persistent(const Running& running);

/// A step at a time, each after its batch.
class StepByStep : public Executor {
 public:
  explicit StepByStep(const Running& running) : running_(running), feeder_(make_feeder(running)) {}
  void enqueue(std::int64_t first, std::int64_t count) override;

 protected:
  [[nodiscard]] const Running& running() const { return running_; }

 private:
  const Running& running_;
  std::unique_ptr<Feeder> feeder_;
};

// ---- The order as one graph that repeats its steps in loops, each a WHILE node around the
// launches of one turn: CUDA C++ Programming Guide, "Conditional Graph Nodes".

/// The driver refuses a graph with loops after all, or loops around these launches: whoever plans
/// again does without.
struct LoopsRefused : Unsupported {
  using Unsupported::Unsupported;
};

/// Whether the versions of runtime and driver have loops in graphs.
bool has_graph_loops();

struct OrderedGraph {
  Graph loops;  ///< which the conditions of its loops belong to; null where there are none
  GraphExec exec;
};

/// Throws LoopsRefused, DeviceFailed, OutOfMemory.
OrderedGraph capture_loops(const Running& running);

// ---- Steps as CUDA graphs: one for each step and staging buffer, or one for the whole order. With
// resident data a step's graph begins with the kernel that gathers its rows.

class StepGraphs : public StepByStep {
 public:
  explicit StepGraphs(const Running& running);
  void issue(const OrderPart& part, const Position& position) const override;

 private:
  std::vector<std::vector<GraphExec>> graphs_;  ///< by step and staging buffer
};

class OrderGraph : public Executor {
 public:
  explicit OrderGraph(const Running& running);
  void enqueue(std::int64_t first, std::int64_t count) override;
  [[nodiscard]] bool issues_order_at_once() const override { return true; }
  void issue(const OrderPart& part, const Position& position) const override {
    parts_.issue(part, position);
  }

 private:
  const Running& running_;
  StepGraphs parts_;  ///< for a part of the order
  OrderedGraph order_;
};

/// Throws Unsupported where the graph of a whole order would be too large to make.
void check_order_graph(const Workload& workload, const LaunchPlan& plan);

}  // namespace crossover::cuda
