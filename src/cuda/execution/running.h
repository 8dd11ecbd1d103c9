// SPDX-License-Identifier: Apache-2.0
// What every way to run a Program's steps works with.
#pragma once

#include <cstdint>
#include <vector>

#include "../backend/device_tensors.h"
#include "../backend/runtime.h"
#include "../kernels/bind.h"

namespace crossover::cuda {

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
  void stage(std::int64_t index, int buffer, cudaStream_t on) const {
    tensors.stage(run(index), buffer, on);
  }
  void wait() const { CROSSOVER_CUDA_CHECK(cudaStreamSynchronize(stream())); }
};

}  // namespace crossover::cuda
