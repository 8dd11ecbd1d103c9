// SPDX-License-Identifier: Apache-2.0
// How a team shares out a product: tiles of 1, 2 or 4 times 4 results for a thread, and several
// lanes to a tile where there are fewer tiles than threads. Large tiles read less shared memory for
// each multiply-add (a 4 x 4 tile one float for two of them, a 1 x 4 tile five floats for four);
// many lanes shorten the sums that a thread waits for. Estimates from published latencies (reads of
// shared memory, of another block's in a cluster and of the L2 cache, 29, 180 and 263 cycles: Luo
// et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture, 2024); no GPU has run
// this yet.
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

Work work_of(const Job& job, const OnChipLayer& layer, int rows) {
  switch (job.kind) {
    case Job::Kind::forward:
      return {.rows = rows, .columns = layer.out, .sum = layer.in, .step = 4, .vectors = true};
    case Job::Kind::dx:
      return {.rows = rows, .columns = layer.in, .sum = layer.out, .step = 4, .vectors = true};
    case Job::Kind::dw:
      return {.rows = layer.out, .columns = layer.in, .sum = rows};
    case Job::Kind::dbias:
      return {.rows = 1, .columns = layer.out, .sum = rows};
    default:
      return {};
  }
}

/// Who shares out a product, and what they wait for.
struct Crew {
  int warps = 1, multiprocessors = 1;
  double latency = 30;  ///< of a read
};

/// A cluster's blocks each have products of their own.
Crew crew_of(const Team& team) {
  if (team.kind == TeamKind::grid) {
    return {.warps = team.warps * team.blocks, .multiprocessors = team.blocks, .latency = 250};
  }
  return {.warps = team.warps};
}

/// Of a product as it is split.
struct Time {
  double busy = 0;  ///< cycles that multiply-adds and reads take of a multiprocessor
  int tasks = 0;
  double wait = 0;  ///< cycles from the start of a warp's task to its end
};

Time time_of(const Work& work, int rows, int lanes, const Crew& crew) {
  constexpr double multiply_adds = 128.0 / warp;  // warps' that a multiprocessor starts each cycle
  constexpr double cycles_of_read = 2;            // of vectors by a warp: many lanes read the same
  constexpr double latency_of_shuffle = 30;
  const int tiles = ceil_div(work.rows, rows) * ceil_div(work.columns, tile_columns);
  const int tasks = ceil_div(tiles * lanes, warp);
  const int steps = ceil_div(ceil_div(work.sum, work.step), lanes);
  const double fma = work.vectors ? 16.0 * rows : 4.0 * rows;
  const double reads = work.vectors ? rows + 4 : 2;
  const double shuffles = 4 * rows * std::log2(lanes);
  return {.busy = tasks *
                  (steps * std::max(fma / multiply_adds, reads * cycles_of_read) +
                   shuffles * cycles_of_read) /
                  crew.multiprocessors,
          .tasks = tasks,
          .wait = crew.latency + steps * (crew.latency + fma) +
                  std::log2(lanes) * latency_of_shuffle + shuffles};
}

/// Of all parameters, each by the block that they belong to.
Time time_of_update(const std::vector<OnChipLayer>& layers, const Team& team) {
  // The source above has 2.65 TB/s of the whole GPU for clusters of four: 13 bytes in a cycle of a
  // multiprocessor, where the own memory gives 128.
  constexpr double cycles_of_vector = 16.0 / 13;
  constexpr double latency = 180;
  const OnChipLayer& last = layers.back();
  const int vectors = (last.bias + leading_dimension(last.out)) / tile_columns;
  const int others = team.blocks - 1;
  return {.busy = 2.0 * vectors * others / team.blocks * cycles_of_vector,
          .tasks = ceil_div(ceil_div(vectors, warp), team.blocks),
          .wait = 2 * latency + 2 * others};
}

/// The most of what its multiply-adds, its reads and the waits of one warp take.
double cycles_of(const Time& time, const Crew& crew) {
  return std::max(time.busy, ceil_div(time.tasks, crew.warps) * time.wait);
}

double cycles_of_barrier(const Team& team, bool is_of_all) {
  switch (team.kind) {
    case TeamKind::block:
      return 20 + 2 * team.warps;
    case TeamKind::cluster:
      return is_of_all ? 300 : 20 + 2 * team.warps;
    case TeamKind::grid:
      break;
  }
  return 2000;
}

/// Sets how the job's product is split.
Time choose_split(Job& job, const Work& work, const Crew& crew) {
  Time best;
  for (const int rows : {1, 2, 4}) {
    if (rows > 1 && job.kind == Job::Kind::dbias) {
      break;
    }
    for (int lanes = 1; lanes <= warp; lanes *= 2) {
      const Time time = time_of(work, rows, lanes, crew);
      if (best.tasks == 0 || cycles_of(time, crew) < cycles_of(best, crew)) {
        best = time;
        job.rows = static_cast<std::uint8_t>(rows);
        job.lanes = static_cast<std::uint8_t>(lanes);
      }
    }
  }
  return best;
}

}  // namespace

double split(std::vector<Job>& phase, const std::vector<OnChipLayer>& layers, int batch,
             const Team& team) {
  const Crew crew = crew_of(team);
  double busy = 0;
  double longest = 0;  // wait
  double waits = 0;    // of all tasks
  int tasks = 0;
  for (Job& job : phase) {
    const Work work = work_of(job, layers[job.layer], ceil_div(batch, team.memories()));
    const Time time = job.kind == Job::Kind::update ? time_of_update(layers, team)
                      : work.sum > 0                ? choose_split(job, work, crew)
                                                    : Time{};
    busy += time.busy;
    longest = std::max(longest, time.wait);
    waits += time.tasks * time.wait;
    tasks += time.tasks;
  }
  // Jobs of a phase run side by side: its tasks, of the average length, go to the warps in turns.
  const double turns = tasks == 0 ? 0 : ceil_div(tasks, crew.warps) * waits / tasks;
  return std::max({busy, longest, turns}) +
         cycles_of_barrier(team, phase.back().kind == Job::Kind::exchange);
}

}  // namespace crossover::cuda
