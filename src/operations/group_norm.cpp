// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/group_norm.h"

#include <algorithm>
#include <cmath>

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "fit.h"
#include "images.h"

namespace crossover {
namespace {

void check_groups(const Fit& fit, Id x, std::int64_t groups, const std::vector<Id>& images,
                  const std::vector<Id>& channels, const std::vector<Id>& statistics) {
  const Shape& shape = image(fit, x);
  const Type type = fit.number(x);
  fit.require(
      groups > 0 && shape[1] % groups == 0,
      std::to_string(groups) + " groups do not divide " + std::to_string(shape[1]) + " channels");
  for (const Id id : images) {
    fit.expect(id, shape, type);
  }
  for (const Id id : channels) {
    fit.expect(id, {shape[1]});
  }
  for (const Id id : statistics) {
    fit.expect(id, {shape[0], groups});
  }
}

/// body(group of an image, its first channel, its first element, its elements, a channel's).
template <class Body>
void for_each_group(const Shape& images, std::int64_t groups, const Body& body) {
  const std::int64_t pixels = images[2] * images[3];
  const std::int64_t channels = images[1] / groups;
#pragma omp parallel for schedule(static) if (images[0] * images[1] * pixels > 100000)
  for (std::int64_t i = 0; i < images[0] * groups; ++i) {
    body(i, i % groups * channels, i * channels * pixels, channels * pixels, pixels);
    alive();
  }
}

}  // namespace

// ---- GroupNorm

void GroupNorm::check(const Fit& fit) const {
  check_groups(fit, x, groups, {y}, {scale, shift}, {mean, inverse_deviation});
}

/// As BatchNorm's: sum, sum of squared differences (3), then difference, factor and shift.
Cost GroupNorm::cost(const Workload& workload) const {
  return {.flops = 7 * count(workload, x), .launches = 1};
}

void GroupNorm::execute(ReferenceRun& run) const {
  const double* from = run.at(x);
  double* to = run.at(y);
  for_each_group(run.shape(x), groups,
                 [&](std::int64_t group, std::int64_t channel, std::int64_t first,
                     std::int64_t size, std::int64_t pixels) {
                   double sum = 0;
                   for (std::int64_t i = 0; i < size; ++i) {
                     sum += from[first + i];
                   }
                   const double middle = sum / static_cast<double>(size);
                   double squares = 0;
                   for (std::int64_t i = 0; i < size; ++i) {
                     squares += (from[first + i] - middle) * (from[first + i] - middle);
                   }
                   const double inverse =
                       1 / std::sqrt(squares / static_cast<double>(size) + epsilon);
                   run.at(mean)[group] = middle;
                   run.at(inverse_deviation)[group] = inverse;
                   for (std::int64_t i = 0; i < size; ++i) {
                     const std::int64_t c = channel + i / pixels;
                     to[first + i] =
                         run.at(scale)[c] * (from[first + i] - middle) * inverse + run.at(shift)[c];
                   }
                 });
}

// ---- GroupNormGrad

void GroupNormGrad::check(const Fit& fit) const {
  check_groups(fit, x, groups, {dy, dx}, {scale, dscale, dshift}, {mean, inverse_deviation});
}

/// As BatchNormGrad's.
Cost GroupNormGrad::cost(const Workload& workload) const {
  return {.flops = 10 * count(workload, x), .launches = 1};
}

void GroupNormGrad::execute(ReferenceRun& run) const {
  const Shape& images = run.shape(x);
  const std::int64_t channels = images[1];
  std::vector<double> of_shift(static_cast<std::size_t>(images[0] * channels));
  std::vector<double> of_scale(of_shift.size());  // of each image
  const double* gradient = run.at(dy);
  for_each_group(
      images, groups,
      [&](std::int64_t group, std::int64_t channel, std::int64_t first, std::int64_t size,
          std::int64_t pixels) {
        const double* factor = run.at(scale) + channel;
        const auto normalized = [from = run.at(x), middle = run.at(mean)[group],
                                 inverse = run.at(inverse_deviation)[group]](std::int64_t i) {
          return (from[i] - middle) * inverse;
        };
        double sum = 0;
        double products = 0;
        for (std::int64_t i = 0; i < size; ++i) {
          const double slope = gradient[first + i];
          const auto of_channel = static_cast<std::size_t>((first + i) / pixels);
          of_shift[of_channel] += slope;
          of_scale[of_channel] += slope * normalized(first + i);
          sum += slope * factor[i / pixels];
          products += slope * factor[i / pixels] * normalized(first + i);
        }
        for (std::int64_t i = 0; i < size; ++i) {
          run.at(dx)[first + i] =
              run.at(inverse_deviation)[group] *
              (gradient[first + i] * factor[i / pixels] -
               (sum + normalized(first + i) * products) / static_cast<double>(size));
        }
      });
  std::fill_n(run.at(dshift), channels, 0.0);
  std::fill_n(run.at(dscale), channels, 0.0);
  for (std::size_t i = 0; i < of_shift.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(i) % channels;
    run.at(dshift)[channel] += of_shift[i];
    run.at(dscale)[channel] += of_scale[i];
  }
}

}  // namespace crossover
