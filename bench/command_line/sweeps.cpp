// SPDX-License-Identifier: Apache-2.0
#include "command_line/sweeps.h"

#include <algorithm>

#include "command_line/choices.h"
#include "crossover/catalogue.h"

namespace crossover::bench {
namespace {

/// From the first on, each `factor` times the last.
std::vector<std::int64_t> series(std::int64_t first, std::int64_t factor, std::int64_t last) {
  std::vector<std::int64_t> all;
  for (std::int64_t value = first; value <= last; value *= factor) {
    all.push_back(value);
  }
  return all;
}

constexpr std::int64_t kibibyte = 1 << 10;
constexpr std::int64_t mebibyte_of_a_copy = 1 << 20;

}  // namespace

Sweep for_pairs(Sweep sweep) {
  constexpr int pairs = 6;
  sweep.effort.repetitions = std::max(sweep.effort.repetitions, pairs);
  sweep.minibatch_repetitions = std::max(sweep.minibatch_repetitions, pairs);
  sweep.forward_repetitions = std::max(sweep.forward_repetitions, pairs);
  return sweep;
}

std::vector<Sweep> sweeps() {
  std::vector<std::string> dense = disc_family().names;
  dense.emplace_back("heart");
  const std::vector<std::string> anchors = anchor_family().names;
  const std::vector<std::string> transformers = gpt_family().names;
  std::vector<std::string> standard = dense;
  standard.insert(standard.end(), {"policy", "surrogate", "lenet-5"});
  standard.insert(standard.end(), anchors.begin(), anchors.end());
  std::vector<std::string> all = standard;
  all.emplace_back("matrix-4");
  all.insert(all.end(), transformers.begin(), transformers.end());
  const std::vector<std::string> middle{"disc-5", "disc-7", "disc-9"};
  // But for the two largest, whose verification and epochs take half a minute, and minutes.
  standard.insert(standard.end(), transformers.begin(), transformers.end() - 2);
  const std::vector<std::string> fcn = fcn_family().names;
  all.insert(all.end(), fcn.begin(), fcn.end());
  // Those of Shi et al. 2016, and two later ones.
  const std::vector<std::string> minibatches{"fcn-r",     "alexnet-r", "resnet-56",
                                             "lstm",      "fcn-s",     "alexnet-s",
                                             "resnet-50", "vit-ti",    "mobilenet-v2"};
  std::vector<std::string> every_network = all;
  every_network.insert(every_network.end(), minibatches.begin(), minibatches.end());
  const std::vector<RowSpec> few = {
      {.execution = Execution::eager, .placement = Placement::resident},
      {.execution = Execution::graph, .placement = Placement::resident},
      {.execution = Execution::persistent, .placement = Placement::resident},
      {.execution = Execution::eager, .placement = Placement::pinned_async}};
  // Of every one, those that come to the same as another are left out: makes_sense(). What anyone
  // would run is chosen where the data lies there, and comes behind all that it is chosen from.
  std::vector<RowSpec> every = every_gpu_mode();
  std::erase_if(every, [](const RowSpec& mode) {
    const bool confirmed_by_a_gpu =  // of what is one kernel
        mode.execution != Execution::tailored &&
        (mode.execution != Execution::persistent || mode.placement == Placement::resident);
    return mode.execution == Execution::automatic || mode.execution == Execution::overlapped ||
           !confirmed_by_a_gpu;
  });
  every.push_back({.execution = Execution::graph,
                   .placement = Placement::resident,
                   .products = ProductChoice::autotuned});
  every.push_back({.execution = Execution::automatic, .placement = Placement::resident});
  // What page-locked memory saves is seen eagerly, and what a graph does to its best use.
  std::vector<RowSpec> most = every;
  std::erase_if(most, [](const RowSpec& mode) {
    return mode.execution == Execution::graph &&
           (mode.placement == Placement::pageable || mode.placement == Placement::pinned);
  });
  // What anyone would run; the full sweep shows what it was chosen from.
  const std::vector<RowSpec> fastest = {{.execution = Execution::automatic}};
  const std::vector<RowSpec> all_of_cpu = {{.execution = Execution::eager},
                                           {.execution = Execution::winograd},
                                           {.execution = Execution::fused},
                                           {.execution = Execution::automatic}};
  // Sizes that fit vectors and tiles, and beside them such that do not.
  const std::vector<std::int64_t> squares{32,  33,  64,   65,   127,  128,
                                          256, 512, 1000, 1023, 1024, 2048};
  std::vector<std::int64_t> all_squares = squares;
  all_squares.insert(all_squares.end(), {4096, 8192});
  const std::vector<std::int64_t> beside_tiles{64, 65, 1023, 1024};
  const std::vector<std::int64_t> widths = series(16, 4, 4096);
  const std::vector<std::int64_t> all_widths = series(16, 2, 4096);
  return {
      {.name = "quick",
       .effort = {.repetitions = 5, .min_time_seconds = 0.02},
       .models = {"disc-2", "disc-4", "disc-6", "disc-8", "disc-9", "disc-10", "heart", "policy",
                  "gpt-64"},
       .cpu_modes = fastest,
       .gpu_modes = few,
       .minibatch_models = {"fcn-r", "alexnet-r"},
       .minibatch_threads = ThreadCounts::most,
       .operation_effort = {.repetitions = 3, .min_time_seconds = 0.01},
       .square_sizes = {32, 33, 127, 128, 512},
       .transposed_squares = {512},
       .layer_widths = {16, 256, 1024},
       .copy_bytes = series(kibibyte, 1024, mebibyte_of_a_copy)},
      {.name = "default",
       .effort = {.repetitions = 9, .min_time_seconds = 0.1},
       .refines = true,
       .models = standard,
       .moved_models = middle,
       .cpu_modes = fastest,
       .gpu_modes = most,
       .minibatch_models = {"alexnet-r", "lstm"},  // an image's, and a text's
       .minibatch_repetitions = 5,                 // the fewest that readers take a verdict from
       .minibatch_threads = ThreadCounts::most,
       .forward_models = {"disc-2", "disc-5", "disc-8", "heart", "policy", "surrogate", "lenet-5"},
       .forward_batches = {1, 1024},
       .operation_effort = {.repetitions = 5, .min_time_seconds = 0.05},
       .square_sizes = squares,
       .transposed_squares = beside_tiles,
       .cold_products = ColdProducts::one,
       .layer_widths = widths,
       .sigmoid_widths = {64, 1024},
       .copy_bytes = series(kibibyte, 4, 256 * mebibyte_of_a_copy)},
      {.name = "full",
       .effort = {.repetitions = 15, .min_time_seconds = 0.3},
       .refines = true,
       .models = all,
       .moved_models = middle,
       .cpu_modes = all_of_cpu,
       .gpu_modes = every,
       .minibatch_models = minibatches,
       .minibatch_repetitions = 7,
       .minibatch_threads = ThreadCounts::powers,
       .every_minibatch_placement = true,
       .forward_models = every_network,
       .forward_gpu_modes = every,
       .operation_effort = {.repetitions = 5, .min_time_seconds = 0.2},
       .square_sizes = all_squares,
       .transposed_squares = all_squares,
       .cold_products = ColdProducts::every,
       .layer_widths = all_widths,
       .sigmoid_widths = all_widths,
       .copy_bytes = series(kibibyte, 4, 1024 * mebibyte_of_a_copy)},
      {.name = "ladder",  // what the answer stands on, and nothing else: each row three times anew
       .effort = {.repetitions = 9, .min_time_seconds = 0.05},
       .most_passes = 3,
       .models = dense,
       .networks_alone = true,
       .cpu_modes = fastest,
       .gpu_modes = {{.execution = Execution::eager, .placement = Placement::resident},
                     {.execution = Execution::graph, .placement = Placement::resident},
                     {.execution = Execution::automatic, .placement = Placement::resident},
                     {.execution = Execution::eager, .placement = Placement::pinned_async},
                     {.execution = Execution::graph, .placement = Placement::pinned_async}}},
      {.name = "gpu",
       .precisions = {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16},
       .effort = {.repetitions = 5, .min_time_seconds = 0.03},
       .most_passes = 1,  // minutes on a lent machine: more rows say more there than more instances
       .by_worth = true,
       .models = dense,
       .cpu_modes = fastest,
       .gpu_modes = most,
       .minibatch_models = {"alexnet-r"},
       .minibatch_repetitions = 5,  // as in the default sweep
       .minibatch_threads = ThreadCounts::powers,
       .operation_effort = {.repetitions = 3, .min_time_seconds = 0.02},
       .small_operations_on_threads = false,
       .square_sizes = squares,
       .transposed_squares = beside_tiles,
       .layer_widths = widths,
       .copy_bytes = series(kibibyte, 16, 64 * mebibyte_of_a_copy)},
  };
}

}  // namespace crossover::bench
