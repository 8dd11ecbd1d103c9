// SPDX-License-Identifier: Apache-2.0
#include "persistent.h"

#include <algorithm>
#include <limits>

#include "../kernels/operand.h"

namespace crossover::cuda {
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
    end_ += kept.states * parameters;
    if (stores_gradients_) {
      common_.gradients = take(parameters);
    }
    if (kept.states == states_of_adamw) {
      common_.factors = take(2);
    }
    // Twice: the next batch comes in while one is computed.
    common_.inputs = static_cast<int>(matrix_floats(batch, places_.front().in));
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

}  // namespace crossover::cuda
