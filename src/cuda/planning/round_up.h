// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace crossover::cuda {

/// The smallest multiple of `to` that is not less than the value.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace crossover::cuda
