// SPDX-License-Identifier: Apache-2.0
// That one run alone writes a result file, from before it reads what there is to its end.
#pragma once

#include <filesystem>

namespace crossover::bench {

/// On the file that has that name now. It goes with the process, however that ends, and no other
/// file is needed. Whoever puts another file in its place locks that one, too, before.
class WriteLock {
 public:
  /// UsageError where another run has it. Where there is no such file, it can't be opened, or the
  /// file system has no locks, nothing is locked.
  explicit WriteLock(const std::filesystem::path& path);
  WriteLock(WriteLock&& other) noexcept;
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;
  WriteLock& operator=(WriteLock&&) = delete;
  ~WriteLock();

 private:
  int file_ = -1;
};

/// UsageError that says so.
[[noreturn]] void refuse_file_of_another_run(const std::filesystem::path& path);

}  // namespace crossover::bench
