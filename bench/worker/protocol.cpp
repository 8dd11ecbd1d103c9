// SPDX-License-Identifier: Apache-2.0
#include "worker/protocol.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace crossover::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Waits until there is something to read, an end too; false at `end`.
bool wait_for(int from, std::optional<Clock::time_point> end) {
  constexpr int longest = 1'000'000;  // milliseconds
  for (;;) {
    int milliseconds = longest;
    if (end) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now()).count();
      if (left <= 0) {
        return false;
      }
      milliseconds = static_cast<int>(std::min<std::int64_t>(left, longest));
    }
    pollfd file{.fd = from, .events = POLLIN, .revents = 0};
    if (poll(&file, 1, milliseconds) > 0) {
      return true;
    }
  }
}

}  // namespace

bool write_line(int to, const std::string& text) {
  const std::string line = text + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t count = write(to, line.data() + done, line.size() - done);
    if (count < 0 && errno != EINTR) {
      return false;
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return true;
}

bool write_json(int to, const Json& json) {
  return write_line(to, json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::optional<std::string> LineReader::next(double limit_seconds) {
  std::optional<Clock::time_point> last;
  if (limit_seconds < unlimited) {
    last = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(limit_seconds));
  }
  for (std::size_t looked = 0;;) {
    if (const std::size_t end = read_.find('\n', looked); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    looked = read_.size();
    if (!wait_for(from_, last)) {
      throw Late();
    }
    std::array<char, 4096> block{};
    const ssize_t count = read(from_, block.data(), block.size());
    if (count == 0 || (count < 0 && errno != EINTR)) {
      return std::nullopt;
    }
    read_.append(block.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  }
}

void serve(const Pipes& pipes, const std::function<Json(const Json& request)>& answer) {
  LineReader requests(pipes.from);
  while (const std::optional<std::string> line = requests.next()) {
    if (!write_json(pipes.to, answer(Json::parse(*line)))) {
      return;
    }
  }
}

void tell(const Pipes& pipes, const std::string& doing) {
  write_json(pipes.to, {{"doing", doing}});
}

}  // namespace crossover::bench
