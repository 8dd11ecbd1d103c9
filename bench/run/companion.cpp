// SPDX-License-Identifier: Apache-2.0
#include "run/companion.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace crossover::bench {
namespace {

[[noreturn]] void lost() {
  throw std::runtime_error(
      "--take-turns: the program at the other end of the pipes has ended; the result file has the "
      "rows that were finished");
}

}  // namespace

Companion::Companion(CompanionPipes pipes) : pipes_(pipes) { std::signal(SIGPIPE, SIG_IGN); }

void Companion::repeated(const std::string& row, double min_time_seconds) const {
  tell(nlohmann::json{{"repeated", row}, {"min_time_seconds", min_time_seconds}}.dump());
}

void Companion::finished(const std::string& row) const {
  tell(nlohmann::json{{"finished", row}}.dump());
}

/// The answer is a line, whatever is in it.
void Companion::tell(const std::string& line) const {
  const std::string text = line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(pipes_.to, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) {
      lost();
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  for (char got = 0; got != '\n';) {
    const ssize_t count = read(pipes_.from, &got, 1);
    if (count == 0 || (count < 0 && errno != EINTR)) {
      lost();
    }
  }
}

}  // namespace crossover::bench
