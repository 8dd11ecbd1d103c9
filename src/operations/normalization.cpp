// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/normalization.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "../reference/run.h"
#include "crossover/alive.h"
#include "crossover/functions.h"
#include "fit.h"

namespace crossover {

namespace {

/// Of what goes with x.
struct Beside {
  Shape statistics, channels;
};

Beside beside(const Fit& fit, NormKind kind, Id x, std::int64_t groups) {
  if (kind == NormKind::layer) {
    Shape rows = fit.at(x).shape;
    fit.require(!rows.empty(), "'" + fit.at(x).name + "' is a single number, not rows of them");
    const Shape width{rows.back()};
    rows.pop_back();
    return {.statistics = rows, .channels = width};
  }
  const Shape& images = image(fit, x);
  fit.require(
      groups > 0 && images[1] % groups == 0,
      std::to_string(groups) + " groups do not divide " + std::to_string(images[1]) + " channels");
  return {.statistics = kind == NormKind::batch ? Shape{images[1]} : Shape{images[0], groups},
          .channels = {images[1]}};
}

/// What only a batch has is none elsewhere, and what only a layer may lack is there elsewhere.
void check_kind(const Fit& fit, NormKind kind, Activation activation,
                const std::vector<Id>& of_batch, const std::vector<Id>& of_others) {
  const auto is_there = [](Id id) { return id != none; };
  fit.require(kind == NormKind::batch || (activation == Activation::identity &&
                                          std::none_of(of_batch.begin(), of_batch.end(), is_there)),
              "only that of a batch takes an activation, an addend or a second gradient");
  fit.require(activation == Activation::identity || activation == Activation::relu,
              "takes no activation but ReLU");
  fit.require(kind == NormKind::layer || std::all_of(of_others.begin(), of_others.end(), is_there),
              "only that of a layer does without a mean, a scale, a shift or a gradient");
}

/// Of those that there are.
void expect_all(const Fit& fit, const std::vector<Id>& ids, const Shape& shape,
                Type type = Type::f32) {
  for (const Id id : ids) {
    fit.expect_if_any(id, shape, type);
  }
}

/// x as [batch, channels, inner], and which of its numbers share a mean.
class Parts {
 public:
  Parts(NormKind kind, const Shape& x, std::int64_t groups)
      : is_batch_(kind == NormKind::batch),
        is_layer_(kind == NormKind::layer),
        batch_(is_layer_ ? leading(x) : x[0]),
        channels_(is_layer_ ? x.back() : x[1]),
        inner_(is_layer_ ? 1 : x[2] * x[3]),
        groups_(is_batch_ ? channels_ : groups) {}

  [[nodiscard]] double size_of_each() const {
    const std::int64_t channels = channels_ / groups_;
    return static_cast<double>((is_batch_ ? batch_ : 1) * channels * inner_);
  }

  /// body(i, which sums and passes over the numbers that share mean i) for each mean.
  template <class Body>
  void for_each_mean(const Body& body) const {
    const std::int64_t means = is_batch_ ? channels_ : batch_ * groups_;
#pragma omp parallel for schedule(dynamic) if (batch_ * channels_ * inner_ > 100000)
    for (std::int64_t i = 0; i < means; ++i) {
      body(i);
    }
  }

  /// body(channel, first, end) for the numbers that share mean i, those of a channel at a time.
  template <class Body>
  void for_each_part(std::int64_t i, const Body& body) const {
    const std::int64_t of_group = channels_ / groups_;
    const std::int64_t first = i % groups_ * of_group;
    const std::int64_t image = is_batch_ ? 0 : i / groups_;
    for (std::int64_t b = image; b < (is_batch_ ? batch_ : image + 1); ++b) {
      for (std::int64_t channel = first; channel < first + of_group; ++channel) {
        const std::int64_t at = (b * channels_ + channel) * inner_;
        body(channel, at, at + inner_);
      }
      alive();
    }
  }

  /// The sums of both of terms(channel, element) over the numbers that share mean i.
  template <class Terms>
  [[nodiscard]] std::array<double, 2> sums(std::int64_t i, const Terms& terms) const {
    std::array<double, 2> all{};
    for_each_part(i, [&](std::int64_t channel, std::int64_t first, std::int64_t end) {
      double one = 0;
      double other = 0;
#pragma omp simd reduction(+ : one, other)
      for (std::int64_t at = first; at < end; ++at) {
        const std::array<double, 2> more = terms(channel, at);
        one += more[0];
        other += more[1];
      }
      all[0] += one;
      all[1] += other;
    });
    return all;
  }

  /// body(channel, mean, first, end) for all numbers, in order for each channel.
  template <class Body>
  void for_each_channel(const Body& body) const {
    constexpr std::int64_t at_once = 64;  // whose numbers lie side by side in a row
#pragma omp parallel for schedule(dynamic) if (batch_ * channels_ * inner_ > 100000)
    for (std::int64_t begin = 0; begin < channels_; begin += at_once) {
      for (std::int64_t b = 0; b < batch_; ++b) {
        for (std::int64_t c = begin; c < std::min(begin + at_once, channels_); ++c) {
          const std::int64_t at = (b * channels_ + c) * inner_;
          body(c, is_batch_ ? c : b * groups_ + c / (channels_ / groups_), at, at + inner_);
        }
        alive();
      }
    }
  }

 private:
  bool is_batch_, is_layer_;
  std::int64_t batch_, channels_, inner_;
  std::int64_t groups_;  ///< of each of the batch; that of a batch itself has one for each channel
};

}  // namespace

const char* Norm::name() const {
  return kind == NormKind::batch   ? "BatchNorm"
         : kind == NormKind::layer ? "LayerNorm"
                                   : "GroupNorm";
}

void Norm::check(const Fit& fit) const {
  const Type type = fit.number(x);
  const auto& [statistics, channels] = beside(fit, kind, x, groups);
  check_kind(fit, kind, activation, {addend}, {mean, scale, shift});
  fit.require(shift == none || (mean != none && scale != none),
              "it has a bias, and no mean or no weight");
  fit.expect(y, fit.at(x).shape, type);
  fit.expect(inverse_deviation, statistics);
  expect_all(fit, {mean}, statistics);
  expect_all(fit, {scale, shift}, channels);
  expect_all(fit, {addend}, fit.at(x).shape, type);
}

/// Sum, sum of squared differences (3), then difference, factor and shift; of a layer difference,
/// two factors and shift. Without means the sum of squares (2) and two factors. A scale or a shift
/// that is none is not counted.
Cost Norm::cost(const Workload& workload) const {
  const int of_parameters = (scale == none ? 0 : 1) + (shift == none ? 0 : 1);
  const int of_all = kind != NormKind::layer ? 7 : (mean == none ? 3 : 6) + of_parameters;
  Cost sum{.flops = of_all * count(workload, x), .launches = 1};
  if (addend != none) {
    sum += {.flops = count(workload, y), .launches = 1};
  }
  if (activation != Activation::identity) {
    sum += {.flops = flops(activation) * count(workload, y), .launches = 1};
  }
  return sum;
}

void Norm::execute(ReferenceRun& run) const {
  const Parts parts(kind, run.shape(x), groups);
  const double size = parts.size_of_each();
  const double* from = run.at(x);
  const double* added = addend != none ? run.at(addend) : nullptr;
  double* to = run.at(y);
  parts.for_each_mean([&](std::int64_t i) {
    double middle = 0;
    if (mean != none) {
      middle = parts.sums(i, [=](std::int64_t /*channel*/, std::int64_t at) {
        return std::array{from[at], 0.0};
      })[0] / size;
      run.at(mean)[i] = middle;
    }
    const double squares = parts.sums(i, [=](std::int64_t /*channel*/, std::int64_t at) {
      return std::array{(from[at] - middle) * (from[at] - middle), 0.0};
    })[0];
    const double inverse = 1 / std::sqrt(squares / size + epsilon);
    run.at(inverse_deviation)[i] = inverse;
    parts.for_each_part(i, [&](std::int64_t channel, std::int64_t first, std::int64_t end) {
      const double factor = scale == none ? 1 : run.at(scale)[channel];
      const double offset = shift == none ? 0 : run.at(shift)[channel];
      for (std::int64_t at = first; at < end; ++at) {
        to[at] = activate(activation, factor * ((from[at] - middle) * inverse) + offset +
                                          (added != nullptr ? added[at] : 0));
      }
    });
  });
}

const char* NormGrad::name() const {
  return kind == NormKind::batch   ? "BatchNormGrad"
         : kind == NormKind::layer ? "LayerNormGrad"
                                   : "GroupNormGrad";
}

void NormGrad::check(const Fit& fit) const {
  const Type type = fit.number(x);
  const auto& [statistics, channels] = beside(fit, kind, x, groups);
  check_kind(fit, kind, activation, {y, dy_more, daddend}, {mean, scale, dx, dscale, dshift});
  fit.require(activation == Activation::identity || y != none,
              "the derivative of an activation is taken from y, which is missing");
  fit.require(dshift == none || (mean != none && scale != none),
              "it has a bias, and no mean or no weight");
  fit.require((scale == none) == (dscale == none), "it has one of weight and dweight");
  fit.require(dx != none || dscale != none, "it has nothing to write");
  fit.expect(dy, fit.at(x).shape, type);
  fit.expect(inverse_deviation, statistics);
  expect_all(fit, {mean}, statistics);
  expect_all(fit, {scale, dscale, dshift}, channels);
  expect_all(fit, {dx, y, dy_more, daddend}, fit.at(x).shape, type);
}

/// Two sums of 1 and 4 (difference, factor, product, addition), then 5 for dx. Of a layer x' (2)
/// and the sums for scale (2) and shift (1); for dx dz (1), its sums (3) and what they give (4);
/// without means x' (1) and the sum (2); dz, its sum (2) and what it gives (3). What is none is not
/// counted.
Cost NormGrad::cost(const Workload& workload) const {
  Cost sum{.flops = 10 * count(workload, x), .launches = 1};
  if (kind == NormKind::layer) {
    const int of_sums = (dscale == none ? 0 : 2) + (dshift == none ? 0 : 1);
    const int of_scale = scale == none ? 0 : 1;
    sum.flops = ((mean == none ? 1 : 2) + of_sums) * count(workload, x) +
                ((mean == none ? 5 : 7) + of_scale) * count(workload, dx);
  }
  if (dy_more != none) {
    sum += {.flops = count(workload, dy), .launches = 1};
  }
  if (activation != Activation::identity) {
    sum += {.flops = derivative_flops(activation) * count(workload, dy), .launches = 1};
  }
  return sum;
}

void NormGrad::execute(ReferenceRun& run) const {
  const Parts parts(kind, run.shape(x), groups);
  const double size = parts.size_of_each();
  const double* result = y != none ? run.at(y) : nullptr;
  const double* gradient = run.at(dy);
  const double* more = dy_more != none ? run.at(dy_more) : nullptr;
  const auto dz = [=, this](std::int64_t at) {
    const double sum = gradient[at] + (more != nullptr ? more[at] : 0);
    return result != nullptr ? times_derivative_from_result(activation, sum, result[at]) : sum;
  };
  const auto normalized_by = [&](std::int64_t i) {
    return [from = run.at(x), middle = mean == none ? 0 : run.at(mean)[i],
            inverse = run.at(inverse_deviation)[i]](std::int64_t at) {
      return (from[at] - middle) * inverse;
    };
  };
  if (dx != none) {
    parts.for_each_mean([&](std::int64_t i) {
      const auto normalized = normalized_by(i);
      const auto slope = [&, factors = scale != none ? run.at(scale) : nullptr](
                             std::int64_t channel, std::int64_t at) {
        return dz(at) * (factors != nullptr ? factors[channel] : 1);
      };
      auto [sum, products] = parts.sums(i, [&](std::int64_t channel, std::int64_t at) {
        return std::array{slope(channel, at), slope(channel, at) * normalized(at)};
      });
      sum = mean == none ? 0 : sum;
      parts.for_each_part(i, [&, sum = sum, products = products](
                                 std::int64_t channel, std::int64_t first, std::int64_t end) {
        for (std::int64_t at = first; at < end; ++at) {
          run.at(dx)[at] = run.at(inverse_deviation)[i] *
                           (slope(channel, at) - (sum + normalized(at) * products) / size);
          if (daddend != none) {
            run.at(daddend)[at] = dz(at);
          }
        }
      });
    });
  }
  if (dscale == none) {
    return;
  }
  double* of_scale = run.at(dscale);
  double* of_shift = dshift != none ? run.at(dshift) : nullptr;
  std::fill_n(of_scale, run.size(dscale), 0.0);
  if (of_shift != nullptr) {
    std::fill_n(of_shift, run.size(dshift), 0.0);
  }
  parts.for_each_channel(
      [&](std::int64_t channel, std::int64_t i, std::int64_t first, std::int64_t end) {
        const auto normalized = normalized_by(i);
        for (std::int64_t at = first; at < end; ++at) {
          of_scale[channel] += dz(at) * normalized(at);
          if (of_shift != nullptr) {
            of_shift[channel] += dz(at);
          }
        }
      });
}

}  // namespace crossover
