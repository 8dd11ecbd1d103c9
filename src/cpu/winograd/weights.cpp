// SPDX-License-Identifier: Apache-2.0
#include "weights.h"

#include <array>

#include "kernels.h"

namespace crossover::cpu::winograd {
namespace {

constexpr std::int64_t size = 3;  ///< of a window
constexpr std::int64_t kernel = size * size;
constexpr std::size_t most_lanes = 16;

/// One number for each lane.
using Numbers = std::array<float, most_lanes>;

template <class Work>
void for_each_lane(std::int64_t lanes, const Work& work) {
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes); ++lane) {
    work(lane);
  }
}

/// By G: from three numbers `stride` apart to four.
void transform(const Weights& of, const Numbers* g, std::size_t stride, Numbers* to) {
  for_each_lane(of.lanes, [&](std::size_t lane) {
    const float first = g[0][lane];
    const float middle = g[stride][lane] / 2;
    const float last = g[2 * stride][lane];
    const float mean = (first + last) / 2;
    to[0][lane] = first;
    to[1][lane] = mean + middle;
    to[2][lane] = mean - middle;
    to[3][lane] = last;
  });
}

/// By G^T: from four numbers `stride` apart to three.
void transform_back(const Weights& of, const Numbers* s, std::size_t stride, Numbers* to) {
  for_each_lane(of.lanes, [&](std::size_t lane) {
    const float mean = (s[stride][lane] + s[2 * stride][lane]) / 2;
    to[0][lane] = s[0][lane] + mean;
    to[1][lane] = (s[stride][lane] - s[2 * stride][lane]) / 2;
    to[2][lane] = mean + s[3 * stride][lane];
  });
}

/// Where the products of mirrored kernels are those of another point: first and last change places.
std::int64_t mirrored(std::int64_t point) {
  constexpr std::array<std::int64_t, input_side> swapped{3, 1, 2, 0};
  return swapped.at(static_cast<std::size_t>(point / input_side)) * input_side +
         swapped.at(static_cast<std::size_t>(point % input_side));
}

/// A vector of kernels, of which the first is at `w` and the next ones `stride` kernels behind
/// each other, at all points.
std::array<Numbers, points> transformed(const Weights& of, const float* w, std::int64_t stride) {
  std::array<Numbers, kernel> g{};
  for_each_lane(of.lanes, [&](std::size_t lane) {
    const float* from = w + static_cast<std::int64_t>(lane) * stride * kernel;
    for (std::size_t i = 0; i < kernel; ++i) {
      g[i][lane] = from[i];
    }
  });
  std::array<Numbers, input_side * size> columns{};
  std::array<Numbers, points> result{};
  for (std::size_t row = 0; row < size; ++row) {
    transform(of, &g[row * size], 1, &columns[row * input_side]);
  }
  for (std::size_t column = 0; column < input_side; ++column) {
    std::array<Numbers, input_side> values{};
    transform(of, &columns[column], input_side, values.data());
    for (std::size_t row = 0; row < input_side; ++row) {
      result[row * input_side + column] = values[row];
    }
  }
  return result;
}

void store(const Weights& of, const Numbers& values, float* to) {
  for_each_lane(of.lanes, [&](std::size_t lane) { to[lane] = values[lane]; });
}

}  // namespace

void transform_weights(const Weights& of, const float* w, float* to, std::int64_t begin,
                       std::int64_t end) {
  for (std::int64_t in = begin; in < end; ++in) {
    for (std::int64_t out = 0; out < of.out; out += of.lanes) {
      const auto values = transformed(of, w + (out * of.in + in) * kernel, of.in);
      for (std::int64_t point = 0; point < points; ++point) {
        store(of, values[static_cast<std::size_t>(point)],
              to + (point * of.out + out) * of.in + in * of.lanes);
      }
    }
  }
}

void transform_mirrored_weights(const Weights& of, const float* w, float* to, std::int64_t begin,
                                std::int64_t end) {
  for (std::int64_t out = begin; out < end; ++out) {
    for (std::int64_t in = 0; in < of.in; in += of.lanes) {
      const auto values = transformed(of, w + (out * of.in + in) * kernel, 1);
      for (std::int64_t point = 0; point < points; ++point) {
        store(of, values[static_cast<std::size_t>(mirrored(point))],
              to + (point * of.in + in) * of.out + out * of.lanes);
      }
    }
  }
}

void transform_back(const Weights& of, const float* sums, std::int64_t parts, float* dw,
                    std::int64_t begin, std::int64_t end) {
  const std::int64_t of_point = of.in * of.out;
  for (std::int64_t in = begin; in < end; ++in) {
    const std::int64_t block = in / of.lanes;
    for (std::int64_t out = 0; out < of.out; out += of.lanes) {
      const std::int64_t at = (block * of.out + out) * of.lanes + in % of.lanes * of.lanes;
      std::array<Numbers, points> s{};
      for (std::int64_t part = 0; part < parts; ++part) {
        for (std::int64_t point = 0; point < points; ++point) {
          const float* from = sums + (part * points + point) * of_point + at;
          for_each_lane(of.lanes, [&](std::size_t lane) {
            s[static_cast<std::size_t>(point)][lane] += from[lane];
          });
        }
      }
      std::array<Numbers, size * input_side> rows{};
      for (std::size_t column = 0; column < input_side; ++column) {
        std::array<Numbers, size> values{};
        transform_back(of, &s[column], input_side, values.data());
        for (std::size_t row = 0; row < size; ++row) {
          rows[row * input_side + column] = values[row];
        }
      }
      std::array<Numbers, kernel> g{};
      for (std::size_t row = 0; row < size; ++row) {
        transform_back(of, &rows[row * input_side], 1, &g[row * size]);
      }
      for_each_lane(of.lanes, [&](std::size_t lane) {
        float* to = dw + ((out + static_cast<std::int64_t>(lane)) * of.in + in) * kernel;
        for (std::size_t i = 0; i < kernel; ++i) {
          to[i] = g[i][lane];
        }
      });
    }
  }
}

}  // namespace crossover::cpu::winograd
