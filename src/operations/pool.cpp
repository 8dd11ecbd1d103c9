// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/pool.h"

#include <stdexcept>

#include "../reference/run.h"
#include "counting.h"
#include "fit.h"
#include "images.h"

namespace crossover {
namespace {

Shape result(const Fit& fit, Id x, const Window& window) {
  const Shape& images = image(fit, x);
  return result_of(fit, window, images, images[1]);
}

void check_largest(const Fit& fit, Id where, const Shape& shape, const Window& window) {
  constexpr std::int64_t most_rows = 15;  // places in the window fit a byte
  fit.require(window.size <= most_rows, "the window has more than 15 rows");
  fit.expect(where, shape, Type::u8);
}

/// Each element of the result meets each of its window once.
double flops_of(const Workload& workload, Id y, const Window& window) {
  return count(workload, y) * static_cast<double>(window.size * window.size);
}

}  // namespace

// ---- MaxPool

void MaxPool::check(const Fit& fit) const {
  const Shape shape = result(fit, x, window);
  fit.expect(y, shape, fit.number(x));
  check_largest(fit, where, shape, window);
}

Cost MaxPool::cost(const Workload& workload) const {
  return {.flops = flops_of(workload, y, window), .launches = 1};
}

std::vector<OpProduct> MaxPool::products(const Workload& /*workload*/) const { return {}; }

void MaxPool::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no MaxPool yet");
}

// ---- MaxPoolGrad

void MaxPoolGrad::check(const Fit& fit) const {
  const Type type = fit.number(dx);
  const Shape shape = result(fit, dx, window);
  fit.expect(dy, shape, type);
  check_largest(fit, where, shape, window);
  fit.require(x_activation == Activation::identity || y != none,
              "the derivative of an activation is taken from y, which is missing");
  if (y != none) {
    fit.expect(y, shape, type);
  }
}

Cost MaxPoolGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dy) * (1 + derivative_flops(x_activation)),
          .launches = x_activation != Activation::identity ? 2 : 1};
}

std::vector<OpProduct> MaxPoolGrad::products(const Workload& /*workload*/) const { return {}; }

void MaxPoolGrad::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no MaxPoolGrad yet");
}

// ---- AveragePool

void AveragePool::check(const Fit& fit) const {
  fit.expect(y, result(fit, x, window), fit.number(x));
}

Cost AveragePool::cost(const Workload& workload) const {
  return {.flops = flops_of(workload, y, window), .launches = 1};
}

std::vector<OpProduct> AveragePool::products(const Workload& /*workload*/) const { return {}; }

void AveragePool::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no AveragePool yet");
}

// ---- AveragePoolGrad

void AveragePoolGrad::check(const Fit& fit) const {
  const Type type = fit.number(dx);
  fit.expect(dy, result(fit, dx, window), type);
  fit.require(x_activation == Activation::identity || x != none,
              "the derivative of an activation is taken from x, which is missing");
  if (x != none) {
    fit.expect(x, fit.at(dx).shape, type);
  }
}

Cost AveragePoolGrad::cost(const Workload& workload) const {
  return {.flops =
              flops_of(workload, dy, window) + derivative_flops(x_activation) * count(workload, dx),
          .launches = x_activation != Activation::identity ? 2 : 1};
}

std::vector<OpProduct> AveragePoolGrad::products(const Workload& /*workload*/) const { return {}; }

void AveragePoolGrad::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no AveragePoolGrad yet");
}

}  // namespace crossover
