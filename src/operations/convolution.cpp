// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/convolution.h"

#include <stdexcept>

#include "../reference/run.h"
#include "counting.h"
#include "fit.h"
#include "images.h"

namespace crossover {
namespace {

/// The shape of y.
Shape result(const Fit& fit, Id x, Id w, const Window& window) {
  const Shape& images = image(fit, x);
  const Shape& weights = fit.at(w).shape;
  fit.require(weights.size() == 4 && weights[1] == images[1] && weights[2] == window.size &&
                  weights[3] == window.size,
              "weights '" + fit.at(w).name + "' " + to_string(weights) + " are not [out, " +
                  std::to_string(images[1]) + ", " + std::to_string(window.size) + ", " +
                  std::to_string(window.size) + "]");
  fit.require(!window.ceil, "the window of a convolution has no ceil");
  return result_of(fit, window, images, weights[0]);
}

/// As if each window lay within the image: each value of y is a sum over all weights of its
/// channel.
double flops_of(const Workload& workload, Id w, Id y) {
  return 2 * count(workload, y) * count(workload, w) / static_cast<double>(workload[w].shape[0]);
}

/// The matrix products that a convolution is, were its windows laid out as rows.
struct AsProduct {
  std::int64_t pixels, out, in;
};
AsProduct as_product(const Workload& workload, Id w, Id y) {
  const Shape& image = workload[y].shape;
  const Shape& weights = workload[w].shape;
  return {.pixels = image[0] * image[2] * image[3],
          .out = weights[0],
          .in = weights[1] * weights[2] * weights[3]};
}

}  // namespace

// ---- Convolution

void Convolution::check(const Fit& fit) const {
  const Type type = fit.number(x);
  fit.expect(y, result(fit, x, w, window), type);
  fit.expect(w, fit.at(w).shape, type);
  if (bias != none) {
    fit.expect(bias, {fit.at(w).shape[0]});
  }
}

Cost Convolution::cost(const Workload& workload) const {
  return {.flops = flops_of(workload, w, y) + (bias != none ? count(workload, y) : 0) +
                   flops(activation) * count(workload, y),
          .launches = activation != Activation::identity ? 2 : 1};
}

std::vector<OpProduct> Convolution::products(const Workload& workload) const {
  const AsProduct size = as_product(workload, w, y);
  return {{{.m = size.pixels,
            .n = size.out,
            .k = size.in,
            .transpose_b = true,
            .type = workload[x].type},
           "forward"}};
}

void Convolution::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no Convolution yet");
}

// ---- ConvolutionGrad

void ConvolutionGrad::check(const Fit& fit) const {
  const Type type = fit.number(x);
  fit.expect(dy, result(fit, x, w, window), type);
  fit.expect(w, fit.at(w).shape, type);
  fit.expect(dw, fit.at(w).shape);
  if (dbias != none) {
    fit.expect(dbias, {fit.at(w).shape[0]});
  }
  if (dx != none) {
    fit.expect(dx, fit.at(x).shape, type);
  }
}

Cost ConvolutionGrad::cost(const Workload& workload) const {
  Cost sum{.flops = flops_of(workload, w, dy), .launches = 1};
  if (dbias != none) {
    sum += {.flops = count(workload, dy), .launches = 1};
  }
  if (dx != none) {
    sum += {.flops = flops_of(workload, w, dy), .launches = 1};
  }
  return sum;
}

std::vector<OpProduct> ConvolutionGrad::products(const Workload& workload) const {
  const AsProduct size = as_product(workload, w, dy);
  const Type type = workload[x].type;
  std::vector<OpProduct> all;
  if (dx != none) {
    all.push_back({{.m = size.pixels, .n = size.in, .k = size.out, .type = type}, "dx"});
  }
  all.push_back(
      {{.m = size.out, .n = size.in, .k = size.pixels, .transpose_a = true, .type = type}, "dw"});
  return all;
}

void ConvolutionGrad::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no ConvolutionGrad yet");
}

}  // namespace crossover
