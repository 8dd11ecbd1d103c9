// SPDX-License-Identifier: Apache-2.0
#include "feeder.h"

#include <vector>

namespace crossover::cuda {
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

}  // namespace crossover::cuda
