// SPDX-License-Identifier: Apache-2.0
// A matrix product measured by itself: over one set of operands, which stays in the caches that
// can hold it, or over many in turn, each of which is evicted before it is used again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "crossover/backend.h"
#include "crossover/step.h"

namespace crossover {

/// Products in a pass over the whole order.
std::int64_t product_count(const Workload& workload);

/// Step s is the product of operand set s; the order takes the steps in turn, `products` in all.
/// All sets lie apart: a, b are Role::data, c is Role::state. Throws std::overflow_error as
/// elements() does, std::invalid_argument where sets or products are below one.
Workload product_workload(const ProductSize& size, std::int64_t sets, std::int64_t products);

/// How many sets of `set_bytes` are four times the size of a cache of `cache_bytes`, so that no
/// line survives a turn; at least two.
std::int64_t cold_sets(std::int64_t set_bytes, std::int64_t cache_bytes);

/// Errors of one rounding, relative: of a factor before it is multiplied, of a sum or product, of
/// the result as it is stored.
struct Rounding {
  double factor = 0, sum = 0, result = 0;
};

/// How much hardware may round in a product of that precision. All sums are float32.
Rounding rounding_of(Precision precision, const Arithmetic& arithmetic = {});

struct ProductVerification {
  std::int64_t entries = 0;     ///< compared
  std::int64_t entries_of = 0;  ///< of the result
  double tolerance = 0;         ///< of |difference| / sum |x||y|, for each entry
  double error = 0;             ///< largest
};

/// Compares c, as a device computed it from a and b, with the product in float64. All entries where
/// that takes up to `multiplications`; of larger products the corners, up to 128
/// entries each of the last row and the last column, and 256 from anywhere, the same each time.
/// The tolerance for an entry, a sum of k products x y, is what rounding can do:
///   |difference| <= (k u / (1 - k u) + 2 f + f^2 + r) sum |x||y|
/// with u, f, r the rounding of sums, factors and the result, in whatever order it is summed:
/// N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. 2002, section 3.1. Throws
/// Mismatch (verify.h) that names the entry over its tolerance or not finite, std::invalid_argument
/// where the spans do not have the size's extents.
ProductVerification verify_product(const ProductSize& size, std::span<const double> a,
                                   std::span<const double> b, std::span<const double> c,
                                   const Rounding& rounding, double multiplications = 1e7);

}  // namespace crossover
