// SPDX-License-Identifier: Apache-2.0
#include "rows/require_memory.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <sstream>

#include "crossover/backend.h"
#include "crossover/memory.h"

namespace crossover::bench {
namespace {

/// "2048 bytes", "3.25 MiB", "512 MiB".
std::string amount(double bytes) {
  constexpr double mebibyte_bytes = 1024.0 * 1024;
  std::ostringstream text;
  if (bytes < mebibyte_bytes) {
    text.precision(0);
    text << std::fixed << bytes << " bytes";
  } else {
    text.precision(bytes < 10 * mebibyte_bytes ? 2 : 0);
    text << std::fixed << bytes / mebibyte_bytes << " MiB";
  }
  return text.str();
}

}  // namespace

void require_memory(const Arguments& arguments, double bytes, const std::string& purpose) {
  const auto available =
      static_cast<double>(arguments.memory_limit_bytes.value_or(available_memory_bytes()));
  if (bytes > available) {
    throw OutOfMemory("not enough memory: " + amount(bytes) + " needed " + purpose + ", " +
                      amount(available) + " available");
  }
}

/// What the kernel keeps of it for itself differs a little from start to start: a power of two does
/// not.
std::int64_t planned_memory_bytes(const Arguments& arguments) {
  const auto total = static_cast<std::uint64_t>(std::max<std::int64_t>(1, total_memory_bytes()));
  return arguments.planned_memory_bytes.value_or(static_cast<std::int64_t>(std::bit_floor(total)));
}

}  // namespace crossover::bench
