// SPDX-License-Identifier: Apache-2.0
#include "persistent.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <variant>

#include "../../step/overload.h"
#include "launches/operand.h"

namespace crossover::cuda {

// ---- How a team shares out a product: tiles of 1, 2 or 4 times 4 results for a thread, and
// several lanes to a tile where there are fewer tiles than threads. Large tiles read less shared
// memory for each multiply-add (a 4 x 4 tile one float for two of them, a 1 x 4 tile five floats
// for four); many lanes shorten the sums that a thread waits for. Estimates from published
// latencies (reads of shared memory, of another block's in a cluster and of the L2 cache, 29, 180
// and 263 cycles: Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture,
// 2024). For one block and clusters they are 3 to 12 times too small, but chose better than when
// what an H200 took besides was added: docs/evidence/persistent.md.

namespace {

constexpr int warp = 32;
constexpr int tile_columns = 4;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// A product, seen from the tiles of its result.
struct Work {
  int rows = 0, columns = 0;
  int sum = 0;           ///< terms that lanes can share, in pieces of
  int step = 1;          ///< terms
  bool vectors = false;  ///< whether both factors are read in vectors along the sum
};

Work work_of(const Job& job, const OnChipLayer& layer, int rows) {
  switch (job.kind) {
    case Job::Kind::forward:
      return {.rows = rows, .columns = layer.out, .sum = layer.in, .step = 4, .vectors = true};
    case Job::Kind::dx:
      return {.rows = rows, .columns = layer.in, .sum = layer.out, .step = 4, .vectors = true};
    case Job::Kind::dw:
      return {.rows = layer.out, .columns = layer.in, .sum = rows};
    case Job::Kind::dbias:
      return {.rows = 1, .columns = layer.out, .sum = rows};
    default:
      return {};
  }
}

/// Who shares out a product, and what they wait for, in cycles.
struct Crew {
  int warps = 1, multiprocessors = 1;
  double latency = 30;  ///< of a read
  // Of a grid, as an H200 took besides:
  double job = 0;    ///< until a warp knows which tasks of a job are its own
  double task = 0;   ///< but for its sums
  double terms = 0;  ///< that a sum takes at once, but for what it waits for
};

/// A cluster's blocks each have products of their own.
Crew crew_of(const Team& team) {
  if (team.kind == TeamKind::grid) {
    return {.warps = team.warps * team.blocks,
            .multiprocessors = team.blocks,
            .latency = 250,
            .job = 1500,
            .task = 1000,
            .terms = 100};
  }
  return {.warps = team.warps};
}

/// Of a product as it is split.
struct Time {
  double busy = 0;  ///< cycles that multiply-adds and reads take of a multiprocessor
  int tasks = 0;
  double wait = 0;  ///< cycles from the start of a warp's task to its end
};

Time time_of(const Work& work, int rows, int lanes, const Crew& crew) {
  constexpr double multiply_adds = 128.0 / warp;  // warps' that a multiprocessor starts each cycle
  constexpr double cycles_of_read = 2;            // of vectors by a warp: many lanes read the same
  constexpr double latency_of_shuffle = 30;
  const int tiles = ceil_div(work.rows, rows) * ceil_div(work.columns, tile_columns);
  const int tasks = ceil_div(tiles * lanes, warp);
  const int steps = ceil_div(ceil_div(work.sum, work.step), lanes);
  const double fma = work.vectors ? 16.0 * rows : 4.0 * rows;
  const double reads = work.vectors ? rows + 4 : 2;
  const double shuffles = 4 * rows * std::log2(lanes);
  return {.busy = tasks *
                  (steps * std::max(fma / multiply_adds, reads * cycles_of_read) +
                   shuffles * cycles_of_read) /
                  crew.multiprocessors,
          .tasks = tasks,
          .wait = crew.task + crew.latency + steps * (crew.latency + fma + crew.terms) +
                  std::log2(lanes) * latency_of_shuffle + shuffles};
}

/// Of all parameters, each by the block that they belong to.
Time time_of_update(const std::vector<OnChipLayer>& layers, const Team& team) {
  // The source above has 2.65 TB/s of the whole GPU for clusters of four: 13 bytes in a cycle of a
  // multiprocessor, where the own memory gives 128.
  constexpr double cycles_of_vector = 16.0 / 13;
  constexpr double latency = 180;
  const OnChipLayer& last = layers.back();
  const int vectors = (last.bias + leading_dimension(last.out)) / tile_columns;
  const int others = team.blocks - 1;
  return {.busy = 2.0 * vectors * others / team.blocks * cycles_of_vector,
          .tasks = ceil_div(ceil_div(vectors, warp), team.blocks),
          .wait = 2 * latency + 2 * others};
}

/// The most of what its multiply-adds, its reads and the waits of one warp take.
double cycles_of(const Time& time, const Crew& crew) {
  return std::max(time.busy, ceil_div(time.tasks, crew.warps) * time.wait);
}

double cycles_of_barrier(const Team& team, bool is_of_all) {
  switch (team.kind) {
    case TeamKind::block:
      return 20 + 2 * team.warps;
    case TeamKind::cluster:
      return is_of_all ? 300 : 20 + 2 * team.warps;
    case TeamKind::grid:
      break;
  }
  return 2000;
}

/// Sets how the job's product is split.
Time choose_split(Job& job, const Work& work, const Crew& crew) {
  Time best;
  for (const int rows : {1, 2, 4}) {
    if (rows > 1 && job.kind == Job::Kind::dbias) {
      break;
    }
    for (int lanes = 1; lanes <= warp; lanes *= 2) {
      const Time time = time_of(work, rows, lanes, crew);
      if (best.tasks == 0 || cycles_of(time, crew) < cycles_of(best, crew)) {
        best = time;
        job.rows = static_cast<std::uint8_t>(rows) & 7U;
        job.lanes_log2 = std::countr_zero(static_cast<unsigned>(lanes)) & 7;
      }
    }
  }
  const bool by_columns = job.kind == Job::Kind::dw;
  const Divider divider =
      divider_by(by_columns ? ceil_div(work.columns, tile_columns) : ceil_div(work.rows, job.rows));
  job.divider_factor = divider.factor;
  job.divider_shift = divider.shift;
  return best;
}

}  // namespace

double split(std::vector<Job>& phase, const std::vector<OnChipLayer>& layers, int rows,
             const Team& team) {
  const Crew crew = crew_of(team);
  double busy = 0;
  double longest = 0;  // wait
  double waits = 0;    // of all tasks
  int tasks = 0;
  for (Job& job : phase) {
    const Work work = work_of(job, layers[job.layer], rows);
    const Time time = job.kind == Job::Kind::update ? time_of_update(layers, team)
                      : work.sum > 0                ? choose_split(job, work, crew)
                                                    : Time{};
    busy += time.busy;
    longest = std::max(longest, time.wait);
    waits += time.tasks * time.wait;
    tasks += time.tasks;
  }
  // Jobs of a phase run side by side: its tasks, of the average length, go to the warps in turns.
  const double turns = tasks == 0 ? 0 : ceil_div(tasks, crew.warps) * waits / tasks;
  const auto jobs = static_cast<double>(phase.size() - 1);  // but for the barrier
  return std::max({busy, longest, turns}) + jobs * crew.job +
         cycles_of_barrier(team, phase.back().kind == Job::Kind::exchange);
}

// ---- Persistent layout

namespace {

using Kind = Job::Kind;
using Phases = std::vector<std::vector<Job>>;

constexpr std::int64_t vector_floats = 4;

std::int64_t matrix_floats(std::int64_t rows, std::int64_t columns) {
  return round_up(rows, vector_floats) * leading_dimension(columns);
}

/// What lies in shared memory from one phase of a step to another.
struct Lifetime {
  std::int64_t floats = 0;
  int first = std::numeric_limits<int>::max(), last = -1;
  std::int64_t at = -1;

  void use(int phase) {
    first = std::min(first, phase);
    last = std::max(last, phase);
  }
  [[nodiscard]] bool meets(const Lifetime& other) const {
    return first <= other.last && other.first <= last;
  }
};

/// The largest first, each at the lowest place where it meets none that is needed at once: greedy
/// by size, as src/step/memory.cpp does on whole tensors. Returns the end of all.
std::int64_t place(std::vector<Lifetime*> all, std::int64_t start) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Lifetime* a, const Lifetime* b) { return a->floats > b->floats; });
  std::int64_t end = start;
  std::vector<const Lifetime*> placed;  // by place
  for (Lifetime* one : all) {
    one->at = start;
    for (const Lifetime* other : placed) {
      if (one->meets(*other) && one->at + one->floats > other->at) {
        one->at = std::max(one->at, other->at + other->floats);
      }
    }
    end = std::max(end, one->at + one->floats);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), one,
                         [](const Lifetime* a, const Lifetime* b) { return a->at < b->at; }),
        one);
  }
  return end;
}

/// Puts everything into shared memory, which the phases must let go of for others.
class SharedLayout {
 public:
  SharedLayout(const std::vector<DenseLayer>& layers, std::int64_t batch, const Kept& kept,
               const Phases& phases)
      : y_(layers.size()), dy_(layers.size()), slope_(layers.size()) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      y_[l].floats = dy_[l].floats = matrix_floats(batch, layers[l].out);
      slope_[l].floats = derivative_takes_input(layers[l].activation) ? y_[l].floats : 0;
      places_.push_back({.in = static_cast<int>(layers[l].in),
                         .out = static_cast<int>(layers[l].out),
                         .in_next = leading_dimension(layers[l].in),
                         .out_next = leading_dimension(layers[l].out),
                         .in_tiles = ceil_div(static_cast<int>(layers[l].in), tile_columns),
                         .out_tiles = ceil_div(static_cast<int>(layers[l].out), tile_columns),
                         .activation = layers[l].activation,
                         .x_activation = layers[l].x_activation});
    }
    row_losses_.floats = round_up(batch, vector_floats);
    for (std::size_t phase = 0; phase < phases.size(); ++phase) {
      for (const Job& job : phases[phase]) {
        use(job, static_cast<int>(phase));
        stores_gradients_ |= job.kind == Kind::update;
      }
    }
    place_all(batch, kept);
  }

  [[nodiscard]] PersistentLayout made() && {
    return {.layers = std::move(places_),
            .places = common_,
            .bytes = end_ * static_cast<std::int64_t>(sizeof(float))};
  }

 private:
  void use(const Job& job, int phase) {
    const std::size_t l = job.layer;
    const auto use_x = [&] {
      if (l > 0) {
        y_[l - 1].use(phase);
      }
    };
    switch (job.kind) {
      case Kind::forward:
        use_x();
        y_[l].use(phase);
        slope_[l].use(phase);
        break;
      case Kind::loss:
        y_[l].use(phase);
        dy_[l].use(phase);
        row_losses_.use(phase);
        break;
      case Kind::mean_loss:
        row_losses_.use(phase);
        break;
      case Kind::dx:
        use_x();
        slope_[l - 1].use(phase);
        dy_[l].use(phase);
        dy_[l - 1].use(phase);
        break;
      case Kind::dw:
        use_x();
        dy_[l].use(phase);
        break;
      case Kind::dbias:
        dy_[l].use(phase);
        break;
      case Kind::barrier:
      case Kind::exchange:
      case Kind::update:
      case Kind::load:
      case Kind::factors:
        break;
    }
  }

  int take(std::int64_t floats) {
    const std::int64_t at = end_;
    end_ += round_up(floats, vector_floats);
    return static_cast<int>(at);
  }

  void place_all(std::int64_t batch, const Kept& kept) {
    for (OnChipLayer& layer : places_) {
      layer.w = take(matrix_floats(layer.out, layer.in));
      layer.bias = take(leading_dimension(layer.out));
    }
    const std::int64_t parameters = end_;
    common_.parameters = static_cast<int>(parameters);
    common_.states = kept.states;
    common_.rule = kept.rule;
    end_ += kept.states * parameters;
    if (stores_gradients_) {
      common_.gradients = take(parameters);
    }
    if (kept.rule == KernelRule::adamw) {
      common_.factors = take(2);
    }
    // Twice: the next batch comes in while one is computed.
    common_.inputs = static_cast<int>(matrix_floats(batch, places_.front().in));
    common_.by_inputs = divider_by(places_.front().in);
    common_.wanted_next = static_cast<int>(round_up(batch * kept.wanted, vector_floats));
    places_.front().x = take(2 * std::int64_t{common_.inputs});
    common_.wanted = take(2 * std::int64_t{common_.wanted_next});
    std::vector<Lifetime*> all{&row_losses_};
    for (std::size_t l = 0; l < places_.size(); ++l) {
      all.insert(all.end(), {&y_[l], &dy_[l]});
      if (slope_[l].floats > 0) {
        all.push_back(&slope_[l]);
      }
    }
    end_ = place(all, end_);
    common_.row_losses = static_cast<int>(row_losses_.at);
    for (std::size_t l = 0; l < places_.size(); ++l) {
      places_[l].y = static_cast<int>(y_[l].at);
      places_[l].dy = static_cast<int>(dy_[l].at);
      places_[l].slope = static_cast<int>(slope_[l].at);
      if (l > 0) {
        places_[l].x = places_[l - 1].y;
        places_[l].x_slope = places_[l - 1].slope;
        places_[l].dx = places_[l - 1].dy;
      }
    }
  }

  std::vector<Lifetime> y_, dy_, slope_;
  Lifetime row_losses_;
  bool stores_gradients_ = false;
  std::vector<OnChipLayer> places_;
  OnChipPlaces common_;
  std::int64_t end_ = 0;
};

}  // namespace

PersistentLayout lay_out(const std::vector<DenseLayer>& layers, std::int64_t batch,
                         const Kept& kept, const Phases& phases) {
  return SharedLayout(layers, batch, kept, phases).made();
}

// ---- Persistent

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Unsupported("one kernel for the whole order " + why);
}

void require(const CompileOptions& options) {
  if (options.precision != Precision::f32) {
    refuse("computes in f32 alone, not in " + to_string(options.precision));
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
    cycles += split(phase, layers, step.rows, team);
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
  Team team{.kind = kind, .blocks = blocks};
  const Phases phases = phases_of(of_all.layers().size(), of_all.kept.rule, phasing);
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
      step.rows = ceil_div(static_cast<int>(dense.batch), team.memories());
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

KernelRule rule_of(const Optimizer& rule) {
  return std::visit(Overload{[](const SgdOptions&) { return KernelRule::sgd; },
                             [](const MomentumOptions&) { return KernelRule::momentum; },
                             [](const AdamWOptions&) { return KernelRule::adamw; }},
                    rule);
}

}  // namespace

Kept kept_of(const DenseStep& step) {
  Kept kept{.wanted = wanted_of_row(step)};
  if (step.update) {
    kept.states = static_cast<int>(step.update->states.size());
    kept.rule = rule_of(step.update->rule);
  }
  return kept;
}

std::int64_t wanted_of_row(const DenseStep& step) {
  return step.loss.function == LossFunction::cross_entropy ? 1 : step.classes();
}

Phases phases_of(std::size_t layers, KernelRule rule, Phasing phasing) {
  const auto of = [](Kind kind, std::size_t layer) {
    return Job{.kind = kind, .layer = static_cast<std::uint8_t>(layer)};
  };
  const std::size_t last = layers - 1;
  Phases phases;
  for (std::size_t l = 0; l < layers; ++l) {
    phases.push_back({of(Kind::forward, l)});
  }
  phases.front().insert(phases.front().begin(), of(Kind::load, 0));  // it takes the longest
  if (rule == KernelRule::adamw) {
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

std::vector<DenseStep> steps_of_one_kernel(const Workload& workload,
                                           const CompileOptions& options) {
  require(options);
  std::vector<DenseStep> dense = dense_training(workload);
  require(dense.front().layers.size(), most_on_chip_layers, "layers");
  require(dense.size(), most_on_chip_steps, "sizes of a batch");
  return dense;
}

PersistentPlan plan_persistent(const Workload& workload, const CompileOptions& options,
                               const OnChip& chip) {
  std::vector<DenseStep> dense = steps_of_one_kernel(workload, options);
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
    const std::int64_t at_once = chip.teams_at_once(blocks);
    const std::int64_t turns = (options.copies + at_once - 1) / at_once;
    candidate.cycles *= static_cast<double>(turns);
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
