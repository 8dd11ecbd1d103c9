// SPDX-License-Identifier: Apache-2.0
// What one kernel does that trains a whole order, as data: where it keeps the network, and who of
// its threads computes what in which order. The planner (plan/persistent.h) decides it,
// kernels/persistent.cu carries it out.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "crossover/dense_training.h"
#include "crossover/host_device.h"
#include "tailored_shape.h"

namespace crossover::cuda {

/// What a kernel can have: as much as any GPU has, unless it is known which one.
struct OnChip {
  std::int64_t shared_bytes = 227 << 10;  ///< of a block, with the kernel's consent
  int threads = 512;                      ///< of a block: the most that leave each 128 registers
  int cluster_blocks = 8;  ///< of the largest cluster: a power of two; 1: it has none
  /// Of 2, 4 and 8 blocks: fewer than there are multiprocessors for, which lie in groups.
  std::array<int, 3> clusters_at_once{64, 32, 16};
  int multiprocessors = 128;            ///< blocks that can wait for each other
  std::int64_t cache_bytes = 50 << 20;  ///< L2, which all of them see

  /// Blocks, or clusters of so many: a multiprocessor takes one block at a time.
  [[nodiscard]] int teams_at_once(int blocks) const {
    const auto place = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(blocks)));
    return std::max(1, blocks > 1 ? clusters_at_once.at(place - 2) : multiprocessors);
  }
};

/// Who trains.
enum class TeamKind : std::uint8_t {
  block,    ///< one, with everything in its shared memory
  cluster,  ///< blocks that reach each other's: each has all parameters, and rows of the batch
  grid,     ///< all multiprocessors, on a workspace that the L2 cache holds
};

/// All of it travels as the kernel's parameters, which hold 4 KB.
constexpr std::size_t most_on_chip_layers = tailored::most_layers;
constexpr std::size_t most_on_chip_steps = tailored::most_steps;
constexpr std::size_t most_jobs = 96;

/// A division as a multiplication, for a GPU takes forty instructions to divide.
struct Divider {
  std::uint32_t factor = std::uint32_t{1} << 31;
  std::uint8_t shift = 31;

  /// Rounded down, of no negative numbers (Granlund & Montgomery 1994, theorem 4.2).
  [[nodiscard]] CROSSOVER_HOST_DEVICE int operator()(int n) const {
    return static_cast<int>((std::uint64_t{static_cast<unsigned>(n)} * factor) >> shift);
  }
};
constexpr Divider divider_by(int divisor) {
  const auto wide = static_cast<std::uint64_t>(divisor);
  const int shift = 31 + static_cast<int>(std::bit_width(wide - 1));
  return {.factor = static_cast<std::uint32_t>(((std::uint64_t{1} << shift) + wide - 1) / wide),
          .shift = static_cast<std::uint8_t>(shift)};
}

/// What the warps of a block do until the next barrier, each job in warp tasks that they take in
/// turn. Of a product, a thread, or `lanes` of them, computes a tile of `rows` times 4 results.
struct Job {
  enum class Kind : std::uint8_t {
    barrier,    ///< of those that share a memory
    exchange,   ///< barrier of all
    load,       ///< the next run's rows and labels come in meanwhile
    factors,    ///< AdamW's at this step's time
    forward,    ///< y = activation(x wT + bias)
    loss,       ///< of each row, and its gradient
    mean_loss,  ///< of the rows
    dx,         ///< times the derivative of x_activation
    dw,         ///< and the weights' update, unless that is a job of its own
    dbias,      ///< and the bias's
    update,     ///< of all parameters, by the sum of what each memory's rows gave
  };
  Kind kind = Kind::barrier;
  std::uint8_t layer = 0;
  std::uint8_t rows : 3 = 1;        ///< of a tile: 1, 2 or 4
  std::uint8_t lanes_log2 : 3 = 0;  ///< two to which power lanes share a sum: at most a warp
  /// By the product's row tiles, or dw's column tiles: so a tile's number tells its place.
  std::uint8_t divider_shift = 0;
  std::uint32_t divider_factor = 0;
};

/// Of a layer, in floats from the start of shared memory, in each block of a cluster the same, or
/// of the workspace. Matrices have leading_dimension() and rows up to a multiple of four; what w
/// and bias have beyond the layer is zero, so that products may run over it. The optimizer's states
/// lie as the parameters do, one and two times `parameters` after them. x, y, dy, dx and slopes
/// are of the rows of the batch that lie there.
struct OnChipLayer {
  int in = 0, out = 0;
  int in_next = 0, out_next = 0;    ///< leading_dimension() of each
  int in_tiles = 0, out_tiles = 0;  ///< vectors that hold so many columns
  Activation activation = Activation::identity, x_activation = Activation::identity;
  int w = 0, bias = 0;
  int x = 0, y = 0, dy = 0, dx = 0;
  int slope = 0, x_slope = 0;  ///< derivatives of the activations that derivative_takes_input()
};

struct OnChipStep {
  int rows = 0;  ///< of the batch, in the memory that has the most
  int jobs = 0;
  Job job[most_jobs] = {};  // NOLINT(*-avoid-c-arrays): device code has no std::array
};

struct OnChipPlaces {
  int parameters = 0;  ///< floats of all, and of each of the optimizer's states
  int states = 0;      ///< that a parameter has, at most two
  KernelRule rule = KernelRule::sgd;
  int gradients = 0;  ///< from a parameter to its gradient; 0: that is not stored
  int inputs = 0;     ///< from one batch's buffer to the other's; the first is the first layer's x
  Divider by_inputs;  ///< by the first layer's `in`
  int wanted = 0;     ///< labels, i32 [rows], or targets [rows, outputs]
  int wanted_next = 0;  ///< from one batch's labels or targets to the other's
  int row_losses = 0;   ///< [rows]
  int factors = 0;      ///< the two of AdamW's factors that depend on time
};

struct PersistentPlan {
  std::vector<DenseStep> dense;  ///< the tensors
  std::vector<OnChipLayer> layers;
  std::vector<OnChipStep> steps;
  OnChipPlaces places;
  std::int64_t bytes = 0;  ///< of all places, in each block's shared memory or the workspace
  std::int64_t most_shared_bytes = 0;  ///< that a block may have
  TeamKind team = TeamKind::block;
  int blocks = 1;                 ///< of a cluster a power of two
  int threads = 0;                ///< of a block
  std::int64_t workspace = 0;     ///< place in the device block; only of a grid
  std::int64_t rows_at_once = 0;  ///< in a staging buffer; 0: they are read where they lie
  /// What the kernel is compiled for, in place of `layers`, `steps` and `places`.
  std::optional<tailored::Shape> tailored;

  [[nodiscard]] bool is_on_chip() const { return team != TeamKind::grid; }
};

}  // namespace crossover::cuda
