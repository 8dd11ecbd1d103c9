// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <array>

#include "../base/layout.h"
#include "../base/loops.h"
#include "../base/threads.h"
#include "../base/vector.h"
#include "operations.h"

namespace crossover::cpu {

// ---- Layer normalization, by as many rows as a vector has lanes: they stay in a cache between
// their sums and what these give, and what is computed of sums is computed of all at once. The
// gradients of scale and shift are summed by strips of rows, then in double.

namespace {

/// Rows whose sums for scale and shift are kept in registers, in float32.
constexpr std::int64_t rows_of_strip = 32;

struct RowSizes {
  explicit RowSizes(const Shape& shape) : rows(leading(shape)), width(shape.back()) {}

  std::int64_t rows, width;
};

// ---- forward

template <class T>
struct NormForward {
  const T* x;
  const float *scale, *shift;  ///< null: 1, and 0; mean: null where rows keep their mean
  T* y;
  float *mean, *inverse_deviation;
  float epsilon;
};

template <class T, class RowOf>
void normalize_rows(const NormForward<T>& op, const RowOf& row_of, std::int64_t width) {
  const auto of_row = static_cast<float>(width);
  Floats mean{};
  if (op.mean != nullptr) {
    const auto terms_of = [&](std::int64_t r) {
      return [x = op.x + row_of(r) * width](auto part, std::int64_t i) {
        return std::array{load(part, x + i)};
      };
    };
    mean = sums_of_rows<1>(width, terms_of)[0] / of_row;
  }
  const auto squares_of = [&](std::int64_t r) {
    return [x = op.x + row_of(r) * width, mean = mean[r]](auto part, std::int64_t i) {
      const Floats apart = load(part, x + i) - mean;
      return std::array{apart * apart};
    };
  };
  const Floats variance = sums_of_rows<1>(width, squares_of)[0] / of_row;
  const Floats inverses = 1.0F / square_root(variance + op.epsilon);
  for (std::int64_t r = 0; r < lanes; ++r) {
    const std::int64_t row = row_of(r);
    const float inverse = inverses[r];
    if (op.mean != nullptr) {
      op.mean[row] = mean[r];
    }
    op.inverse_deviation[row] = inverse;
    const auto normalize = [x = op.x + row * width, y = op.y + row * width, mean = mean[r], inverse,
                            scale = op.scale, shift = op.shift](auto part, std::int64_t i) {
      const Floats normal = (load(part, x + i) - mean) * inverse;
      store(part,
            normal * (scale ? load(part, scale + i) : all(1)) +
                (shift ? load(part, shift + i) : Floats{}),
            y + i);
    };
    for_each_vector(width, normalize);
  }
}

// ---- backward

template <class T>
struct NormBackward {
  const T* x;
  const float *scale, *mean, *inverse_deviation;
  const T* dy;
  T* dx;                   ///< or null
  float *dscale, *dshift;  ///< or null

  /// Mean is null where rows keep theirs, scale where it is 1.
  [[nodiscard]] float mean_of(std::int64_t row) const { return mean == nullptr ? 0 : mean[row]; }
};

/// One row, of which the sums are not known yet.
template <class T>
struct RowOfBackward {
  RowOfBackward(const NormBackward<T>& op, std::int64_t row, std::int64_t width)
      : x(op.x + row * width),
        dy(op.dy + row * width),
        scale(op.scale),
        mean(op.mean_of(row)),
        inverse(op.inverse_deviation[row]) {}

  template <class Part>
  [[nodiscard]] Floats normal(Part part, std::int64_t i) const {
    return (load(part, x + i) - mean) * inverse;
  }
  template <class Part>
  [[nodiscard]] Floats dz(Part part, std::int64_t i) const {
    return load(part, dy + i) * (scale ? load(part, scale + i) : all(1));
  }

  const T *x, *dy;
  const float* scale;
  float mean, inverse;
};

template <class T, class RowOf>
void differentiate_rows(const NormBackward<T>& op, const RowOf& row_of, std::int64_t width) {
  const auto terms_of = [&](std::int64_t r) {
    return [row = RowOfBackward(op, row_of(r), width)](auto part, std::int64_t i) {
      const Floats term = row.dz(part, i);
      return std::array{term, term * row.normal(part, i)};
    };
  };
  const auto products_of = [&](std::int64_t r) {
    return
        [terms = terms_of(r)](auto part, std::int64_t i) { return std::array{terms(part, i)[1]}; };
  };
  Floats sum{};
  Floats products{};
  if (op.mean == nullptr) {
    products = sums_of_rows<1>(width, products_of)[0];
  } else {
    const auto of_rows = sums_of_rows<2>(width, terms_of);
    sum = of_rows[0] / static_cast<float>(width);
    products = of_rows[1];
  }
  products /= static_cast<float>(width);
  for (std::int64_t r = 0; r < lanes; ++r) {
    const auto differentiate = [row = RowOfBackward(op, row_of(r), width), sum = sum[r],
                                products = products[r],
                                dx = op.dx + row_of(r) * width](auto part, std::int64_t i) {
      const Floats of_sums = sum + row.normal(part, i) * products;
      store(part, row.inverse * (row.dz(part, i) - of_sums), dx + i);
    };
    for_each_vector(width, differentiate);
  }
}

/// `sums` [2, width]: of the products with what is normalized, and of dy.
template <class T>
void add_strip(const NormBackward<T>& op, std::int64_t begin, std::int64_t rows, std::int64_t width,
               double* sums) {
  for_each_vector(width, [&](auto part, std::int64_t i) {
    const auto [products, plain] = sum_of_rows<2>(rows, [&](std::int64_t r) {
      const std::int64_t row = begin + r;
      const std::int64_t at = row * width + i;
      const Floats dy = load(part, op.dy + at);
      const Floats normal = (load(part, op.x + at) - op.mean_of(row)) * op.inverse_deviation[row];
      return std::array{dy * normal, dy};
    });
    for (std::size_t k = 0; k < part.size(); ++k) {
      sums[i + static_cast<std::int64_t>(k)] += static_cast<double>(products[k]);
      sums[width + i + static_cast<std::int64_t>(k)] += static_cast<double>(plain[k]);
    }
  });
}

/// `sums` [threads, 2, width] is scratch memory.
template <class T>
void layer_norm_grad(int threads, const RowSizes& of, const NormBackward<T>& op, double* sums) {
  const std::int64_t sums_of_thread = 2 * of.width;
  std::fill_n(sums, threads * sums_of_thread, 0.0);
  split(
      threads, (of.rows + rows_of_strip - 1) / rows_of_strip,
      [&](std::int64_t first, std::int64_t last) {
        double* own = sums + (threads > 1 ? omp_get_thread_num() : 0) * sums_of_thread;
        for (std::int64_t part = first; part < last; ++part) {
          const std::int64_t begin = part * rows_of_strip;
          const std::int64_t end = std::min(of.rows, begin + rows_of_strip);
          if (op.dscale != nullptr) {
            add_strip(op, begin, end - begin, of.width, own);
          }
          if (op.dx != nullptr) {
            for_each_rows(begin, end,
                          [&](auto row_of) { differentiate_rows(op, row_of, of.width); });
          }
        }
      },
      1);
  for (std::int64_t i = 0; i < of.width; ++i) {
    double products = 0;
    double plain = 0;
    for (int thread = 0; thread < threads; ++thread) {
      products += sums[thread * sums_of_thread + i];
      plain += sums[thread * sums_of_thread + of.width + i];
    }
    if (op.dscale != nullptr) {
      op.dscale[i] = static_cast<float>(products);
    }
    if (op.dshift != nullptr) {
      op.dshift[i] = static_cast<float>(plain);
    }
  }
}

}  // namespace

void lower(const Norm& op, Lowering& to) {
  if (op.kind != NormKind::layer) {
    return lower_of_images(op, to);
  }
  with_float(to[op.x].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::normalization, to.threads_for(op.x),
           {reads(op.x), reads(op.scale), reads(op.shift), writes(op.y), writes(op.mean),
            writes(op.inverse_deviation)},
           [of = RowSizes(to[op.x].shape),
            epsilon = static_cast<float>(op.epsilon)](const Invocation& call) {
             const NormForward<T> forward{.x = call.operand<const T>(0),
                                          .scale = call.operand<const float>(1),
                                          .shift = call.operand<const float>(2),
                                          .y = call.operand<T>(3),
                                          .mean = call.operand<float>(4),
                                          .inverse_deviation = call.operand<float>(5),
                                          .epsilon = epsilon};
             split(
                 call.threads, of.rows,
                 [&](std::int64_t begin, std::int64_t end) {
                   for_each_rows(begin, end,
                                 [&](auto row_of) { normalize_rows(forward, row_of, of.width); });
                 },
                 1);
           });
  });
}

void lower(const NormGrad& op, Lowering& to) {
  if (op.kind != NormKind::layer) {
    return lower_of_images(op, to);
  }
  const RowSizes of(to[op.x].shape);
  const int threads = to.threads_for(op.x);
  with_float(to[op.x].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::normalization, threads,
           {reads(op.x), reads(op.scale), reads(op.mean), reads(op.inverse_deviation), reads(op.dy),
            op.dx == none ? Argument{} : writes(op.dx), writes(op.dscale), writes(op.dshift),
            to.reserve(of.width * 2 * threads * static_cast<std::int64_t>(sizeof(double)))},
           [of](const Invocation& call) {
             layer_norm_grad<T>(call.threads, of,
                                {.x = call.operand<const T>(0),
                                 .scale = call.operand<const float>(1),
                                 .mean = call.operand<const float>(2),
                                 .inverse_deviation = call.operand<const float>(3),
                                 .dy = call.operand<const T>(4),
                                 .dx = call.operand<T>(5),
                                 .dscale = call.operand<float>(6),
                                 .dshift = call.operand<float>(7)},
                                call.operand<double>(8));
           });
  });
}

}  // namespace crossover::cpu
