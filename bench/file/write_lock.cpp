// SPDX-License-Identifier: Apache-2.0
#include "file/write_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "axes/flag.h"

namespace crossover::bench {
namespace {

/// Whether the name is still that of the open file, not of one that was put in its place.
bool is_current(int file, const std::filesystem::path& path) {
  struct stat own {};
  struct stat named {};
  return fstat(file, &own) == 0 && stat(path.c_str(), &named) == 0 && own.st_dev == named.st_dev &&
         own.st_ino == named.st_ino;
}

}  // namespace

WriteLock::WriteLock(const std::filesystem::path& path) {
  do {
    close(std::exchange(file_, -1));
    file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close(file_);
      refuse_file_of_another_run(path);
    }
  } while (file_ >= 0 && !is_current(file_, path));
}

WriteLock::WriteLock(WriteLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

WriteLock::~WriteLock() { close(file_); }

void refuse_file_of_another_run(const std::filesystem::path& path) {
  throw UsageError(path.string() +
                   " is being written by another run; wait for its end, or name another file");
}

}  // namespace crossover::bench
