// SPDX-License-Identifier: Apache-2.0
// What a kernel is made for that trains one network (kernels/tailored.cuh), as constants of its
// code, and where it keeps what it works with. Host and device take it from here, NVRTC too: no
// container and no text.
#pragma once

#include <cstdint>

#include "crossover/activation.h"
#include "crossover/host_device.h"
#include "crossover/scalar_maths.h"

namespace crossover::cuda {

/// By which it updates: a rule of crossover/operations/update.h.
enum class KernelRule : std::uint8_t { sgd, momentum, adamw };

/// Floats from one row to the next of a matrix in shared memory: whole vectors of four, an odd
/// number of them. So eight threads that read vectors at the same place of neighbouring rows, which
/// is what shared memory serves at once, meet all of its 32 banks.
CROSSOVER_HOST_DEVICE constexpr int leading_dimension(std::int64_t columns) {
  return static_cast<int>(((columns + 3) / 4 | 1) * 4);
}

namespace tailored {

constexpr int most_layers = 12;
constexpr int most_steps = 2;  ///< sizes of a batch
constexpr int warp = 32;
constexpr int tile = 4;  ///< of weights and of their gradients: so many rows and columns

CROSSOVER_HOST_DEVICE constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

struct Shape {  // NOLINTBEGIN(*-avoid-c-arrays): device code has no std::array
  int layers = 0;
  int width[most_layers + 1] = {};          ///< inputs, then each layer's outputs
  Activation activation[most_layers] = {};  ///< each layer's; the last one has none
  LossFunction loss = LossFunction::cross_entropy;
  KernelRule rule = KernelRule::sgd;
  int batch = 0;      ///< the largest: rows of it that a block has
  int blocks = 1;     ///< of a cluster, which share the rows out: a power of two
  int lanes = 1;      ///< of a sample: a power of two, at most a warp
  int workers = 0;    ///< threads that have samples: whole warps
  int threads = 0;    ///< of the block: at least a warp more, of which the last has other work
  bool keep = false;  ///< writes what KeptLayer says

  constexpr bool operator==(const Shape&) const = default;
  [[nodiscard]] CROSSOVER_HOST_DEVICE constexpr int states() const {
    return static_cast<int>(rule);
  }
  [[nodiscard]] CROSSOVER_HOST_DEVICE constexpr int classes() const { return width[layers]; }
  /// Numbers of a row: its label, or a target for each output.
  [[nodiscard]] CROSSOVER_HOST_DEVICE constexpr int wanted() const {
    return loss == LossFunction::cross_entropy ? 1 : classes();
  }
  /// Tiles of a layer's weights, of which the bias is one more column.
  [[nodiscard]] CROSSOVER_HOST_DEVICE constexpr int column_tiles(int layer) const {
    return ceil_div(width[layer] + 1, tile);
  }
  [[nodiscard]] CROSSOVER_HOST_DEVICE constexpr int tiles(int layer) const {
    return ceil_div(width[layer + 1], tile) * column_tiles(layer);
  }
  [[nodiscard]] CROSSOVER_HOST_DEVICE constexpr int all_tiles() const {
    int sum = 0;
    for (int l = 0; l < layers; ++l) {
      sum += tiles(l);
    }
    return sum;
  }
};

/// Places in shared memory, in floats from its start, in each block of a cluster the same. A
/// layer's weights [outputs, inputs + 1] have its bias as their last column, and its inputs [batch,
/// inputs + 1] a column of ones there; what rows are filled up with is zero. The optimizer's states
/// lie as the weights do, one and two times `parameters` after them.
struct Layout {
  int w[most_layers] = {};
  int x[most_layers] = {};   ///< a layer's inputs; the first layer's twice, `inputs` apart
  int dy[most_layers] = {};  ///< gradients of the sums before its activation [batch, outputs]
  int parameters = 0;
  int gradients = 0;  ///< of a cluster: sums over the block's rows, as the weights lie
  int inputs = 0;
  int wanted = 0, wanted_next = 0;          ///< labels i32 or targets, of two batches
  int row_losses = 0, row_losses_next = 0;  ///< of two batches
  int factors = 0;                          ///< AdamW's two that depend on time
  int tiles = 0;                            ///< a Tile for each
  int tile_lanes = 1;                       ///< that share a tile's sums: a power of two
  int floats = 0;                           ///< of all
};                                          // NOLINTEND(*-avoid-c-arrays)

constexpr int floats_of_tile = 12;
constexpr int most_parameters = 12000;

// ---- How many threads do what. Estimates, which decide nothing but speed: instructions counted
// from the loops of kernels/tailored.cuh, of which a multiprocessor starts one of four warps each
// cycle, and a warp one in about two and a half.

CROSSOVER_HOST_DEVICE constexpr int cycles_of(int warps, int instructions) {
  const int issued = ceil_div(warps, 4) * instructions;
  const int waited = instructions * 5 / 2;
  return issued > waited ? issued : waited;
}

/// Of the gradients of weights, with so many lanes to a tile.
CROSSOVER_HOST_DEVICE constexpr int cycles_of_tiles(const Shape& of, int lanes) {
  const int all = of.all_tiles() * lanes;
  const int update = of.rule == KernelRule::adamw ? 60 : 4 + 2 * of.states();
  const int held = lanes < tile * tile ? tile * tile / lanes : 1;
  const int passed = tile * tile - held + (lanes > tile * tile ? 1 : 0);
  const int each = 20 + 18 * ceil_div(of.batch, lanes) + 4 * passed + update * held;
  return cycles_of(ceil_div(all < of.threads ? all : of.threads, warp),
                   ceil_div(all, of.threads) * each);
}

/// The fastest.
CROSSOVER_HOST_DEVICE constexpr int choose_tile_lanes(const Shape& of) {
  int best = 1;
  for (int lanes = 2; lanes <= warp; lanes *= 2) {
    if (cycles_of_tiles(of, lanes) < cycles_of_tiles(of, best)) {
      best = lanes;
    }
  }
  return best;
}

/// Of the samples, forward and back, with so many lanes to each.
constexpr int cycles_of_samples(const Shape& of, int lanes) {
  constexpr int barrier = 50;
  int instructions = 150 + 10 * of.classes();
  for (int l = 0; l < of.layers; ++l) {
    const int in = of.width[l];
    const int results = ceil_div(of.width[l + 1], lanes);
    instructions += results * (in + 8) + ceil_div(in + 1, tile) * (1 + results);
    if (l > 0) {
      const int columns = ceil_div(in, lanes);
      instructions += columns * (of.width[l + 1] + 8) + of.width[l + 1] * ceil_div(columns, tile);
    }
  }
  return cycles_of(ceil_div(of.batch * lanes, warp), instructions) +
         (lanes > 1 ? 2 * of.layers * barrier : 0);
}

/// The fastest.
constexpr void choose_threads(Shape& of) {
  constexpr int most = 512;  // each may have 128 registers
  of.lanes = 1;
  for (int lanes = 2; lanes <= warp && of.batch * lanes <= most - warp; lanes *= 2) {
    if (cycles_of_samples(of, lanes) < cycles_of_samples(of, of.lanes)) {
      of.lanes = lanes;
    }
  }
  const int warps = ceil_div(of.batch * of.lanes, warp);
  of.workers = warps < most / warp ? warps * warp : most - warp;
  Shape best = of;
  for (of.threads = of.workers + warp; of.threads <= most; of.threads += warp) {
    if (best.threads == 0 || cycles_of_tiles(of, choose_tile_lanes(of)) <
                                 cycles_of_tiles(best, choose_tile_lanes(best))) {
      best = of;
    }
  }
  of = best;
}

CROSSOVER_HOST_DEVICE constexpr Layout layout_of(const Shape& of) {
  Layout at;
  const auto take = [&at](int floats) {
    const int place = at.floats;
    at.floats += ceil_div(floats, 4) * 4;
    return place;
  };
  for (int l = 0; l < of.layers; ++l) {
    at.w[l] = take(ceil_div(of.width[l + 1], tile) * tile * leading_dimension(of.width[l] + 1));
  }
  at.parameters = at.floats;
  at.floats += of.states() * at.parameters;
  at.gradients = of.blocks > 1 ? take(at.parameters) : 0;
  for (int l = 0; l < of.layers; ++l) {
    const int floats = of.batch * leading_dimension(of.width[l] + 1);
    at.x[l] = take((l == 0 ? 2 : 1) * floats);
    at.inputs = l == 0 ? floats : at.inputs;
    at.dy[l] = take(of.batch * leading_dimension(of.width[l + 1]));
  }
  at.wanted_next = of.batch * of.wanted();
  at.wanted = take(2 * at.wanted_next);
  at.row_losses_next = of.batch;
  at.row_losses = take(2 * at.row_losses_next);
  at.factors = take(2);
  at.tiles = take(floats_of_tile * of.all_tiles());
  at.tile_lanes = choose_tile_lanes(of);
  return at;
}

/// What a cluster's blocks do together: two barriers, and each sums, updates and hands on the
/// parameters that are its own, at sixteen bytes a cycle of another's memory.
CROSSOVER_HOST_DEVICE constexpr int cycles_of_exchange(const Shape& of) {
  if (of.blocks == 1) {
    return 0;
  }
  constexpr int barrier = 400;
  constexpr int bytes_a_cycle = 16;
  const int parameters = layout_of(of).parameters;
  const int update = of.rule == KernelRule::adamw ? 60 : 4 + 2 * of.states();
  const int vectors = ceil_div(parameters, tile * of.blocks);
  const int bytes = 2 * vectors * (of.blocks - 1) * static_cast<int>(tile * sizeof(float));
  return 2 * barrier + bytes / bytes_a_cycle +
         cycles_of(ceil_div(vectors < of.threads ? vectors : of.threads, warp),
                   ceil_div(vectors, of.threads) * (tile * update + 8 * of.blocks));
}

/// Of a step.
constexpr int cycles_of_step(const Shape& of) {
  return cycles_of_samples(of, of.lanes) + cycles_of_tiles(of, choose_tile_lanes(of)) +
         cycles_of_exchange(of);
}

/// One block, or the cluster of at most so many that is likely the fastest and surely saves
/// something, of those that fit; one block where none does. `of` has all rows of a batch; turns(2)
/// says how often clusters of two have to start until all copies are trained.
template <class Turns>
constexpr Shape fastest(const Shape& of, int most_blocks, std::int64_t shared_bytes,
                        const Turns& turns) {
  Shape best;
  std::int64_t least = 0;
  for (int blocks = 1; blocks <= most_blocks && blocks <= of.batch; blocks *= 2) {
    Shape shape = of;
    shape.blocks = blocks;
    shape.batch = ceil_div(of.batch, blocks);
    choose_threads(shape);
    const std::int64_t cycles = turns(blocks) * cycles_of_step(shape);
    const bool fits =
        layout_of(shape).floats * static_cast<std::int64_t>(sizeof(float)) <= shared_bytes;
    if (best.threads == 0 || (fits && (least == 0 || cycles < least - least / 10))) {
      best = shape;
      least = fits ? cycles : 0;
    }
  }
  return best;
}

}  // namespace tailored
}  // namespace crossover::cuda
