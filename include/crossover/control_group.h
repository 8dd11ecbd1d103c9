// SPDX-License-Identifier: Apache-2.0
// What a container, or a slice of systemd's, may use of the machine: Linux control groups, v1 and
// v2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>

namespace crossover {

struct ControlGroup {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  std::int64_t memory_bytes = unlimited;  ///< the limit
  /// Of that what nobody has. Pages of files that were read once count as left: the kernel takes
  /// them back first.
  std::int64_t memory_left_bytes = unlimited;
  std::optional<double> quota;  ///< processors' time per time; none: no limit
};

/// The tightest limits of the group that this process is in, and of all around it. `root`: below
/// which /proc and /sys are, for tests.
ControlGroup control_group(const std::filesystem::path& root = "/");

}  // namespace crossover
