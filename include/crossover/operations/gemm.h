// SPDX-License-Identifier: Apache-2.0
// A matrix product by itself, for measuring.
#pragma once

#include <vector>

#include "crossover/operation.h"

namespace crossover {

/// c = op(a) op(b), where op transposes if its flag is set: op(a) [m, k], op(b) [k, n], c [m, n].
/// c is neither a nor b. a and b are T; c is T or f32.
struct Gemm {
  Id a = none, b = none, c = none;
  bool transpose_a = false, transpose_b = false;

  static constexpr const char* name = "Gemm";
  static constexpr OpCategory category = OpCategory::product;
  template <class See>
  void describe(See& see) const {
    see.reads("a", a);
    see.reads("b", b);
    see.writes("c", c);
    see.value("transpose_a", transpose_a);
    see.value("transpose_b", transpose_b);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  [[nodiscard]] std::vector<OpProduct> products(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
