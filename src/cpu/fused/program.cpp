// SPDX-License-Identifier: Apache-2.0
// Training as a fused program: what its threads do, step by step, and where they wait for each
// other.
#include "plan.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "../base/threads.h"
#include "../run/program.h"
#include "crossover/extensions.h"
#include "crossover/training.h"
#include "steps.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace crossover::cpu::fused {
namespace {

// ---- Where threads wait for each other.

/// A step has one every few microseconds, so whoever waits spins; and gives its core away only when
/// it has waited long, for a thread that has none. Each arrival is one addition to a line that all
/// share, which grows with the threads, from about 0.1 us for two on one chip.
class Barrier {
 public:
  /// Until `threads` threads are here.
  void wait(int threads) {
    const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      return;
    }
    constexpr int patience = 20000;
    for (int spins = 0; phase_.load(std::memory_order_acquire) == phase; ++spins) {
      if (spins < patience) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

 private:
  static void pause() {
#ifdef __SSE2__
    _mm_pause();
#endif
  }

  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};
};

// ---- The program

class FusedProgram : public Program, public TakesRows {
 public:
  FusedProgram(const Workload& workload, const std::vector<DenseStep>& training,
               const CompileOptions& options, std::int64_t bytes);

  void upload(Id id, std::span<const std::byte> from) override { memory_.upload(id, from); }
  void download(Id id, std::span<std::byte> to) override { memory_.download(id, to); }
  void upload_row(Id id, std::int64_t row, std::span<const std::byte> from) override {
    memory_.upload_row(id, row, from);
  }
  void enqueue(std::int64_t first, std::int64_t count) override;
  void wait() override {}  // enqueue() returns when all is done
  Profile profile() override;

 private:
  /// What one of `threads` threads does of a run; `after` is called after each phase.
  template <class After>
  void run(std::int64_t index, int thread, int threads, const After& after);
  template <class After>
  void run_all(std::int64_t first, std::int64_t count, const After& after);
  void perform(const Phase& phase, const FusedStep& step, std::int64_t first_row, int part,
               int parts, int chunk);

  const std::vector<Run> order_;
  const int threads_;
  const Block block_;
  Memory memory_;
  std::vector<FusedStep> steps_;
  bool shares_ = false;  ///< any phase, so that more than one thread is of use
  const Kernels kernels_;
  Barrier barrier_;
  Update update_;  ///< of the step that runs
  struct alignas(64) LossPart {
    double sum = 0;
  };
  std::vector<LossPart> loss_parts_;  ///< by part
};

OpCategory category_of(Phase::Kind kind) {
  switch (kind) {
    case Phase::Kind::gather:
      return OpCategory::reorder;
    case Phase::Kind::loss:
      return OpCategory::loss;
    case Phase::Kind::forward:
    case Phase::Kind::backward:
    case Phase::Kind::gradient:
    case Phase::Kind::sum:
    case Phase::Kind::update:
      break;
  }
  return OpCategory::product;
}

}  // namespace

FusedProgram::FusedProgram(const Workload& workload, const std::vector<DenseStep>& training,
                           const CompileOptions& options, std::int64_t bytes)
    : Program({.bytes = bytes, .launches = 1}),
      order_(workload.order),
      threads_(options.threads),
      block_(allocate(bytes, options.threads)),
      memory_(workload.tensors),
      kernels_(lie_by_rows(training) ? best_kernels_by_rows() : best_kernels()),
      loss_parts_(static_cast<std::size_t>(options.threads)) {
  Arena arena(block_.get());
  steps_ = bind_steps(workload, training, threads_, options.keep_activations, arena, memory_);
  for (const FusedStep& step : steps_) {
    loss_parts_.resize(std::max(loss_parts_.size(), step.samples.size()));
    for (const Phase& phase : step.phases) {
      shares_ |= phase.shared;
    }
  }
  facts_.threads = shares_ ? threads_ : 1;
}

void FusedProgram::perform(const Phase& phase, const FusedStep& step, std::int64_t first_row,
                           int part, int parts, int chunk) {
  const bool by_samples = step.by_samples();
  const auto own = static_cast<std::size_t>(by_samples ? part * step.chunks + chunk : part);
  const Samples& samples = step.samples[by_samples ? own : 0];
  const Batch& batch = samples.batch;
  const Layer& layer = samples.layers[static_cast<std::size_t>(phase.layer)];
  const std::int64_t row = first_row + samples.first;
  const auto at = [&](std::int64_t ld) { return batch.by_rows ? row * ld : row; };
  // Of the phases that samples have by themselves.
  const auto some = [&](std::int64_t count, std::int64_t unit) {
    return by_samples ? Part{0, count} : part_of(count, unit, part, parts);
  };
  // Of what the thread updates; the gradients of its last chunk are summed there.
  const std::int64_t unit = batch.by_rows ? floats_of_line : tile;
  const Part inputs = part_of(layer.in, unit, part, parts);
  const Part outputs = part_of(layer.out, unit, part, parts);
  const bool is_last = chunk + 1 == step.chunks;
  switch (phase.kind) {
    case Phase::Kind::gather: {
      const Part features = some(layer.in, 1);
      kernels_.gather(step.data + at(step.data_ld), step.data_ld, batch, samples.inputs,
                      features.begin, features.end);
      break;
    }
    case Phase::Kind::forward: {
      const Part features = some(layer.out, unit);
      kernels_.forward(layer, batch, features.begin, features.end);
      break;
    }
    case Phase::Kind::loss: {
      Loss loss = samples.loss;
      loss.labels = step.labels == nullptr ? nullptr : step.labels + row;
      loss.targets = step.targets == nullptr ? nullptr : step.targets + at(step.targets_ld);
      loss.targets_ld = step.targets_ld;
      const Part rows = batch.by_rows ? some(batch.rows, 1) : some(batch.stride, floats_of_line);
      loss_parts_[own].sum = kernels_.loss(loss, batch, rows.begin, rows.end);
      if (own == 0) {
        update_ = step.optimizer.next();
      }
      break;
    }
    case Phase::Kind::backward:
      if (layer.dx != nullptr) {  // from the weights before their update
        kernels_.gradient(layer, batch, inputs.begin, inputs.end);
      }
      kernels_.update(layer, batch, update_, inputs.begin, inputs.end);
      kernels_.update_bias(layer, batch, update_, outputs.begin, outputs.end);
      break;
    case Phase::Kind::gradient:
      kernels_.gradient(layer, batch, 0, layer.in);
      break;
    case Phase::Kind::sum:
      kernels_.sum(layer, batch, 0, is_last ? inputs.begin : layer.in);
      kernels_.sum_bias(layer, batch, 0, is_last ? outputs.begin : layer.out);
      if (is_last) {
        kernels_.sum(layer, batch, inputs.end, layer.in);
        kernels_.sum_bias(layer, batch, outputs.end, layer.out);
      }
      break;
    case Phase::Kind::update:
      kernels_.update(layer, batch, update_, inputs.begin, inputs.end);
      kernels_.update_bias(layer, batch, update_, outputs.begin, outputs.end);
      break;
  }
}

template <class After>
void FusedProgram::run(std::int64_t index, int thread, int threads, const After& after) {
  const Run& what = order_[static_cast<std::size_t>(index)];
  const FusedStep& step = steps_[static_cast<std::size_t>(what.step)];
  std::size_t parts_of_loss = step.samples.size();
  auto phase = step.phases.begin();
  if (step.by_samples()) {
    if (phase->wait) {
      barrier_.wait(threads);
    }
    const auto end = std::find_if_not(phase, step.phases.end(),
                                      [](const Phase& one) { return one.of_samples(); });
    for (int part = thread; part < threads_; part += threads) {
      for (int chunk = 0; chunk < step.chunks; ++chunk) {
        for (auto one = phase; one != end; ++one) {
          perform(*one, step, what.first_row, part, threads_, chunk);
          after(*one);
        }
      }
    }
    phase = end;
  }
  for (; phase != step.phases.end(); ++phase) {
    if (phase->wait) {
      barrier_.wait(threads);
    }
    const int parts = phase->shared ? threads_ : 1;
    for (int part = thread; part < parts; part += threads) {
      perform(*phase, step, what.first_row, part, parts, step.chunks - 1);
    }
    if (phase->kind == Phase::Kind::loss) {
      parts_of_loss = static_cast<std::size_t>(parts);
    }
    after(*phase);
  }
  if (thread == 0) {  // whoever had a part of the loss was waited for since
    double sum = 0;
    for (std::size_t i = 0; i < parts_of_loss; ++i) {
      sum += loss_parts_[i].sum;
    }
    step.losses[index] = static_cast<float>(sum / static_cast<double>(step.summed_losses));
  }
}

template <class After>
void FusedProgram::run_all(std::int64_t first, std::int64_t count, const After& after) {
  const auto work = [&](int thread, int threads) {
    for (std::int64_t index = first; index < first + count; ++index) {
      run(index, thread, threads, [&](const Phase& phase) { after(thread, phase); });
    }
  };
  if (!shares_) {
    work(0, 1);
    return;
  }
#pragma omp parallel num_threads(threads_)
  work(omp_get_thread_num(), omp_get_num_threads());
}

void FusedProgram::enqueue(std::int64_t first, std::int64_t count) {
  run_all(first, count, [](int /*thread*/, const Phase& /*phase*/) {});
}

Profile FusedProgram::profile() {
  using Clock = std::chrono::steady_clock;
  Profile profile;
  auto start = Clock::now();
  run_all(0, std::ssize(order_), [&](int thread, const Phase& phase) {
    if (thread == 0) {
      const auto now = Clock::now();
      profile[category_of(phase.kind)] += std::chrono::duration<double>(now - start).count();
      start = now;
    }
  });
  return profile;
}

}  // namespace crossover::cpu::fused

namespace crossover::cpu {

// ---- The plan

namespace {

class FusedPlan : public Plan {
 public:
  FusedPlan(const Workload& workload, const CompileOptions& options)
      : workload_(workload),
        options_(options),
        training_(dense_training(workload)),
        bytes_(bytes_of(options.keep_activations)) {}

  [[nodiscard]] std::int64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::int64_t bytes_keeping_activations() const override { return bytes_of(true); }
  [[nodiscard]] std::int64_t launches() const override { return 1; }
  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    flush_denormals(options_.threads);  // before the first number is computed
    return std::make_unique<fused::FusedProgram>(workload_, training_, options_, bytes_);
  }

 private:
  [[nodiscard]] std::int64_t bytes_of(bool keep_activations) const {
    fused::Arena arena;
    fused::Memory memory(workload_.tensors);
    static_cast<void>(
        fused::bind_steps(workload_, training_, options_.threads, keep_activations, arena, memory));
    return arena.bytes();
  }

  const Workload workload_;
  const CompileOptions options_;
  const std::vector<DenseStep> training_;
  const std::int64_t bytes_;
};

}  // namespace

std::unique_ptr<Plan> plan_fused(const Workload& workload, const CompileOptions& options) {
  if (options.precision != Precision::f32) {
    throw Unsupported("fused execution computes in f32, not in " + to_string(options.precision));
  }
  if (!trains(workload)) {
    return plan_pass(workload);
  }
  return std::make_unique<FusedPlan>(workload, options);
}

}  // namespace crossover::cpu
