// SPDX-License-Identifier: Apache-2.0
#include "persistent.h"

#include <algorithm>
#include <limits>
#include <string>

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
  double cycles = 0;
  for (std::vector<Job>& phase : phases) {
    cycles += split(phase, layers, step.batch, team);
    require(static_cast<std::size_t>(step.jobs) + phase.size(), most_jobs, "pieces of a step");
    for (const Job& job : phase) {
      step.job[step.jobs++] = job;
    }
  }
  return cycles;
}

/// A plan, and about how long its first step takes, which is most of an epoch.
struct Candidate {
  PersistentPlan plan;
  double cycles = std::numeric_limits<double>::infinity();
};

/// What does not depend on who trains.
struct TrainedSteps {
  const std::vector<DenseStep>& dense;
  std::int64_t batch = 0;  ///< the largest
  Kept kept;
  int most_threads = 0;

  [[nodiscard]] const std::vector<DenseLayer>& layers() const { return dense.front().layers; }
};

/// With steps and as many threads as make it the fastest.
Candidate candidate_of(const TrainedSteps& of_all, TeamKind kind, int blocks, Phasing phasing) {
  constexpr int warp = 32;
  Team team{.kind = kind, .blocks = blocks};
  const Phases phases = phases_of(of_all.layers().size(), of_all.kept.states, phasing);
  PersistentLayout layout = lay_out(
      of_all.layers(), (of_all.batch + team.memories() - 1) / team.memories(), of_all.kept, phases);
  Candidate best;
  best.plan.layers = std::move(layout.layers);
  best.plan.places = layout.places;
  best.plan.bytes = layout.bytes;
  best.plan.team = kind;
  best.plan.blocks = blocks;
  for (; team.warps * warp <= of_all.most_threads; team.warps *= 2) {
    std::vector<OnChipStep> steps;
    std::vector<double> cycles;
    for (const DenseStep& dense : of_all.dense) {
      OnChipStep& step = steps.emplace_back();
      step.batch = static_cast<int>(dense.batch);
      cycles.push_back(write(step, phases, best.plan.layers, team));
    }
    if (cycles.front() < best.cycles) {
      best.cycles = cycles.front();
      best.plan.threads = team.warps * warp;
      best.plan.steps = std::move(steps);
    }
  }
  return best;
}

Kept kept_of(const DenseStep& step) {
  return {.states = step.adamw      ? states_of_adamw
                    : step.momentum ? 1
                                    : 0,
          .wanted = wanted_of_row(step)};
}

/// `least` is what needs the least memory in a block.
[[noreturn]] void refuse_size(const TrainedSteps& of_all, const PersistentPlan& least,
                              const OnChip& chip) {
  refuse(
      "needs " + std::to_string((least.bytes + 1023) >> 10) + " KB for this network at batch " +
      std::to_string(of_all.batch) +
      (least.blocks > 1 ? " in each block of a cluster of " + std::to_string(least.blocks) : "") +
      "; a block of this GPU has " + std::to_string(chip.shared_bytes >> 10) +
      " KB of shared memory, and all blocks half of " + std::to_string(chip.cache_bytes >> 10) +
      " KB of cache");
}

}  // namespace

std::int64_t wanted_of_row(const DenseStep& step) {
  return step.loss.function == LossFunction::cross_entropy ? 1 : step.classes();
}

Phases phases_of(std::size_t layers, int states, Phasing phasing) {
  const auto of = [](Kind kind, std::size_t layer) {
    return Job{.kind = kind, .layer = static_cast<std::uint8_t>(layer)};
  };
  const std::size_t last = layers - 1;
  Phases phases;
  for (std::size_t l = 0; l < layers; ++l) {
    phases.push_back({of(Kind::forward, l)});
  }
  phases.front().insert(phases.front().begin(), of(Kind::load, 0));  // it takes the longest
  if (states == states_of_adamw) {
    phases.front().push_back(of(Kind::factors, 0));
  }
  phases.push_back({of(Kind::loss, last)});
  const std::size_t backward = phases.size();
  if (phasing == Phasing::spread) {
    for (std::size_t l = last; l > 0; --l) {
      phases.push_back({of(Kind::dx, l), of(Kind::dw, l), of(Kind::dbias, l)});
    }
    phases.push_back({of(Kind::dw, 0), of(Kind::dbias, 0)});
    phases.push_back({of(Kind::update, 0)});
  } else {
    // dx reads the weights before dw changes them.
    const bool overlapped = phasing == Phasing::overlapped;
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
  }
  const bool is_spread = phasing == Phasing::spread;
  (is_spread ? phases.back() : phases[backward]).push_back(of(Kind::mean_loss, 0));
  for (std::size_t p = 0; p < phases.size(); ++p) {
    phases[p].push_back(
        of(is_spread && p + 2 >= phases.size() ? Kind::exchange : Kind::barrier, 0));
  }
  return phases;
}

PersistentPlan plan_persistent(const Workload& workload, const CompileOptions& options,
                               const OnChip& chip) {
  require(options);
  std::vector<DenseStep> dense = dense_training(workload);
  require(dense.front().layers.size(), most_on_chip_layers, "layers");
  require(dense.size(), most_on_chip_steps, "sizes of a batch");
  const auto largest =
      std::max_element(dense.begin(), dense.end(),
                       [](const DenseStep& a, const DenseStep& b) { return a.batch < b.batch; });
  const TrainedSteps of_all{.dense = dense,
                            .batch = largest->batch,
                            .kept = kept_of(dense.front()),
                            .most_threads = chip.threads};
  Candidate best;
  Candidate least;  // of memory
  const auto consider = [&](TeamKind kind, int blocks, Phasing phasing) {
    Candidate candidate = candidate_of(of_all, kind, blocks, phasing);
    if (least.plan.bytes == 0 || candidate.plan.bytes < least.plan.bytes) {
      least = candidate;
    }
    if (candidate.plan.bytes <= chip.shared_bytes && candidate.cycles < best.cycles) {
      best = std::move(candidate);
    }
  };
  consider(TeamKind::block, 1, Phasing::overlapped);
  if (best.plan.threads == 0) {
    consider(TeamKind::block, 1, Phasing::separate);
  }
  for (int blocks = 2; blocks <= chip.cluster_blocks; blocks *= 2) {
    consider(TeamKind::cluster, blocks, Phasing::spread);
  }
  if (best.plan.threads == 0) {
    best = candidate_of(of_all, TeamKind::grid, chip.multiprocessors, Phasing::overlapped);
    if (chip.multiprocessors < 2 || best.plan.bytes > chip.cache_bytes / 2) {  // data passes by
      refuse_size(of_all, least.plan, chip);
    }
  }
  best.plan.most_shared_bytes = chip.shared_bytes;
  best.plan.dense = std::move(dense);
  return std::move(best.plan);
}

}  // namespace crossover::cuda
