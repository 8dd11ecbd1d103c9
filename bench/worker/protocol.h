// SPDX-License-Identifier: Apache-2.0
// How whatever computes is asked: an object of JSON in a line each way. docs/protocol.md defines
// the requests (describe, prepare, repeat, release) and what answers them.
#pragma once

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

namespace crossover::bench {

/// Seconds, of whatever may take as long as it likes.
constexpr double unlimited = std::numeric_limits<double>::infinity();

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

  /// Without its end; none where no further line comes. Throws Late where none has come within
  /// `limit_seconds`.
  std::optional<std::string> next(double limit_seconds = unlimited);

  struct Late : std::runtime_error {
    Late() : std::runtime_error("no line came in time") {}
  };

 private:
  int from_;
  std::string read_;  ///< beyond the last line
};

using Json = nlohmann::ordered_json;

bool write_json(int to, const Json& json);

/// Answers each request until no more come. What `answer` throws ends it.
void serve(const Pipes& pipes, const std::function<Json(const Json& request)>& answer);

/// Says before an answer what the worker is at now: "measuring". Whoever waits for the answer has
/// patience anew, and knows what a worker was at that says no more.
void tell(const Pipes& pipes, const std::string& doing);

}  // namespace crossover::bench
