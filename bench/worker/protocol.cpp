// SPDX-License-Identifier: Apache-2.0
#include "worker/protocol.h"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace crossover::bench {

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

std::optional<std::string> LineReader::next() {
  for (std::size_t looked = 0;;) {
    if (const std::size_t end = read_.find('\n', looked); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    looked = read_.size();
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
    const Json said = answer(Json::parse(*line));
    if (!write_line(pipes.to, said.dump(-1, ' ', false, Json::error_handler_t::replace))) {
      return;
    }
  }
}

}  // namespace crossover::bench
