// SPDX-License-Identifier: Apache-2.0
// The sweeps: all that they decide about what is measured, and how long, where no flag says
// otherwise. Whoever registers rows asks for a field, not for a sweep's name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "axes/axes.h"
#include "base/times.h"

namespace crossover::bench {

/// Of the numbers of CPU threads.
enum class ThreadCounts {
  powers,  ///< 1, 2, 4 ... and all cores
  ends,    ///< 1 and all cores
  most,    ///< all cores
};

/// Which products also have a row whose operands are in no cache.
enum class ColdProducts {
  one,    ///< the square of 512
  usual,  ///< squares that fit vectors and tiles
  every,
};

struct Sweep {
  std::string name;
  std::vector<Precision> precisions{Precision::f32};
  Effort effort;  ///< of rows that have none of their own
  ThreadCounts threads = ThreadCounts::powers;
  /// Over the same rows, each by new processes: as many instances of a row, at most. More than the
  /// most repetitions would find processes to start, and nothing else that varies.
  int most_passes = 15;
  bool refines = false;  ///< --refine=auto looks between its sizes
  bool by_worth =
      false;  ///< rows that are worth most come first, others not at all (families/order.h)

  // Networks
  std::vector<std::string> models;
  bool networks_alone = false;            ///< with the ceilings: no products, layers and copies
  std::vector<std::string> moved_models;  ///< of these, epochs in further batches too
  std::vector<std::int64_t> further_batches{10, 1000};
  std::vector<RowSpec> cpu_modes;  ///< of training, each with the same axes
  std::vector<RowSpec> gpu_modes;  ///< the same, and some of them further ones

  // Single steps of large networks, the family Minibatch
  std::vector<std::string> minibatch_models;
  int minibatch_repetitions = 3;  ///< a step takes seconds
  ThreadCounts minibatch_threads = ThreadCounts::ends;
  bool every_minibatch_placement = false;  ///< a large step hides how its batch is copied

  // Networks in use, the family Forward
  std::vector<std::string> forward_models;  ///< of those above
  std::vector<std::int64_t> forward_batches{1, 32, 1024};
  int forward_repetitions = 5;
  std::vector<RowSpec> forward_gpu_modes{
      {.execution = Execution::eager, .placement = Placement::resident},
      {.execution = Execution::eager, .placement = Placement::pinned},
      {.execution = Execution::graph, .placement = Placement::resident},
      {.execution = Execution::graph, .placement = Placement::pinned}};

  // Single operations, copies and ceilings
  Effort operation_effort;
  bool small_operations_on_threads = true;  ///< also on all cores where one thread does as well
  std::vector<std::int64_t> square_sizes;   ///< of products
  std::vector<std::int64_t> transposed_squares;  ///< of these all transposes
  ColdProducts cold_products = ColdProducts::usual;
  std::vector<std::int64_t> layer_widths;
  std::vector<std::int64_t> sigmoid_widths;  ///< sigmoid differs from ReLU by its own time only
  std::vector<std::int64_t> copy_bytes;

  /// Of rows that train such; 0: as many as others.
  [[nodiscard]] int repetitions_of(Trains trains) const {
    return trains == Trains::steps            ? minibatch_repetitions
           : trains == Trains::forward_passes ? forward_repetitions
                                              : 0;
  }
};

/// With at least as many repetitions of rows that train as an interval of 95 % for the median of
/// pairs takes (docs/method/peers.md).
Sweep for_pairs(Sweep sweep);

/// "quick", "default", "full", "ladder", "gpu".
std::vector<Sweep> sweeps();

}  // namespace crossover::bench
