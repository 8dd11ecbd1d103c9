// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/image.h"

#include <algorithm>

#include "../reference/products.h"
#include "../reference/run.h"
#include "crossover/alive.h"
#include "crossover/functions.h"
#include "crossover/tensor.h"
#include "fit.h"

namespace crossover {

namespace {

/// The shape of y.
Shape result(const Fit& fit, Id x, Id w, const Window& window) {
  const Shape& images = image(fit, x);
  const Shape& weights = fit.at(w).shape;
  const Pair& size = window.size;
  fit.require(weights.size() == 4 && images[1] % weights[1] == 0 && weights[2] == size.down &&
                  weights[3] == size.across,
              "weights '" + fit.at(w).name + "' " + to_string(weights) + " are not [out, " +
                  std::to_string(images[1]) + " or a part of it, " + std::to_string(size.down) +
                  ", " + std::to_string(size.across) + "]");
  const std::int64_t groups = groups_of(fit.at(x), fit.at(w));
  fit.require(weights[0] % groups == 0, std::to_string(groups) + " groups do not divide the " +
                                            std::to_string(weights[0]) + " channels of the result");
  fit.require(!window.ceil, "the window of a convolution has no ceil");
  return result_of(fit, window, images, weights[0]);
}

/// As if each window lay within the image: each value of y is a sum over all weights of its
/// channel.
double flops_of(const Workload& workload, Id w, Id y) {
  return 2 * count(workload, y) * count(workload, w) / static_cast<double>(workload[w].shape[0]);
}

/// One pass over the windows.
Cost cost_of_pass(const Workload& workload, Id x, Id w, Id y, const Window& window) {
  const double flops = flops_of(workload, w, y);
  constexpr double avoidable = 20.0 / 36;
  return {.flops = flops,
          .avoidable_flops = has_winograd(workload[x], workload[w], window) ? avoidable * flops : 0,
          .launches = 1};
}

/// The matrix product that a convolution in one group is, were its windows laid out as rows.
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

// ---- in float64: a group of images at a time, each group in one thread, or one after the other
// with threads in each product

/// What a group multiplies: some channels of the results, and their places in a window.
struct Part {
  std::int64_t groups, out, places;

  [[nodiscard]] std::int64_t weights() const { return out * places; }
};
Part part_of(std::int64_t groups, std::int64_t out, const Windows& windows) {
  return {.groups = groups, .out = out / groups, .places = windows.places() / groups};
}

/// Memory for a matrix with so many rows and a column for each position of a block.
std::vector<double> matrix(const Windows& windows, std::int64_t rows) {
  std::int64_t most = 0;
  for (const auto& group : windows.groups()) {
    for (const WindowBlock& block : group) {
      most = std::max(most, windows.positions(block));
    }
  }
  return std::vector<double>(static_cast<std::size_t>(rows * most));
}

/// dx = each window's gradient, w transposed by dy, added to the elements of the window.
void gradient_of_images(const Windows& windows, const Part& part, const double* w, const double* dy,
                        double* dx) {
  const std::int64_t out = part.groups * part.out;
  const std::int64_t groups = std::ssize(windows.groups());
#pragma omp parallel if (groups > 1)
  {
    std::vector<double> gradients = matrix(windows, out);
    std::vector<double> laid_out = matrix(windows, windows.places());
#pragma omp for schedule(dynamic)
    for (std::int64_t group = 0; group < groups; ++group) {
      for (const WindowBlock& block : windows.groups()[static_cast<std::size_t>(group)]) {
        const std::int64_t positions = windows.positions(block);
        windows.take(block, out, dy, gradients.data());
        for (std::int64_t g = 0; g < part.groups; ++g) {
          multiply(part.places, positions, part.out, {w + g * part.weights(), 1, part.places},
                   {gradients.data() + g * part.out * positions, positions, 1},
                   laid_out.data() + g * part.places * positions, false);
        }
        windows.add_back(block, laid_out.data(), dx);
      }
    }
  }
}

/// dw = the sum over all blocks of dy by the windows transposed. Small ones are summed in parts, a
/// thread each; how many depends on the shapes alone, so that the sum does too.
void gradient_of_weights(const Windows& windows, const Part& of, const double* x, const double* dy,
                         double* dw) {
  constexpr std::int64_t small = 1 << 18;
  constexpr std::int64_t most_parts = 64;
  const std::int64_t out = of.groups * of.out;
  const std::int64_t size = of.groups * of.weights();
  const std::int64_t groups = std::ssize(windows.groups());
  const std::int64_t parts = size <= small ? std::min(groups, most_parts) : 1;
  std::vector<double> sums(static_cast<std::size_t>(parts * size));
#pragma omp parallel if (parts > 1)
  {
    std::vector<double> gradients = matrix(windows, out);
    std::vector<double> laid_out = matrix(windows, windows.places());
#pragma omp for schedule(dynamic)
    for (std::int64_t part = 0; part < parts; ++part) {
      for (std::int64_t group = part * groups / parts; group < (part + 1) * groups / parts;
           ++group) {
        for (const WindowBlock& block : windows.groups()[static_cast<std::size_t>(group)]) {
          const std::int64_t positions = windows.positions(block);
          windows.take(block, out, dy, gradients.data());
          windows.lay_out(block, x, laid_out.data());
          for (std::int64_t g = 0; g < of.groups; ++g) {
            multiply(of.out, of.places, positions,
                     {gradients.data() + g * of.out * positions, positions, 1},
                     {laid_out.data() + g * of.places * positions, 1, positions},
                     sums.data() + part * size + g * of.weights(), true);
          }
        }
      }
    }
  }
  std::fill_n(dw, size, 0.0);
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t i = 0; i < size; ++i) {
      dw[i] += sums[static_cast<std::size_t>(part * size + i)];
    }
  }
}

void sums_of_channels(const Shape& images, const double* values, double* sums) {
#pragma omp parallel for schedule(static) if (elements(images) > 100000)
  for (std::int64_t channel = 0; channel < images[1]; ++channel) {
    sums[channel] = sum_of_channel(images, channel, [&](std::int64_t i) { return values[i]; });
  }
}

/// The shape of y.
Shape result(const Fit& fit, PoolKind kind, Id x, const Window& window) {
  if (kind == PoolKind::global_average) {
    fit.require(window == Window{}, "the mean of all places has no window");
    const Shape& shape = fit.at(x).shape;
    return without_places(Places::is_sequence(shape) ? shape : image(fit, x));
  }
  const Shape& images = image(fit, x);
  fit.require(window.dilation == 1, "the window of a pool has no dilation");
  return result_of(fit, window, images, images[1]);
}

void check_where(const Fit& fit, Id where, const Shape& shape, const Window& window) {
  constexpr std::int64_t most = 255;  // which fit a byte
  fit.require(window.size.down <= most && window.size.across <= most / window.size.down,
              "the window has more than 255 places");
  fit.expect(where, shape, Type::u8);
}

/// Images and the window that slides over them. That of a global average is all places.
struct Pooled {
  Pooled(PoolKind kind, const Shape& shape, const Window& of) : images(shape), window(of) {
    if (kind == PoolKind::global_average) {
      const Places places(shape);
      images = {1, places.outer, places.count, places.inner};
      window.size = {places.count, 1};
    }
  }

  Shape images;
  Window window;
};

/// Each element of the result meets each of its window once.
double flops_of(const Workload& workload, PoolKind kind, Id x, Id y, const Window& window) {
  const Pooled of(kind, workload[x].shape, window);
  return count(workload, y) * static_cast<double>(of.window.size.product());
}

/// The rows, or the columns, of a window at one position.
struct Extent {
  std::int64_t start;       ///< may be in the padding
  std::int64_t first, end;  ///< in the image
  std::int64_t covered;     ///< in the image or the padding
};

Extent extent_of(const Slide& slide, std::int64_t position, std::int64_t size) {
  const std::int64_t start = position * slide.stride - slide.padding;
  const std::int64_t end = start + slide.size;
  return {.start = start,
          .first = std::max<std::int64_t>(start, 0),
          .end = std::min(end, size),
          .covered = std::min(end, size + slide.padding) - start};
}

/// An element of the images that a window holds.
struct Held {
  std::int64_t element, result;  ///< what its window becomes
  std::int64_t place;            ///< in the window, row by row
  std::int64_t count;            ///< of the window's places, in the image or the padding
};

/// body(Held) for each element of each window, in order.
template <class Body>
void for_each_held(const Pooled& of, const Body& body) {
  const Shape& images = of.images;
  const std::int64_t planes = images[0] * images[1];
  const std::int64_t down = positions(of.window.down(), images[2]);
  const std::int64_t across = positions(of.window.across(), images[3]);
#pragma omp parallel for schedule(static) if (planes * down * across > 10000)
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t position = 0; position < down * across; ++position) {
      const Extent rows = extent_of(of.window.down(), position / across, images[2]);
      const Extent columns = extent_of(of.window.across(), position % across, images[3]);
      for (std::int64_t row = rows.first; row < rows.end; ++row) {
        for (std::int64_t column = columns.first; column < columns.end; ++column) {
          body(Held{.element = (plane * images[2] + row) * images[3] + column,
                    .result = plane * down * across + position,
                    .place = (row - rows.start) * of.window.size.across + column - columns.start,
                    .count = rows.covered * columns.covered});
        }
      }
      alive();
    }
  }
}

}  // namespace

bool has_winograd(const Tensor& x, const Tensor& w, const Window& window) {
  return x.type == Type::f32 && window.size == 3 && window.stride == 1 && window.dilation == 1 &&
         groups_of(x, w) == 1;
}

std::int64_t groups_of(const Tensor& x, const Tensor& w) { return x.shape[1] / w.shape[1]; }

void Convolution::check(const Fit& fit) const {
  const Type type = fit.number(x);
  fit.expect(y, result(fit, x, w, window), type);
  fit.expect(w, fit.at(w).shape, type);
  fit.expect_if_any(bias, {fit.at(w).shape[0]}, type);
}

Cost Convolution::cost(const Workload& workload) const {
  Cost sum = cost_of_pass(workload, x, w, y, window);
  sum += {.flops = (bias != none ? count(workload, y) : 0) + flops(activation) * count(workload, y),
          .launches = activation != Activation::identity ? 1 : 0};
  return sum;
}

std::vector<OpProduct> Convolution::products(const Workload& workload) const {
  if (groups_of(workload[x], workload[w]) != 1) {
    return {};  // many products, too narrow for a library of them
  }
  const AsProduct size = as_product(workload, w, y);
  return {{{.m = size.pixels,
            .n = size.out,
            .k = size.in,
            .transpose_b = true,
            .type = workload[x].type},
           "forward"}};
}

void Convolution::execute(ReferenceRun& run) const {
  const Windows windows(run.shape(x), window);
  const std::int64_t out = run.shape(w)[0];
  const Part part = part_of(run.shape(x)[1] / run.shape(w)[1], out, windows);
  const double* images = run.at(x);
  const double* weights = run.at(w);
  double* results = run.at(y);
  const std::int64_t groups = std::ssize(windows.groups());
#pragma omp parallel if (groups > 1)
  {
    std::vector<double> laid_out = matrix(windows, windows.places());
    std::vector<double> product = matrix(windows, out);
#pragma omp for schedule(dynamic)
    for (std::int64_t group = 0; group < groups; ++group) {
      for (const WindowBlock& block : windows.groups()[static_cast<std::size_t>(group)]) {
        const std::int64_t positions = windows.positions(block);
        windows.lay_out(block, images, laid_out.data());
        for (std::int64_t g = 0; g < part.groups; ++g) {
          multiply(part.out, positions, part.places, {weights + g * part.weights(), part.places, 1},
                   {laid_out.data() + g * part.places * positions, positions, 1},
                   product.data() + g * part.out * positions, false);
        }
        for (std::int64_t channel = 0; channel < out; ++channel) {
          const double added = bias != none ? run.at(bias)[channel] : 0;
          double* const values = product.data() + channel * positions;
          for (std::int64_t i = 0; i < positions; ++i) {
            values[i] = activate(activation, values[i] + added);
          }
        }
        windows.put(block, out, product.data(), results);
      }
    }
  }
}

void ConvolutionGrad::check(const Fit& fit) const {
  fit.require(dx != none || dw != none, "it has nothing to write");
  fit.require(x != none || (dw == none && dbias == none), "the gradient of weights needs x");
  fit.require(dw != none || dbias == none, "the gradient of a bias goes with that of weights");
  fit.require(dx != none || bias == none, "a bias is added to dx, which is missing");
  const Type type = fit.number(dy);
  fit.expect(dy, result(fit, image(), w, window), type);
  fit.expect(w, fit.at(w).shape, type);
  fit.expect(image(), fit.at(image()).shape, type);
  if (dw != none) {
    fit.expect(dw, fit.at(w).shape, fit.number_or_f32(dw, type));
  }
  fit.expect_if_any(dbias, {fit.at(w).shape[0]});
  fit.expect_if_any(dx, fit.at(image()).shape, type);
  if (bias != none) {
    fit.expect(bias, {fit.at(dx).shape[1]}, type);
  }
}

Cost ConvolutionGrad::cost(const Workload& workload) const {
  Cost sum;
  if (dw != none) {
    sum += cost_of_pass(workload, x, w, dy, window);
  }
  if (dbias != none) {
    sum += {.flops = count(workload, dy), .launches = 1};
  }
  if (dx != none) {
    sum += cost_of_pass(workload, dx, w, dy, window);
  }
  if (bias != none) {
    sum += {.flops = count(workload, dx)};
  }
  return sum;
}

std::vector<OpProduct> ConvolutionGrad::products(const Workload& workload) const {
  if (groups_of(workload[image()], workload[w]) != 1) {
    return {};
  }
  const AsProduct size = as_product(workload, w, dy);
  const Type type = workload[dy].type;
  std::vector<OpProduct> all;
  if (dx != none) {
    all.push_back({{.m = size.pixels, .n = size.in, .k = size.out, .type = type}, "dx"});
  }
  if (dw != none) {
    all.push_back(
        {{.m = size.out, .n = size.in, .k = size.pixels, .transpose_a = true, .type = type}, "dw"});
  }
  return all;
}

void ConvolutionGrad::execute(ReferenceRun& run) const {
  const Shape& images = run.shape(image());
  const Windows windows(images, window);
  const std::int64_t out = run.shape(w)[0];
  const Part part = part_of(images[1] / run.shape(w)[1], out, windows);
  const double* gradients = run.at(dy);
  if (dx != none) {
    double* const to = run.at(dx);
    for (std::int64_t channel = 0; channel < images[1]; ++channel) {
      const double added = bias != none ? run.at(bias)[channel] : 0;
      for_each_part(images, channel, [&](std::int64_t first, std::int64_t end) {
        std::fill(to + first, to + end, added);
      });
    }
    gradient_of_images(windows, part, run.at(w), gradients, to);
  }
  if (dw != none) {
    gradient_of_weights(windows, part, run.at(x), gradients, run.at(dw));
  }
  if (dbias != none) {
    sums_of_channels(run.shape(dy), gradients, run.at(dbias));
  }
}

void ChannelBiasGrad::check(const Fit& fit) const {
  static_cast<void>(fit.number(dy));
  fit.expect(dbias, {image(fit, dy)[1]});
}

Cost ChannelBiasGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dy), .launches = 1};
}

void ChannelBiasGrad::execute(ReferenceRun& run) const {
  sums_of_channels(run.shape(dy), run.at(dy), run.at(dbias));
}

const char* Pool::name() const {
  return kind == PoolKind::max              ? "MaxPool"
         : kind == PoolKind::global_average ? "GlobalAveragePool"
                                            : "AveragePool";
}

void Pool::check(const Fit& fit) const {
  const Shape shape = result(fit, kind, x, window);
  fit.expect(y, shape, fit.number(x));
  if (kind == PoolKind::max) {
    check_where(fit, where, shape, window);
  }
}

Cost Pool::cost(const Workload& workload) const {
  return {.flops = flops_of(workload, kind, x, y, window), .launches = 1};
}

void Pool::execute(ReferenceRun& run) const {
  const Pooled of(kind, run.shape(x), window);
  const double* from = run.at(x);
  double* to = run.at(y);
  std::fill_n(to, run.size(y), 0.0);
  if (kind == PoolKind::max) {
    double* place = run.at(where);
    std::fill_n(place, run.size(where), -1.0);
    for_each_held(of, [=](const Held& held) {
      const double value = from[held.element];
      if (place[held.result] < 0 || value > to[held.result]) {
        place[held.result] = static_cast<double>(held.place);
        to[held.result] = value;
      }
    });
    return;
  }
  for_each_held(of, [=, sums = kind == PoolKind::sum](const Held& held) {
    to[held.result] += from[held.element] / (sums ? 1 : static_cast<double>(held.count));
  });
}

const char* PoolGrad::name() const {
  return kind == PoolKind::max              ? "MaxPoolGrad"
         : kind == PoolKind::global_average ? "GlobalAveragePoolGrad"
                                            : "AveragePoolGrad";
}

void PoolGrad::check(const Fit& fit) const {
  const bool is_max = kind == PoolKind::max;
  const Type type = fit.number(dx);
  const Shape shape = result(fit, kind, dx, window);
  fit.expect(dy, shape, type);
  if (is_max) {
    check_where(fit, where, shape, window);
  }
  fit.require(kind != PoolKind::global_average || x_activation == Activation::identity,
              "takes no activation");
  fit.require(x_activation == Activation::identity || made != none,
              std::string("the derivative of an activation is taken from ") + (is_max ? "y" : "x") +
                  ", which is missing");
  fit.expect_derivative_from_result(x_activation);
  fit.expect_if_any(made, is_max ? shape : fit.at(dx).shape, type);
}

Cost PoolGrad::cost(const Workload& workload) const {
  const int launches = x_activation != Activation::identity ? 2 : 1;
  if (kind == PoolKind::max) {
    return {.flops = count(workload, dy) * (1 + derivative_flops(x_activation)),
            .launches = launches};
  }
  const bool only_copies = kind == PoolKind::sum && window.size.down <= window.stride.down &&
                           window.size.across <= window.stride.across;
  return {.flops = (only_copies ? 0 : flops_of(workload, kind, dx, dy, window)) +
                   derivative_flops(x_activation) * count(workload, dx),
          .launches = launches};
}

void PoolGrad::execute(ReferenceRun& run) const {
  const Pooled of(kind, run.shape(dx), window);
  const double* from = run.at(dy);
  double* to = run.at(dx);
  const auto times_factor = [this, results = made != none ? run.at(made) : nullptr](
                                double gradient, std::int64_t i) {
    return results != nullptr ? times_derivative_from_result(x_activation, gradient, results[i])
                              : gradient;
  };
  std::fill_n(to, run.size(dx), 0.0);
  if (kind == PoolKind::max) {
    for_each_held(of, [=, place = run.at(where)](const Held& held) {
      if (place[held.result] == static_cast<double>(held.place)) {
        to[held.element] += times_factor(from[held.result], held.result);
      }
    });
    return;
  }
  for_each_held(of, [=, sums = kind == PoolKind::sum](const Held& held) {
    to[held.element] += from[held.result] / (sums ? 1 : static_cast<double>(held.count));
  });
  for_each_index(run.size(dx), [=](std::int64_t i) { to[i] = times_factor(to[i], i); });
}

}  // namespace crossover
