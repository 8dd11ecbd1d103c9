// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/pool.h"

#include <algorithm>

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "crossover/elementwise.h"
#include "fit.h"
#include "images.h"

namespace crossover {
namespace {

Shape result(const Fit& fit, Id x, const Window& window) {
  const Shape& images = image(fit, x);
  fit.require(window.dilation == 1, "the window of a pool has no dilation");
  return result_of(fit, window, images, images[1]);
}

void check_largest(const Fit& fit, Id where, const Shape& shape, const Window& window) {
  constexpr std::int64_t most = 255;  // which fit a byte
  fit.require(window.size.down <= most && window.size.across <= most / window.size.down,
              "the window has more than 255 places");
  fit.expect(where, shape, Type::u8);
}

/// Each element of the result meets each of its window once.
double flops_of(const Workload& workload, Id y, const Window& window) {
  return count(workload, y) * static_cast<double>(window.size.product());
}

/// The rows, or the columns, of a window at one position.
struct Extent {
  std::int64_t start;       ///< may be in the padding
  std::int64_t first, end;  ///< in the image
  std::int64_t covered;     ///< in the image or the padding

  [[nodiscard]] bool holds(std::int64_t at) const { return first <= at && at < end; }
};

Extent extent_of(const Slide& slide, std::int64_t position, std::int64_t size) {
  const std::int64_t start = position * slide.stride - slide.padding;
  const std::int64_t end = start + slide.size;
  return {.start = start,
          .first = std::max<std::int64_t>(start, 0),
          .end = std::min(end, size),
          .covered = std::min(end, size + slide.padding) - start};
}

/// body(channel of an image, its elements' first, that position's element of the result, rows,
/// columns) at each position of the window on images of that shape.
template <class Body>
void for_each_window(const Shape& images, const Window& window, const Body& body) {
  const std::int64_t planes = images[0] * images[1];
  const std::int64_t down = positions(window.down(), images[2]);
  const std::int64_t across = positions(window.across(), images[3]);
#pragma omp parallel for schedule(static) if (planes * down * across > 10000)
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t row = 0; row < down; ++row) {
      const Extent rows = extent_of(window.down(), row, images[2]);
      for (std::int64_t column = 0; column < across; ++column) {
        body(plane * images[2] * images[3], (plane * down + row) * across + column, rows,
             extent_of(window.across(), column, images[3]));
      }
      alive();
    }
  }
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

void MaxPool::execute(ReferenceRun& run) const {
  const double* from = run.at(x);
  double* largest = run.at(y);
  double* place = run.at(where);
  const std::int64_t width = run.shape(x)[3];
  for_each_window(
      run.shape(x), window,
      [&](std::int64_t plane, std::int64_t at, const Extent& rows, const Extent& columns) {
        bool any = false;
        for (std::int64_t row = rows.first; row < rows.end; ++row) {
          for (std::int64_t column = columns.first; column < columns.end; ++column) {
            const double value = from[plane + row * width + column];
            if (!any || value > largest[at]) {
              any = true;
              largest[at] = value;
              place[at] = static_cast<double>((row - rows.start) * window.size.across + column -
                                              columns.start);
            }
          }
        }
      });
}

// ---- MaxPoolGrad

void MaxPoolGrad::check(const Fit& fit) const {
  const Type type = fit.number(dx);
  const Shape shape = result(fit, dx, window);
  fit.expect(dy, shape, type);
  check_largest(fit, where, shape, window);
  fit.require(x_activation == Activation::identity || y != none,
              "the derivative of an activation is taken from y, which is missing");
  fit.expect_derivative_from_result(x_activation);
  if (y != none) {
    fit.expect(y, shape, type);
  }
}

Cost MaxPoolGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dy) * (1 + derivative_flops(x_activation)),
          .launches = x_activation != Activation::identity ? 2 : 1};
}

void MaxPoolGrad::execute(ReferenceRun& run) const {
  const double* result = y != none ? run.at(y) : nullptr;
  const double* place = run.at(where);
  const double* from = run.at(dy);
  double* to = run.at(dx);
  const std::int64_t width = run.shape(dx)[3];
  std::fill_n(to, run.size(dx), 0.0);
  for_each_window(
      run.shape(dx), window,
      [&](std::int64_t plane, std::int64_t at, const Extent& rows, const Extent& columns) {
        const auto in_window = static_cast<std::int64_t>(place[at]);
        const std::int64_t row = rows.start + in_window / window.size.across;
        const std::int64_t column = columns.start + in_window % window.size.across;
        const double factor =
            result != nullptr ? derivative_from_result(x_activation, result[at]) : 1;
        if (rows.holds(row) && columns.holds(column)) {  // whatever `where` says
          to[plane + row * width + column] += from[at] * factor;
        }
      });
}

// ---- AveragePool

namespace {

/// What the sum of a window is divided by.
double divisor_of(bool sums, const Extent& rows, const Extent& columns) {
  return sums ? 1 : static_cast<double>(rows.covered * columns.covered);
}

}  // namespace

void AveragePool::check(const Fit& fit) const {
  fit.expect(y, result(fit, x, window), fit.number(x));
}

Cost AveragePool::cost(const Workload& workload) const {
  return {.flops = flops_of(workload, y, window), .launches = 1};
}

void AveragePool::execute(ReferenceRun& run) const {
  const double* from = run.at(x);
  double* to = run.at(y);
  const std::int64_t width = run.shape(x)[3];
  for_each_window(
      run.shape(x), window,
      [&](std::int64_t plane, std::int64_t at, const Extent& rows, const Extent& columns) {
        double sum = 0;
        for (std::int64_t row = rows.first; row < rows.end; ++row) {
          for (std::int64_t column = columns.first; column < columns.end; ++column) {
            sum += from[plane + row * width + column];
          }
        }
        to[at] = sum / divisor_of(sums, rows, columns);
      });
}

// ---- AveragePoolGrad

void AveragePoolGrad::check(const Fit& fit) const {
  const Type type = fit.number(dx);
  fit.expect(dy, result(fit, dx, window), type);
  fit.require(x_activation == Activation::identity || x != none,
              "the derivative of an activation is taken from x, which is missing");
  fit.expect_derivative_from_result(x_activation);
  if (x != none) {
    fit.expect(x, fit.at(dx).shape, type);
  }
}

Cost AveragePoolGrad::cost(const Workload& workload) const {
  const bool only_copies =
      sums && window.size.down <= window.stride.down && window.size.across <= window.stride.across;
  return {.flops = (only_copies ? 0 : flops_of(workload, dy, window)) +
                   derivative_flops(x_activation) * count(workload, dx),
          .launches = x_activation != Activation::identity ? 2 : 1};
}

void AveragePoolGrad::execute(ReferenceRun& run) const {
  const double* from = run.at(dy);
  double* to = run.at(dx);
  const std::int64_t size = run.size(dx);
  const std::int64_t width = run.shape(dx)[3];
  std::fill_n(to, size, 0.0);
  for_each_window(
      run.shape(dx), window,
      [&](std::int64_t plane, std::int64_t at, const Extent& rows, const Extent& columns) {
        const double share = from[at] / divisor_of(sums, rows, columns);
        for (std::int64_t row = rows.first; row < rows.end; ++row) {
          for (std::int64_t column = columns.first; column < columns.end; ++column) {
            to[plane + row * width + column] += share;
          }
        }
      });
  if (x != none) {
    const double* made = run.at(x);
    for (std::int64_t i = 0; i < size; ++i) {
      to[i] *= derivative_from_result(x_activation, made[i]);
    }
  }
}

}  // namespace crossover
