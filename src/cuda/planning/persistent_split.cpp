// SPDX-License-Identifier: Apache-2.0
// How a team shares out a product: tiles of 1, 2 or 4 times 4 results for a thread, and several
// lanes to a tile where there are fewer tiles than threads. Large tiles read less shared memory for
// each multiply-add (a 4 x 4 tile one float for two of them, a 1 x 4 tile five floats for four);
// many lanes shorten the sums that a thread waits for. Estimates from published latencies; no GPU
// has run this yet.
#include <algorithm>
#include <cmath>

#include "persistent.h"

namespace crossover::cuda {
namespace {

constexpr int warp = 32;
constexpr int tile_columns = 4;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// A product, seen from the tiles of its result.
struct Work {
  int rows = 0, columns = 0;
  int sum = 0;           ///< terms that lanes can share, in pieces of
  int step = 1;          ///< terms
  bool vectors = false;  ///< whether both factors are read in vectors along the sum
};

Work work_of(const Job& job, const OnChipLayer& layer, int batch) {
  switch (job.kind) {
    case Job::Kind::forward:
      return {.rows = batch, .columns = layer.out, .sum = layer.in, .step = 4, .vectors = true};
    case Job::Kind::dx:
      return {.rows = batch, .columns = layer.in, .sum = layer.out, .step = 4, .vectors = true};
    case Job::Kind::dw:
      return {.rows = layer.out, .columns = layer.in, .sum = batch};
    case Job::Kind::dbias:
      return {.rows = 1, .columns = layer.out, .sum = batch};
    default:
      return {};
  }
}

/// Of a product: the most of what its multiply-adds, its reads of shared memory and the
/// waits of one warp take.
double cycles_of(const Work& work, int rows, int lanes, const Team& team) {
  constexpr double multiply_adds = 128.0 / warp;  // warps' that a multiprocessor starts each cycle
  constexpr double cycles_of_read = 2;            // of vectors by a warp: many lanes read the same
  constexpr double latency_of_shuffle = 30;
  const double latency = team.is_on_chip() ? 30 : 250;  // of a read
  const int tiles = ceil_div(work.rows, rows) * ceil_div(work.columns, tile_columns);
  const int tasks = ceil_div(tiles * lanes, warp);
  const int steps = ceil_div(ceil_div(work.sum, work.step), lanes);
  const double fma = work.vectors ? 16.0 * rows : 4.0 * rows;
  const double reads = work.vectors ? rows + 4 : 2;
  const double shuffles = 4 * rows * std::log2(lanes);
  const double busy =
      tasks *
      (steps * std::max(fma / multiply_adds, reads * cycles_of_read) + shuffles * cycles_of_read) /
      team.multiprocessors;
  const double waits =
      ceil_div(tasks, team.warps) *
      (latency + steps * (latency + fma) + std::log2(lanes) * latency_of_shuffle + shuffles);
  return std::max(busy, waits);
}

}  // namespace

double split(std::vector<Job>& phase, const std::vector<OnChipLayer>& layers, int batch,
             const Team& team) {
  double sum = 0;
  for (Job& job : phase) {
    const Work work = work_of(job, layers[job.layer], batch);
    if (work.sum == 0) {
      continue;
    }
    double least = 0;
    for (const int rows : {1, 2, 4}) {
      if (rows > 1 && job.kind == Job::Kind::dbias) {
        break;
      }
      for (int lanes = 1; lanes <= warp; lanes *= 2) {
        const double cycles = cycles_of(work, rows, lanes, team);
        if (least == 0 || cycles < least) {
          least = cycles;
          job.rows = static_cast<std::uint8_t>(rows);
          job.lanes = static_cast<std::uint8_t>(lanes);
        }
      }
    }
    sum += least;
  }
  return sum;
}

}  // namespace crossover::cuda
