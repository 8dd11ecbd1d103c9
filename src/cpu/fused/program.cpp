// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <omp.h>

#include <algorithm>
#include <chrono>

namespace crossover::cpu::fused {
namespace {

struct Part {
  std::int64_t begin, end;
};

/// One thread's part of [0, count), which is cut at multiples of `unit`.
Part part_of(std::int64_t count, std::int64_t unit, int thread, int threads) {
  const std::int64_t units = (count + unit - 1) / unit;
  return {std::min(count, units * thread / threads * unit),
          std::min(count, units * (thread + 1) / threads * unit)};
}

OpCategory category_of(Phase::Kind kind) {
  switch (kind) {
    case Phase::Kind::gather:
      return OpCategory::reorder;
    case Phase::Kind::loss:
      return OpCategory::loss;
    case Phase::Kind::forward:
    case Phase::Kind::backward:
      break;
  }
  return OpCategory::product;
}

}  // namespace

FusedProgram::FusedProgram(const Workload& workload, const std::vector<DenseStep>& training,
                           const CompileOptions& options, std::int64_t bytes)
    : order_(workload.order),
      threads_(options.threads),
      block_(allocate(bytes, options.threads)),
      memory_(workload.tensors),
      kernels_(best_kernels()),
      loss_parts_(static_cast<std::size_t>(options.threads)) {
  Arena arena(block_.get());
  steps_ = bind_steps(workload, training, threads_, options.keep_activations, arena, memory_);
  for (const FusedStep& step : steps_) {
    for (const Phase& phase : step.phases) {
      shares_ |= phase.shared;
    }
  }
}

void FusedProgram::perform(const Phase& phase, const FusedStep& step, std::int64_t first_row,
                           int thread, int threads) {
  const Layer& layer = step.layers[static_cast<std::size_t>(phase.layer)];
  switch (phase.kind) {
    case Phase::Kind::gather: {
      const Part features = part_of(layer.in, 1, thread, threads);
      kernels_.gather(step.data + first_row, step.data_ld, step.batch, step.inputs, features.begin,
                      features.end);
      break;
    }
    case Phase::Kind::forward: {
      const Part outputs = part_of(layer.out, tile, thread, threads);
      kernels_.forward(layer, step.batch, outputs.begin, outputs.end);
      break;
    }
    case Phase::Kind::loss: {
      Loss loss = step.loss;
      loss.labels = step.labels + first_row;
      const Part samples = part_of(step.batch.stride, floats_of_line, thread, threads);
      loss_parts_[static_cast<std::size_t>(thread)].sum =
          kernels_.loss(loss, step.batch, samples.begin, samples.end);
      if (thread == 0) {
        update_ = step.optimizer.next();
      }
      break;
    }
    case Phase::Kind::backward: {
      const Part inputs = part_of(layer.in, tile, thread, threads);
      const Part outputs = part_of(layer.out, tile, thread, threads);
      kernels_.backward(layer, step.batch, update_, inputs.begin, inputs.end);
      kernels_.bias(layer, step.batch, update_, outputs.begin, outputs.end);
      break;
    }
  }
}

template <class After>
void FusedProgram::run(std::int64_t index, int thread, int threads, const After& after) {
  const Run& what = order_[static_cast<std::size_t>(index)];
  const FusedStep& step = steps_[static_cast<std::size_t>(what.step)];
  int threads_of_loss = 1;
  for (const Phase& phase : step.phases) {
    if (phase.wait) {
      barrier_.wait(threads);
    }
    const int sharers = phase.shared ? threads : 1;
    if (thread < sharers) {
      perform(phase, step, what.first_row, thread, sharers);
    }
    if (phase.kind == Phase::Kind::loss) {
      threads_of_loss = sharers;
    }
    after(phase);
  }
  if (thread == 0) {  // whoever had a part of the loss was waited for since
    double sum = 0;
    for (int i = 0; i < threads_of_loss; ++i) {
      sum += loss_parts_[static_cast<std::size_t>(i)].sum;
    }
    step.losses[index] = static_cast<float>(sum / static_cast<double>(step.batch.rows));
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
