// SPDX-License-Identifier: Apache-2.0
#include "executor.h"

#include <vector>

#include "../kernels/loss.h"

namespace crossover::cuda {

// ---- Running

void LossReader::copy(const Binding& binding, std::int64_t run) const {
  const Id loss = binding.plan->loss;
  if (loss == none) {
    return;
  }
  const std::int64_t offset =
      (*binding.plan)[loss].offset + run * static_cast<std::int64_t>(sizeof(float));
  CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(host_.get(), binding.address(offset), sizeof(float),
                                       cudaMemcpyDeviceToHost, binding.stream));
}

void Running::set_run(std::int64_t index) const {
  cuda::set_run(index, binding.site());
  next_run = index;
}

void Running::start_at(std::int64_t index) const {
  if (next_run != index) {
    set_run(index);
  }
}

void Running::upload_order() const {
  std::vector<OrderedRun> order;
  order.reserve(workload.order.size());
  for (const Run& run : workload.order) {
    order.push_back({.first_row = run.first_row, .step = run.step});
  }
  CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(binding.address(plan.order), order.data(),
                                       order.size() * sizeof(OrderedRun), cudaMemcpyHostToDevice,
                                       stream()));
  wait();  // `order` ends here
}

void Running::issue(int step, const Position& position) const {
  const BoundStep& launches = steps[static_cast<std::size_t>(step)];
  const auto call = [&](std::size_t first, std::size_t end, Call BoundLaunch::*where) {
    for (std::size_t i = first; i < end; ++i) {
      (launches[i].*where)(position);
    }
  };
  std::size_t at = 0;
  for (const SideBySide& parts : step_plan(step).side_by_side) {
    call(at, parts.first, &BoundLaunch::call);
    second.fork_from(stream());
    call(parts.first, parts.second, &BoundLaunch::call);
    call(parts.second, parts.end, &BoundLaunch::in_second_stream);
    second.join(stream());
    at = parts.end;
  }
  call(at, launches.size(), &BoundLaunch::call);
}

void Running::issue_alone(int step, const Position& position) const {
  for (const BoundLaunch& launch : steps[static_cast<std::size_t>(step)]) {
    if (launch.category != OpCategory::communication) {
      launch.call(position);
    }
  }
}

// ---- Feeder

namespace {

/// Nothing comes before the step: it reads in place, or gathers its rows itself.
class OnDevice : public Feeder {
 public:
  explicit OnDevice(const Running& running)
      : running_(running), buffer_(running.plan.mode.gathers() ? 0 : Position::in_place) {}
  Position before(std::int64_t run) override {
    return {.first_row = running_.run(run).first_row, .buffer = buffer_};
  }

 private:
  const Running& running_;
  const int buffer_;
};

/// On the stream that computes: nothing overlaps.
class Staged : public Feeder {
 public:
  explicit Staged(const Running& running) : running_(running) {}
  Position before(std::int64_t run) override {
    running_.stage(run, 0, running_.stream());
    return {.first_row = running_.run(run).first_row, .buffer = 0};
  }

 private:
  const Running& running_;
};

/// The next batch is copied while a step computes. A buffer is filled once the step that read it is
/// done, and read once it is full. Every copy is waited for by a step, so that the stream that
/// computes ends last.
class DoubleBuffered : public Feeder {
 public:
  explicit DoubleBuffered(const Running& running) : running_(running) {
    for (int buffer = 0; buffer < running.plan.mode.buffers; ++buffer) {
      buffers_.push_back({make_event(), make_event()});
    }
    copies_ = make_stream();
  }

  void begin(std::int64_t first) override { fill(first); }

  Position before(std::int64_t run) override {
    CROSSOVER_CUDA_CHECK(cudaStreamWaitEvent(running_.stream(), buffer(next_read_).full.get(), 0));
    return {.first_row = running_.run(run).first_row, .buffer = next_read_};
  }

  void after(std::int64_t run, bool another) override {
    CROSSOVER_CUDA_CHECK(cudaEventRecord(buffer(next_read_).read.get(), running_.stream()));
    next_read_ = following(next_read_);
    if (another) {
      fill(run + 1);
    }
  }

 private:
  struct Buffer {
    Event full, read;  ///< after the copy into it, and after the step that read it
  };

  Buffer& buffer(int index) { return buffers_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] int following(int index) const { return (index + 1) % running_.plan.mode.buffers; }

  void fill(std::int64_t run) {
    CROSSOVER_CUDA_CHECK(cudaStreamWaitEvent(copies_.get(), buffer(next_filled_).read.get(), 0));
    running_.stage(run, next_filled_, copies_.get());
    CROSSOVER_CUDA_CHECK(cudaEventRecord(buffer(next_filled_).full.get(), copies_.get()));
    next_filled_ = following(next_filled_);
  }

  const Running& running_;
  std::vector<Buffer> buffers_;
  int next_filled_ = 0, next_read_ = 0;  ///< in turn
  Stream copies_;                        // destroyed first: it waits for what uses the events
};

}  // namespace

std::unique_ptr<Feeder> make_feeder(const Running& running) {
  if (running.plan.mode.is_resident()) {
    return std::make_unique<OnDevice>(running);
  }
  if (running.plan.mode.buffers == 1) {
    return std::make_unique<Staged>(running);
  }
  return std::make_unique<DoubleBuffered>(running);
}

// ---- Executor

namespace {

/// Launch by launch.
class Eager : public StepByStep {
 public:
  using StepByStep::StepByStep;
  void issue(std::int64_t run, const Position& position) const override {
    running().issue(running().run(run).step, position);
  }
};

}  // namespace

void StepByStep::enqueue(std::int64_t first, std::int64_t count) {
  const std::int64_t end = first + count;
  running_.start_at(first);
  feeder_->begin(first);
  for (std::int64_t run = first; run < end; ++run) {
    issue(run, feeder_->before(run));
    feeder_->after(run, run + 1 < end);
    if (running_.plan.mode.loss_every_step) {
      running_.losses.copy(running_.binding, run);
      running_.wait();
    }
  }
  running_.count_on(count);
}

std::unique_ptr<Executor> make_executor(const Running& running) {
  switch (running.plan.mode.execution) {
    case Execution::graph:
      return std::make_unique<StepGraphs>(running);
    case Execution::graph_epoch:
      return std::make_unique<OrderGraph>(running);
    case Execution::persistent:
      return make_persistent(running);
    default:
      return std::make_unique<Eager>(running);
  }
}

}  // namespace crossover::cuda
