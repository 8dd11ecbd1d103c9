// SPDX-License-Identifier: Apache-2.0
// The worker that measures bench's own rows: it makes and verifies a row, and takes its repetitions
// one at a time. Each is one call of Google Benchmark, which holds the clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/times.h"
#include "rows/row.h"
#include "rows/watches.h"
#include "worker/protocol.h"

namespace crossover::bench {

class RowServer {
 public:
  /// What a row is made with.
  struct Source {
    const Device* device = nullptr;
    std::string network;  ///< fingerprint of the one it is of; empty: of none
    /// As make_row().
    std::function<std::unique_ptr<PreparedBenchmark>(Result& result)> make;
  };
  /// `find`: of the row; std::logic_error where it can't be made here.
  using Find = std::function<Source(const std::string& name, const RowSpec& spec)>;

  /// Told what a request is at before it begins with it: "measuring".
  using Tell = std::function<void(const std::string& doing)>;

  /// `energy`: null where none is asked for.
  explicit RowServer(
      Find find, Tell tell = [](const std::string& /*doing*/) {},
      std::unique_ptr<EnergyWatch> energy = nullptr)
      : find_(std::move(find)), tell_(std::move(tell)), energy_(std::move(energy)) {}

  /// Of the requests `prepare`, `repeat` and `release`. Its answers also say where the time went.
  Json answer(const Json& request);

 private:
  struct Held {
    std::unique_ptr<PreparedBenchmark> prepared;
    const Device* device = nullptr;
    bool is_of_ranks = false;
    bool is_new = true;  ///< has had no turn since it was made
    CpuWatch cpu;
    GpuWatch gpu;
    Result result;
    std::int64_t iterations = 0;   ///< of each repetition, settled by the first one
    double iteration_seconds = 0;  ///< of the last one that was whole
  };

  Json prepare(const Json& request);
  Json repeat(const Json& request);
  /// In an exception's handler: how the row ended.
  Json refused(const std::string& name);

  Find find_;
  Tell tell_;
  std::unique_ptr<EnergyWatch> energy_;
  Spent spent_;
  std::map<std::string, Held> held_;  ///< what rows came to stays when they are released
};

}  // namespace crossover::bench
