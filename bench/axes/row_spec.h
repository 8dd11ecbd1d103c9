// SPDX-License-Identifier: Apache-2.0
// All that a row can be: a member for each axis. The table in axes.cpp has its key, the names of
// its values, its flag and what else is to be known of it. Texts (flags, names of rows, JSON)
// become members there, and members texts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "crossover/activation.h"
#include "crossover/backend.h"
#include "crossover/probe.h"
#include "crossover/tensor.h"

namespace crossover::bench {

enum class RowFamily {
  peak,
  copy,
  collective,
  gemm,
  layer,
  epoch,
  minibatch,
  forward,
  command,
  function,
};

enum class CollectiveOp { allreduce };

/// Of a product's first factor, and of its second: as it is (n), or transposed (t).
enum class Transposes { nn, nt, tn, tt };

enum class LayerPass { forward, backward };
enum class LayerForm { separate, fused };
enum class OperandCache { warm, cold };
enum class CopyMode { sync, async };

/// A row lacks an optional member where it has no such axis, or has not decided it yet. Any other
/// member has the value that names leave unsaid.
struct RowSpec {
  // ---- What is computed
  std::optional<RowFamily> family;
  std::optional<std::string> quantity;  ///< a ceiling
  std::optional<Direction> direction;
  std::optional<CollectiveOp> op;
  std::optional<std::int64_t> bytes;
  std::optional<std::string> model;
  std::optional<std::int64_t> m, n, k;
  std::optional<Transposes> transpose;
  std::optional<std::int64_t> width;
  std::optional<std::int64_t> batch;
  std::optional<Activation> activation;
  std::optional<LayerPass> pass;
  std::optional<LayerForm> form;
  std::optional<Precision> precision;
  std::optional<std::int64_t> size;
  std::optional<OperandCache> cache;
  std::int64_t accumulate = 1;
  std::int64_t copies = 1;
  bool shuffle = false;
  bool loss_every_step = false;

  // ---- How, and where
  std::string program = "bench";
  std::optional<std::int64_t> step_count;
  /// A name in the table of backends (crossover/backends.h), where device_of() looks it up. A text,
  /// not a place in that table: rows of files and of other programs are read here, too, which may
  /// know devices that this build does not.
  std::optional<std::string> device;
  std::optional<Execution> execution;
  std::optional<HostMemory> memory;
  std::optional<CopyMode> mode;
  std::optional<Placement> placement;
  ProductChoice products = ProductChoice::heuristic;
  ConvolutionChoice convolutions = ConvolutionChoice::heuristic;
  bool zero_gradients = false;
  int loader = 0;
  int ranks = 1;
  std::int64_t bucket_bytes = 25 << 20;  ///< as TrainingOptions has it
  std::optional<int> threads;            ///< of the CPU

  std::map<std::string, std::string> others;  ///< by key, of axes that other programs bring

  friend bool operator==(const RowSpec&, const RowSpec&) = default;
};

}  // namespace crossover::bench
