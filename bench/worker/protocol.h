// SPDX-License-Identifier: Apache-2.0
// How whatever computes is asked: an object of JSON in a line each way. docs/protocol.md defines
// the requests (describe, prepare, repeat, release) and what answers them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace crossover::bench {

/// The ends of two pipes.
struct Pipes {
  int from = -1;
  int to = -1;
};

/// Writes the text and a line's end; false where nobody reads any more.
bool write_line(int to, const std::string& text);

/// Lines as they come.
class LineReader {
 public:
  explicit LineReader(int from) : from_(from) {}

  /// Without its end; none where no further line comes.
  std::optional<std::string> next();

 private:
  int from_;
  std::string read_;  ///< beyond the last line
};

using Json = nlohmann::ordered_json;

/// Answers each request until no more come. What `answer` throws ends it.
void serve(const Pipes& pipes, const std::function<Json(const Json& request)>& answer);

}  // namespace crossover::bench
