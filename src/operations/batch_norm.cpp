// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/batch_norm.h"

#include <cmath>

#include "../reference/channels.h"
#include "../reference/run.h"
#include "counting.h"
#include "crossover/elementwise.h"
#include "fit.h"
#include "images.h"

namespace crossover {
namespace {

void check_activation(const Fit& fit, Activation activation) {
  fit.require(activation == Activation::identity || activation == Activation::relu,
              "takes no activation but ReLU");
}

void check_channels(const Fit& fit, const Shape& channels, const std::vector<Id>& ids) {
  for (const Id id : ids) {
    fit.expect(id, channels);
  }
}

/// body(channel, how many elements it has) for each channel.
template <class Body>
void for_each_channel(const Shape& images, const Body& body) {
  const std::int64_t elements_of_it = images[0] * images[2] * images[3];
#pragma omp parallel for schedule(dynamic) if (images[1] * elements_of_it > 100000)
  for (std::int64_t channel = 0; channel < images[1]; ++channel) {
    body(channel, static_cast<double>(elements_of_it));
  }
}

}  // namespace

// ---- BatchNorm

void BatchNorm::check(const Fit& fit) const {
  const Shape& images = image(fit, x);
  const Type type = fit.number(x);
  check_activation(fit, activation);
  check_channels(fit, {images[1]}, {scale, shift, mean, inverse_deviation});
  fit.expect(y, images, type);
  if (addend != none) {
    fit.expect(addend, images, type);
  }
}

/// Sum, sum of squared differences (3), then difference, factor and shift.
Cost BatchNorm::cost(const Workload& workload) const {
  Cost sum{.flops = 7 * count(workload, x), .launches = 1};
  if (addend != none) {
    sum += {.flops = count(workload, y), .launches = 1};
  }
  if (activation != Activation::identity) {
    sum += {.flops = flops(activation) * count(workload, y), .launches = 1};
  }
  return sum;
}

void BatchNorm::execute(ReferenceRun& run) const {
  const Shape& images = run.shape(x);
  const double* from = run.at(x);
  const double* added = addend != none ? run.at(addend) : nullptr;
  double* to = run.at(y);
  for_each_channel(images, [&](std::int64_t channel, double count) {
    const double middle =
        sum_of_channel(images, channel, [=](std::int64_t i) { return from[i]; }) / count;
    const double variance =
        sum_of_channel(images, channel,
                       [=](std::int64_t i) { return (from[i] - middle) * (from[i] - middle); }) /
        count;
    const double inverse = 1 / std::sqrt(variance + epsilon);
    run.at(mean)[channel] = middle;
    run.at(inverse_deviation)[channel] = inverse;
    const double factor = run.at(scale)[channel] * inverse;
    const double offset = run.at(shift)[channel];
    for_each_part(images, channel, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        to[i] = activate(activation,
                         factor * (from[i] - middle) + offset + (added != nullptr ? added[i] : 0));
      }
    });
  });
}

// ---- BatchNormGrad

void BatchNormGrad::check(const Fit& fit) const {
  const Shape& images = image(fit, x);
  const Type type = fit.number(x);
  check_activation(fit, activation);
  check_channels(fit, {images[1]}, {scale, mean, inverse_deviation, dscale, dshift});
  fit.require(activation == Activation::identity || y != none,
              "the derivative of an activation is taken from y, which is missing");
  for (const Id id : {dy, dx}) {
    fit.expect(id, images, type);
  }
  for (const Id id : {y, dy_more, daddend}) {
    if (id != none) {
      fit.expect(id, images, type);
    }
  }
}

/// Two sums of 1 and 4 (difference, factor, product, addition), then 5 for dx.
Cost BatchNormGrad::cost(const Workload& workload) const {
  Cost sum{.flops = 10 * count(workload, x), .launches = 1};
  if (dy_more != none) {
    sum += {.flops = count(workload, dy), .launches = 1};
  }
  if (activation != Activation::identity) {
    sum += {.flops = derivative_flops(activation) * count(workload, dy), .launches = 1};
  }
  return sum;
}

void BatchNormGrad::execute(ReferenceRun& run) const {
  const Shape& images = run.shape(x);
  const double* from = run.at(x);
  const double* result = y != none ? run.at(y) : nullptr;
  const double* gradient = run.at(dy);
  const double* more = dy_more != none ? run.at(dy_more) : nullptr;
  const auto dz = [=, this](std::int64_t i) {
    return (gradient[i] + (more != nullptr ? more[i] : 0)) *
           (result != nullptr ? derivative_from_result(activation, result[i]) : 1);
  };
  for_each_channel(images, [&](std::int64_t channel, double count) {
    const double middle = run.at(mean)[channel];
    const double inverse = run.at(inverse_deviation)[channel];
    const auto normalized = [=](std::int64_t i) { return (from[i] - middle) * inverse; };
    const double of_shift = sum_of_channel(images, channel, dz);
    const double of_scale =
        sum_of_channel(images, channel, [&](std::int64_t i) { return dz(i) * normalized(i); });
    run.at(dshift)[channel] = of_shift;
    run.at(dscale)[channel] = of_scale;
    const double factor = run.at(scale)[channel] * inverse;
    double* to = run.at(dx);
    double* to_addend = daddend != none ? run.at(daddend) : nullptr;
    for_each_part(images, channel, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        to[i] = factor * (dz(i) - (of_shift + normalized(i) * of_scale) / count);
        if (to_addend != nullptr) {
          to_addend[i] = dz(i);
        }
      }
    });
  });
}

}  // namespace crossover
