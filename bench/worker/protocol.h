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
#include <utility>

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
  /// `aside`: what is to be read meanwhile, by `take`, whenever there is something. Below 0:
  /// nothing.
  explicit LineReader(
      int from, int aside = -1, std::function<void()> take = [] {})
      : from_(from), aside_(aside), take_(std::move(take)) {}

  /// Without its end; none where no further line comes. Throws TooLong, and Late where none has
  /// come within `limit_seconds` in which this process could run: a laptop may sleep, and Ctrl-Z
  /// stops who waits together with whom it waits for.
  std::optional<std::string> next(double limit_seconds = unlimited);

  /// Seconds of all waits in which this process could not run.
  [[nodiscard]] double paused_seconds() const { return paused_seconds_; }

  struct Late : std::runtime_error {
    Late() : std::runtime_error("no line came in time") {}
  };

  static constexpr std::size_t longest = std::size_t{16} << 20;  ///< bytes; parsed, eight times it
  struct TooLong : std::runtime_error {
    TooLong() : std::runtime_error("a line has no end") {}
  };

 private:
  /// Until there is something to read, an end too; false where no seconds are left.
  bool wait(double& left);

  int from_;
  int aside_;
  std::function<void()> take_;
  double paused_seconds_ = 0;
  std::string read_;  ///< beyond the last line
};

using Json = nlohmann::ordered_json;

bool write_json(int to, const Json& json);

/// Answers each request until no more come. What `answer` throws ends it.
void serve(const Pipes& pipes, const std::function<Json(const Json& request)>& answer);

/// Of an answer. What a result file has of it lies four levels deeper there, where 32 are read.
constexpr int deepest_answer = 24;

/// What is wrong with an answer to that request: "'times' is missing". Empty: nothing, so whoever
/// reads it may rely on what docs/protocol.md promises, and a result file with it is not refused.
std::string fault_of(const Json& request, const Json& answer);

/// Says before an answer what the worker is at now: "measuring". Whoever waits for the answer has
/// patience anew, and knows what a worker was at that says no more.
void tell(const Pipes& pipes, const std::string& doing);

}  // namespace crossover::bench
