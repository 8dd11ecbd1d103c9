// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/normalization.h"

#include <algorithm>
#include <cmath>

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "crossover/elementwise.h"
#include "fit.h"

namespace crossover {

// ---- Batch normalization

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
    const double sum = gradient[i] + (more != nullptr ? more[i] : 0);
    return result != nullptr ? times_derivative_from_result(activation, sum, result[i]) : sum;
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

// ---- Layer normalization

namespace {

/// That what a normalization without means or weights lacks as well is none.
void check_absent(const Fit& fit, Id mean, Id weight, Id bias) {
  fit.require(bias == none || (mean != none && weight != none),
              "it has a bias, and no mean or no weight");
}

/// That each of `statistics` that there is has a number for each row of x, and each of `columns`
/// one for each column.
void check_rows(const Fit& fit, Id x, const std::vector<Id>& statistics,
                const std::vector<Id>& columns) {
  Shape rows = fit.at(x).shape;
  fit.require(!rows.empty(), "'" + fit.at(x).name + "' is a single number, not rows of them");
  const Shape width{rows.back()};
  rows.pop_back();
  const auto expect_all = [&](const std::vector<Id>& ids, const Shape& shape) {
    for (const Id id : ids) {
      if (id != none) {
        fit.expect(id, shape);
      }
    }
  };
  expect_all(statistics, rows);
  expect_all(columns, width);
}

/// body(row, where it begins) for each row of a tensor [..., width].
template <class Body>
void for_each_row(const Shape& shape, const Body& body) {
  const std::int64_t rows = leading(shape);
  for (std::int64_t row = 0; row < rows; ++row) {
    body(row, row * shape.back());
    alive();
  }
}

}  // namespace

// ---- LayerNorm

void LayerNorm::check(const Fit& fit) const {
  fit.expect(y, fit.at(x).shape, fit.number(x));
  check_absent(fit, mean, weight, bias);
  check_rows(fit, x, {mean, inverse_deviation}, {weight, bias});
}

/// Sum, sum of squared differences (3), then difference, two factors and bias. Without means the
/// sum of squares (2) and two factors. A weight or a bias that is none is not counted.
Cost LayerNorm::cost(const Workload& workload) const {
  const int of_all = mean == none ? 3 : 6;
  const int of_parameters = (weight == none ? 0 : 1) + (bias == none ? 0 : 1);
  return {.flops = (of_all + of_parameters) * count(workload, x), .launches = 1};
}

void LayerNorm::execute(ReferenceRun& run) const {
  const std::int64_t width = run.shape(x).back();
  const auto of_row = static_cast<double>(width);
  for_each_row(run.shape(x), [&](std::int64_t row, std::int64_t first) {
    const double* from = run.at(x) + first;
    double* to = run.at(y) + first;
    double sum = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      sum += from[i];
    }
    const double middle = mean == none ? 0 : sum / of_row;
    double squares = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      squares += (from[i] - middle) * (from[i] - middle);
    }
    const double inverse = 1 / std::sqrt(squares / of_row + epsilon);
    if (mean != none) {
      run.at(mean)[row] = middle;
    }
    run.at(inverse_deviation)[row] = inverse;
    for (std::int64_t i = 0; i < width; ++i) {
      to[i] = (weight == none ? 1 : run.at(weight)[i]) * ((from[i] - middle) * inverse) +
              (bias == none ? 0 : run.at(bias)[i]);
    }
  });
}

// ---- LayerNormGrad

void LayerNormGrad::check(const Fit& fit) const {
  const Type type = fit.number(x);
  fit.expect(dy, fit.at(x).shape, type);
  if (dx != none) {
    fit.expect(dx, fit.at(x).shape, type);
  }
  check_absent(fit, mean, weight, dbias);
  fit.require((weight == none) == (dweight == none), "it has one of weight and dweight");
  fit.require(dx != none || dweight != none, "it has nothing to write");
  check_rows(fit, x, {mean, inverse_deviation}, {weight, dweight, dbias});
}

/// x' (2) and the sums for weight (2) and bias (1); for dx dz (1), its sums (3) and what they give
/// (4). Without means x' (1) and the sum (2); dz, its sum (2) and what it gives (3). What is none
/// is not counted.
Cost LayerNormGrad::cost(const Workload& workload) const {
  const bool centred = mean != none;
  const int of_sums = (dweight == none ? 0 : 2) + (dbias == none ? 0 : 1);
  const int of_weight = weight == none ? 0 : 1;
  return {.flops = ((centred ? 2 : 1) + of_sums) * count(workload, x) +
                   ((centred ? 7 : 5) + of_weight) * count(workload, dx),
          .launches = 1};
}

void LayerNormGrad::execute(ReferenceRun& run) const {
  const std::int64_t width = run.shape(x).back();
  if (dweight != none) {
    std::fill_n(run.at(dweight), width, 0.0);
  }
  if (dbias != none) {
    std::fill_n(run.at(dbias), width, 0.0);
  }
  for_each_row(run.shape(x), [&](std::int64_t row, std::int64_t first) {
    const double* gradient = run.at(dy) + first;
    const auto factor = [&](std::int64_t i) { return weight == none ? 1 : run.at(weight)[i]; };
    const double inverse = run.at(inverse_deviation)[row];
    const auto normalized = [from = run.at(x) + first,
                             middle = mean == none ? 0 : run.at(mean)[row],
                             inverse](std::int64_t i) { return (from[i] - middle) * inverse; };
    double sum = 0;
    double products = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      if (dweight != none) {
        run.at(dweight)[i] += gradient[i] * normalized(i);
      }
      if (dbias != none) {
        run.at(dbias)[i] += gradient[i];
      }
      sum += mean == none ? 0 : gradient[i] * factor(i);
      products += gradient[i] * factor(i) * normalized(i);
    }
    for (std::int64_t i = 0; i < width && dx != none; ++i) {
      run.at(dx)[first + i] =
          inverse *
          (gradient[i] * factor(i) - (sum + normalized(i) * products) / static_cast<double>(width));
    }
  });
}

// ---- Group normalization

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
