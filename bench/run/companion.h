// SPDX-License-Identifier: Apache-2.0
// Another program that measures the same work and has its turn after each repetition of ours, so
// that drift hits both alike. docs/method/peers.md gives the protocol.
#pragma once

#include <string>

namespace crossover::bench {

/// The ends of two pipes: where its lines come from and where ours go to.
struct CompanionPipes {
  int from = -1;
  int to = -1;
};

class Companion {
 public:
  /// From now on a write to a program that has ended is an error, not a signal.
  explicit Companion(CompanionPipes pipes);

  /// Its turn after a repetition of that row, of which `min_time_seconds` were asked for: returns
  /// when it is over. Throws std::runtime_error where the program has ended.
  void repeated(const std::string& row, double min_time_seconds) const;

  /// The row is in the file; returns when that is known. Throws as above.
  void finished(const std::string& row) const;

 private:
  void tell(const std::string& line) const;

  CompanionPipes pipes_;
};

}  // namespace crossover::bench
