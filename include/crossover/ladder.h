// SPDX-License-Identifier: Apache-2.0
// A series of growing sizes: a scale on which a crossover is found.
#pragma once

#include <cstdint>
#include <string>

namespace crossover {

/// A network of a ladder.
struct LadderSize {
  std::string name;             ///< "disc-8", "disc-8x1.5"
  std::int64_t parameters = 0;  ///< trainable
};

}  // namespace crossover
