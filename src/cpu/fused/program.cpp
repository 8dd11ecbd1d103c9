// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <omp.h>

#include <algorithm>
#include <chrono>

namespace crossover::cpu::fused {
namespace {

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
