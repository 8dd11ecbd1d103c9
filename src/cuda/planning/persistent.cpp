// SPDX-License-Identifier: Apache-2.0
#include "persistent.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>

#include "../round_up.h"

namespace crossover::cuda {
namespace {

using Kind = Job::Kind;
using Phases = std::vector<std::vector<Job>>;

constexpr std::int64_t vector_floats = 4;

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
/// by size, as memory_plan.cpp does on whole tensors. Returns the end of all.
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
class Layout {
 public:
  Layout(const std::vector<DenseLayer>& layers, std::int64_t batch, bool adamw,
         const Phases& phases)
      : y_(layers.size()), dy_(layers.size()) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      y_[l].floats = dy_[l].floats = matrix_floats(batch, layers[l].out);
      places_.push_back({.in = static_cast<int>(layers[l].in),
                         .out = static_cast<int>(layers[l].out),
                         .activation = layers[l].activation,
                         .x_activation = layers[l].x_activation});
    }
    row_losses_.floats = round_up(batch, vector_floats);
    for (std::size_t phase = 0; phase < phases.size(); ++phase) {
      for (const Job& job : phases[phase]) {
        use(job, static_cast<int>(phase));
      }
    }
    place_all(batch, adamw);
  }

  void write(PersistentPlan& plan) const {
    plan.layers = places_;
    plan.places = common_;
    plan.shared_bytes = end_ * static_cast<std::int64_t>(sizeof(float));
  }
  [[nodiscard]] std::int64_t bytes() const {
    return end_ * static_cast<std::int64_t>(sizeof(float));
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

  void place_all(std::int64_t batch, bool adamw) {
    for (OnChipLayer& layer : places_) {
      layer.w = take(matrix_floats(layer.out, layer.in));
      layer.bias = take(leading_dimension(layer.out));
    }
    if (adamw) {
      common_.states = static_cast<int>(end_);
      end_ *= 3;
      common_.factors = take(2);
    }
    // Twice: the next batch comes in while one is computed.
    common_.inputs = static_cast<int>(matrix_floats(batch, places_.front().in));
    common_.labels_next = static_cast<int>(round_up(batch, vector_floats));
    places_.front().x = take(2 * std::int64_t{common_.inputs});
    common_.labels = take(2 * std::int64_t{common_.labels_next});
    std::vector<Lifetime*> all{&row_losses_};
    for (std::size_t l = 0; l < places_.size(); ++l) {
      all.insert(all.end(), {&y_[l], &dy_[l]});
    }
    end_ = place(all, end_);
    common_.row_losses = static_cast<int>(row_losses_.at);
    for (std::size_t l = 0; l < places_.size(); ++l) {
      places_[l].y = static_cast<int>(y_[l].at);
      places_[l].dy = static_cast<int>(dy_[l].at);
      if (l > 0) {
        places_[l].x = places_[l - 1].y;
        places_[l].dx = places_[l - 1].dy;
      }
    }
  }

  std::vector<Lifetime> y_, dy_;
  Lifetime row_losses_;
  std::vector<OnChipLayer> places_;
  OnChipPlaces common_;
  std::int64_t end_ = 0;
};

/// The jobs of a step as the kernel takes them, and about how long they take.
double write(OnChipStep& step, Phases phases, const std::vector<OnChipLayer>& layers, int warps) {
  constexpr double cycles_of_barrier = 20;
  constexpr double cycles_of_barrier_by_warp = 2;
  double cycles = 0;
  for (std::vector<Job>& phase : phases) {
    cycles += split(phase, layers, step.batch, warps) + cycles_of_barrier +
              cycles_of_barrier_by_warp * warps;
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
      cycles.push_back(write(step, phases, plan.layers, warps));
    }
    if (cycles.front() < least) {
      least = cycles.front();
      plan.threads = warps * warp;
      plan.steps = std::move(steps);
    }
  }
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
  std::int64_t least = 0;
  for (const bool overlapped : {true, false}) {
    const Phases phases = phases_of(layers.size(), adamw, overlapped);
    const Layout layout(layers, largest->batch, adamw, phases);
    if (layout.bytes() <= chip.shared_bytes) {
      layout.write(plan);
      choose_threads(plan, phases, chip.threads);
      return plan;
    }
    least = layout.bytes();
  }
  refuse("needs " + kilobytes(least) + " KB of shared memory for this network at batch " +
         std::to_string(largest->batch) + "; a block of this GPU has " +
         std::to_string(chip.shared_bytes >> 10));
}

}  // namespace crossover::cuda
