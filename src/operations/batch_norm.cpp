// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/batch_norm.h"

#include <stdexcept>

#include "../reference/run.h"
#include "counting.h"
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

std::vector<OpProduct> BatchNorm::products(const Workload& /*workload*/) const { return {}; }

void BatchNorm::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no BatchNorm yet");
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

std::vector<OpProduct> BatchNormGrad::products(const Workload& /*workload*/) const { return {}; }

void BatchNormGrad::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no BatchNormGrad yet");
}

}  // namespace crossover
