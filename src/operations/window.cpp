// SPDX-License-Identifier: Apache-2.0
#include "crossover/window.h"

namespace crossover {

std::int64_t positions(const Window& window, std::int64_t extent) {
  const std::int64_t room = extent + 2 * window.padding - crossover::extent(window);
  if (room < 0) {
    return 0;
  }
  if (!window.ceil) {
    return room / window.stride + 1;
  }
  const std::int64_t count = (room + window.stride - 1) / window.stride + 1;
  const bool last_begins_outside = (count - 1) * window.stride >= extent + window.padding;
  return last_begins_outside ? count - 1 : count;
}

}  // namespace crossover
