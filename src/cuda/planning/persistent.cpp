// SPDX-License-Identifier: Apache-2.0
#include "persistent.h"

#include <algorithm>
#include <limits>
#include <string>

#include "persistent_layout.h"

namespace crossover::cuda {
namespace {

using Kind = Job::Kind;
using Phases = std::vector<std::vector<Job>>;

[[noreturn]] void refuse(const std::string& why) {
  throw Unsupported("one kernel for the whole order " + why);
}

void require(const CompileOptions& options) {
  if (options.precision != Precision::f32) {
    refuse("computes in f32 alone, not in " + to_string(options.precision));
  }
  if (options.placement != Placement::resident) {
    refuse("reads the data set where it lies on the GPU: it must be resident");
  }
  if (options.loss_every_step) {
    refuse("shows its losses at its end, not after each step");
  }
}

void require(std::size_t count, std::size_t most, const std::string& what) {
  if (count > most) {
    refuse("takes at most " + std::to_string(most) + " " + what + ", not " + std::to_string(count));
  }
}

/// The jobs of a step as the kernel takes them, and about how long they take.
double write(OnChipStep& step, Phases phases, const std::vector<OnChipLayer>& layers,
             const Team& team) {
  // Of a block's, and of all blocks' by way of the L2 cache.
  const double cycles_of_barrier = team.is_on_chip() ? 20 + 2 * team.warps : 2000;
  double cycles = 0;
  for (std::vector<Job>& phase : phases) {
    cycles += split(phase, layers, step.batch, team) + cycles_of_barrier;
    phase.push_back({.kind = Kind::barrier});
    require(static_cast<std::size_t>(step.jobs) + phase.size(), most_jobs, "pieces of a step");
    for (const Job& job : phase) {
      step.job[step.jobs++] = job;
    }
  }
  return cycles;
}

/// Sets steps and threads: as many as make the first step, which is most of an epoch, the fastest.
void choose_threads(PersistentPlan& plan, const Phases& phases, int most_threads) {
  constexpr int warp = 32;
  double least = std::numeric_limits<double>::infinity();
  for (int warps = 1; warps * warp <= most_threads; warps *= 2) {
    std::vector<OnChipStep> steps;
    std::vector<double> cycles;
    for (const DenseStep& dense : plan.dense) {
      OnChipStep& step = steps.emplace_back();
      step.batch = static_cast<int>(dense.batch);
      cycles.push_back(write(step, phases, plan.layers,
                             {.warps = warps * plan.blocks, .multiprocessors = plan.blocks}));
    }
    if (cycles.front() < least) {
      least = cycles.front();
      plan.threads = warps * warp;
      plan.steps = std::move(steps);
    }
  }
}

/// Warps take tasks in turn by the bits of their number.
int power_of_two_within(int count) {
  int power = 1;
  while (2 * power <= count) {
    power *= 2;
  }
  return power;
}

std::string kilobytes(std::int64_t bytes) { return std::to_string((bytes + 1023) >> 10); }

}  // namespace

Phases phases_of(std::size_t layers, bool adamw, bool overlapped) {
  const auto of = [](Kind kind, std::size_t layer) {
    return Job{.kind = kind, .layer = static_cast<std::uint8_t>(layer)};
  };
  const std::size_t last = layers - 1;
  Phases phases;
  for (std::size_t l = 0; l < layers; ++l) {
    phases.push_back({of(Kind::forward, l)});
  }
  phases.front().insert(phases.front().begin(), of(Kind::load, 0));  // it takes the longest
  if (adamw) {
    phases.front().push_back(of(Kind::factors, 0));
  }
  phases.push_back({of(Kind::loss, last)});
  const std::size_t backward = phases.size();
  // dx reads the weights before dw changes them.
  for (std::size_t l = last; l > 0; --l) {
    if (!overlapped || l == last) {
      phases.emplace_back();
    }
    phases.back().push_back(of(Kind::dx, l));
    phases.push_back({of(Kind::dw, l), of(Kind::dbias, l)});
  }
  if (!overlapped || last == 0) {
    phases.emplace_back();
  }
  phases.back().insert(phases.back().end(), {of(Kind::dw, 0), of(Kind::dbias, 0)});
  phases[backward].push_back(of(Kind::mean_loss, 0));
  return phases;
}

PersistentPlan plan_persistent(const Workload& workload, const CompileOptions& options,
                               const OnChip& chip) {
  require(options);
  PersistentPlan plan{.dense = dense_training(workload)};
  const std::vector<DenseLayer>& layers = plan.dense.front().layers;
  require(layers.size(), most_on_chip_layers, "layers");
  require(plan.dense.size(), most_on_chip_steps, "sizes of a batch");
  const auto largest =
      std::max_element(plan.dense.begin(), plan.dense.end(),
                       [](const DenseStep& a, const DenseStep& b) { return a.batch < b.batch; });
  const bool adamw = plan.dense.front().adamw.has_value();
  const auto take = [&](PersistentLayout layout, const Phases& phases) {
    plan.layers = std::move(layout.layers);
    plan.places = layout.places;
    plan.bytes = layout.bytes;
    choose_threads(plan, phases, chip.threads);
  };
  std::int64_t least = 0;
  for (const bool overlapped : {true, false}) {
    const Phases phases = phases_of(layers.size(), adamw, overlapped);
    PersistentLayout layout = lay_out(layers, largest->batch, adamw, phases);
    least = layout.bytes;
    if (layout.bytes <= chip.shared_bytes) {
      take(std::move(layout), phases);
      return plan;
    }
  }
  const Phases phases = phases_of(layers.size(), adamw, /*overlapped=*/true);
  PersistentLayout layout = lay_out(layers, largest->batch, adamw, phases);
  if (chip.multiprocessors < 2 || layout.bytes > chip.cache_bytes / 2) {  // data passes through it
    refuse("needs " + kilobytes(least) + " KB for this network at batch " +
           std::to_string(largest->batch) + "; a block of this GPU has " +
           std::to_string(chip.shared_bytes >> 10) +
           " KB of shared memory, and all blocks half of " +
           std::to_string(chip.cache_bytes >> 10) + " KB of cache");
  }
  plan.blocks = power_of_two_within(chip.multiprocessors);
  take(std::move(layout), phases);
  return plan;
}

}  // namespace crossover::cuda
