// SPDX-License-Identifier: Apache-2.0
// What optimizers share: tensors that lie one after another become one pass instead of many.
#pragma once

#include <cstdint>
#include <vector>

#include "../lowering.h"

namespace crossover::cpu {

/// Consecutive tensors of each array that an optimizer treats alike. They lie in parallel: element
/// i of each array belongs to element i of the first. Padding between and within tensors is zero in
/// all arrays; an update must keep it so.
struct UpdateSpan {
  std::vector<Id> first;    ///< of each array: parameters, gradients, then the optimizer's states
  Layout layout;            ///< of all of them
  std::int64_t floats = 0;  ///< of one array, padding included
  double weight_decay = 0;

  [[nodiscard]] int threads(const Lowering& to) const {
    return to.threads_for_bytes(static_cast<double>(floats) * sizeof(float));
  }
};

/// Joins the parameters that lie one after another and have the same weight decay. `weight_decay`
/// may be empty: none.
std::vector<UpdateSpan> update_spans(Lowering& to,
                                     const std::vector<const std::vector<Id>*>& arrays,
                                     const std::vector<double>& weight_decay);

}  // namespace crossover::cpu
