// SPDX-License-Identifier: Apache-2.0
// How a batch reaches the step that reads it: it is on the device already, it comes through a
// staging buffer, or through two that a stream of its own fills. One class for each; RunMode says
// which.
#pragma once

#include <memory>

#include "running.h"

namespace crossover::cuda {

class Feeder {
 public:
  Feeder() = default;
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;
  virtual ~Feeder() = default;

  /// Before the first of several runs that follow one another.
  virtual void begin(std::int64_t /*first*/) {}
  /// Puts into the streams what must come before the run's step. Where that step reads.
  virtual Position before(std::int64_t run) = 0;
  /// After the run's step was issued; `another`: the next run follows.
  virtual void after(std::int64_t /*run*/, bool /*another*/) {}
};

std::unique_ptr<Feeder> make_feeder(const Running& running);

}  // namespace crossover::cuda
