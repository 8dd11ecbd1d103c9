// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "crossover/alive.h"
#include "crossover/product.h"
#include "crossover/random.h"
#include "crossover/verify.h"

namespace crossover {
namespace {

using Entry = std::pair<std::int64_t, std::int64_t>;  // row, column

constexpr std::int64_t entries_of_an_edge = 128;
constexpr std::int64_t entries_from_anywhere = 256;

std::int64_t drawn(std::uint64_t k, std::int64_t below) {
  return static_cast<std::int64_t>(uniform(Stream::inputs, k) * static_cast<double>(below));
}

/// Evenly spread over the extent, the first and the last among them.
std::vector<std::int64_t> spread(std::int64_t extent) {
  const std::int64_t count = std::min(extent, entries_of_an_edge);
  std::vector<std::int64_t> at;
  for (std::int64_t i = 0; i < count; ++i) {
    at.push_back(count == 1 ? 0 : i * (extent - 1) / (count - 1));
  }
  return at;
}

std::set<Entry> sample(std::int64_t m, std::int64_t n) {
  std::set<Entry> entries{{0, 0}, {0, n - 1}, {m - 1, 0}, {m - 1, n - 1}};
  for (const std::int64_t column : spread(n)) {
    entries.emplace(m - 1, column);
  }
  for (const std::int64_t row : spread(m)) {
    entries.emplace(row, n - 1);
  }
  for (std::uint64_t i = 0; i < entries_from_anywhere; ++i) {
    entries.emplace(drawn(2 * i, m), drawn(2 * i + 1, n));
  }
  return entries;
}

class Verifier {
 public:
  Verifier(const ProductSize& size, std::span<const double> a, std::span<const double> b,
           std::span<const double> c, const Rounding& rounding)
      : size_(size), a_(a), b_(b), c_(c) {
    const double sums = static_cast<double>(size.k) * rounding.sum;
    tolerance_ = sums / (1 - sums) + 2 * rounding.factor + rounding.factor * rounding.factor +
                 rounding.result;
  }

  [[nodiscard]] double tolerance() const { return tolerance_; }

  /// Returns the error, relative to the sum of magnitudes.
  [[nodiscard]] double check(std::int64_t row, std::int64_t column) const {
    // a's element (row, p) and b's element (p, column).
    const std::int64_t a_step = size_.transpose_a ? size_.m : 1;
    const std::int64_t b_step = size_.transpose_b ? 1 : size_.n;
    const double* x = a_.data() + (size_.transpose_a ? row : row * size_.k);
    const double* y = b_.data() + (size_.transpose_b ? column * size_.k : column);
    double sum = 0;
    double magnitudes = 0;
    for (std::int64_t p = 0; p < size_.k; ++p) {
      const double product = x[p * a_step] * y[p * b_step];
      sum += product;
      magnitudes += std::abs(product);
    }
    const double got = c_[static_cast<std::size_t>(row * size_.n + column)];
    const double error = std::abs(got - sum);
    const double bound = tolerance_ * magnitudes;
    if (!(error <= bound)) {
      std::ostringstream text;
      text << "entry (" << row << ", " << column << ") of the product is " << got << ", and " << sum
           << " in float64: they differ by " << error << ", and rounding explains " << bound;
      throw magnitudes > 0 ? Mismatch(text.str(), error / magnitudes, tolerance_)
                           : Mismatch(text.str());
    }
    return magnitudes > 0 ? error / magnitudes : 0;
  }

 private:
  const ProductSize size_;
  std::span<const double> a_, b_, c_;
  double tolerance_ = 0;
};

}  // namespace

std::string to_string(Tf32Factors factors) {
  switch (factors) {
    case Tf32Factors::exact:
      return "exact";
    case Tf32Factors::rounded:
      return "rounded";
    case Tf32Factors::truncated:
      return "truncated";
  }
  throw std::logic_error("unknown factors");
}

Rounding rounding_of(Precision precision, const Arithmetic& arithmetic) {
  constexpr double half_ulp_f32 = 0x1p-24;
  // Matrix units need not round sums and results to nearest: whole units in the last place.
  constexpr double ulp_f32 = 0x1p-23;
  // Factors of 16 bits are stored as such: nothing is left to round.
  constexpr double ulp_bf16 = 0x1p-7;
  constexpr double ulp_f16 = 0x1p-10;
  switch (precision) {
    case Precision::f32:
      return {.sum = half_ulp_f32};
    case Precision::tf32:
      return {.factor = unit_roundoff(precision, arithmetic), .sum = ulp_f32};
    case Precision::bf16:
      return {.sum = ulp_f32, .result = ulp_bf16};
    case Precision::f16:
      return {.sum = ulp_f32, .result = ulp_f16};
  }
  throw std::logic_error("unknown precision");
}

ProductVerification verify_product(const ProductSize& size, std::span<const double> a,
                                   std::span<const double> b, std::span<const double> c,
                                   const Rounding& rounding, double multiplications) {
  const auto require = [](std::span<const double> matrix, std::int64_t rows, std::int64_t columns) {
    if (static_cast<std::int64_t>(matrix.size()) != elements({rows, columns})) {
      throw std::invalid_argument("a matrix of " + std::to_string(matrix.size()) +
                                  " elements is not " + to_string(Shape{rows, columns}));
    }
  };
  require(a, size.m, size.k);
  require(b, size.k, size.n);
  require(c, size.m, size.n);
  const Verifier verifier(size, a, b, c, rounding);
  ProductVerification result{.entries_of = size.m * size.n, .tolerance = verifier.tolerance()};
  const auto check = [&](std::int64_t row, std::int64_t column) {
    result.error = std::max(result.error, verifier.check(row, column));
    ++result.entries;
    alive();
  };
  const double all =
      static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
  if (all <= multiplications) {
    for (std::int64_t row = 0; row < size.m; ++row) {
      for (std::int64_t column = 0; column < size.n; ++column) {
        check(row, column);
      }
    }
  } else {
    for (const auto& [row, column] : sample(size.m, size.n)) {
      check(row, column);
    }
  }
  return result;
}

}  // namespace crossover
