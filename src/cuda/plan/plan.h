// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend does for a Workload, decided on the host without any call of CUDA: memory,
// products with their epilogues, kernels and their order. run/program.cpp only carries it out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "crossover/backend.h"
#include "crossover/step.h"
#include "forms.h"
#include "launches/launch.h"
#include "launches/persistent_plan.h"
#include "run_mode.h"

namespace crossover::cuda {

struct TensorPlace {
  std::int64_t offset = -1;       ///< in the device block; -1: view, unused, or on the host
  std::int64_t host_offset = -1;  ///< in the host block; -1: not there
  Layout layout = Layout::plain;
};

/// Rows of the data set that a step reads, as they come into a staging buffer.
struct StagedInput {
  Id source = none;
  std::int64_t row_bytes = 0;     ///< of the source
  std::int64_t source_bytes = 0;  ///< of all its rows
  std::int64_t bytes = 0;         ///< of the batch
  std::int64_t staged = 0;        ///< place in the first staging buffer
  std::int64_t unit = 1;          ///< bytes that a gather moves at once, in each of the step's runs
};

/// Two parts of a step's launches, [first, second) and [second, end), neither of which reads or
/// overwrites what the other writes: they may run at once.
struct SideBySide {
  std::size_t first = 0, second = 0, end = 0;
};

struct StepPlan {
  std::vector<Launch> launches;
  std::vector<SideBySide> side_by_side;  ///< one after another; none where there is one stream
  std::vector<StagedInput> inputs;       ///< none where no run of it is staged
};

/// Of a parameter in 16 bits: what products read. Written when the parameter is uploaded, and
/// together with it by its optimizer.
struct ParameterCopy {
  Id parameter = none;
  Id copy = none;            ///< the activation that Casts would make
  std::int64_t offset = -1;  ///< in the device block
};

struct LaunchPlan {
  RunMode mode;
  std::vector<TensorPlace> tensors;
  std::vector<ParameterCopy> copies;
  std::int64_t host_bytes = 0;    ///< of the whole host block
  std::int64_t buffer_bytes = 0;  ///< between staging buffers
  std::int64_t row_losses = 0;    ///< place of f32 [rows of the largest loss]
  std::int64_t factors = 0;       ///< place of the optimizer's factors
  std::int64_t run = 0;           ///< place of the i64 counter of runs
  std::int64_t runs = 0;          ///< of the order: behind the last one the counter is 0 again
  std::int64_t order = 0;         ///< place of OrderedRun [runs], for kernels that read it
  std::int64_t workspace = 0;     ///< place of the libraries', one behind another for each stream
  std::int64_t workspace_bytes = 0;
  Networks networks;            ///< of what lies in front of the workspace each has one
  std::int64_t bytes = 0;       ///< of the whole device block
  Id loss = none;               ///< the tensor that loss_every_step reads
  std::vector<StepPlan> steps;  ///< without launches where one kernel runs all of them:
  std::optional<PersistentPlan> persistent;
  std::vector<OrderLoop> loops;  ///< of the order's graph; none: it holds each run by itself

  /// Whether anything in it runs side by side.
  [[nodiscard]] bool forks() const {
    return std::any_of(steps.begin(), steps.end(),
                       [](const StepPlan& step) { return !step.side_by_side.empty(); });
  }
  /// See Plan::joins().
  [[nodiscard]] bool joins() const {
    return persistent && persistent->is_on_chip() && mode.activations != Activations::kept;
  }
  const TensorPlace& operator[](Id id) const { return tensors[static_cast<std::size_t>(id)]; }
};

/// All of one kind, step after step.
template <class L>
std::vector<L> launches_of(const LaunchPlan& plan) {
  std::vector<L> all;
  for (const StepPlan& step : plan.steps) {
    for (const Launch& launch : step.launches) {
      if (const auto* found = std::get_if<L>(&launch)) {
        all.push_back(*found);
      }
    }
  }
  return all;
}

/// Whether the library has an algorithm for a product.
using Supports = std::function<bool(const ProductForm&)>;
/// The same for a convolution. Throws Unsupported where there is no library for any.
using SupportsConvolution = std::function<bool(const ConvolutionForm&)>;
inline bool any_convolution(const ConvolutionForm& /*form*/) { return true; }
/// The same for attention, which kernels of ours compute where there is none.
using SupportsSdpa = std::function<bool(const SdpaForm&)>;
inline bool any_sdpa(const SdpaForm& /*form*/) { return true; }

constexpr std::int64_t workspace_for_products = std::int64_t{32} << 20;
/// Enough for the plans that cuDNN likes best, of which in f32 many have a copy of both images in
/// another layout; and a small part of a small GPU's memory.
constexpr std::int64_t most_workspace_for_cudnn = std::int64_t{256} << 20;
constexpr std::int64_t workspace_for_cudnn(std::int64_t memory_bytes) {
  constexpr std::int64_t part = 32;
  return std::min(most_workspace_for_cudnn, memory_bytes / part);
}
/// Attention's gradient repeats to the bit only with a number in 16 bits for each score. The other
/// one sums that of queries in f32: cuDNN takes twice as much, and two numbers for each query.
constexpr std::int64_t workspace_for_sdpa(const SdpaForm& form, std::int64_t memory_bytes) {
  constexpr std::int64_t part = 8;
  const std::int64_t least = workspace_for_cudnn(memory_bytes);
  const std::int64_t queries = form.batch * form.heads * form.time;
  const std::int64_t wanted = !form.gradient ? 0
                              : form.repeats ? least + 2 * queries * form.time
                                             : 8 * queries * (form.d + 1);
  return std::max(least, std::min(wanted, memory_bytes / part));
}
constexpr std::int64_t factors_bytes = 256;

/// The Workload must have been check()ed. A product or a convolution that the library refuses with
/// an epilogue is planned without it, and own kernels do the rest. Throws Unsupported where it
/// refuses the plain one, and as plan_persistent() does, to which the device is `chip`. `loops`:
/// whether driver and runtime have them in graphs. `memory_bytes`: of the GPU. Of several copies
/// (CompileOptions::copies) it is the plan of all, LaunchPlan::networks, where each of the launches
/// takes_networks and the library has the products so; else of one.
LaunchPlan make_plan(const Workload& workload, const CompileOptions& options,
                     const Supports& supports,
                     const SupportsConvolution& convolutions = any_convolution,
                     const OnChip& chip = {}, bool loops = true,
                     std::int64_t memory_bytes = std::int64_t{80} << 30,
                     const SupportsSdpa& sdpas = any_sdpa);

/// The same for the first network alone, which works in the same memory.
LaunchPlan of_one_network(LaunchPlan plan);

/// Of a plan with one kernel: the first runs of `all` that it trains at once, all of them where the
/// data set lies on the device.
OrderPart first_part(const Workload& workload, const LaunchPlan& plan, const OrderPart& all);

/// Calls copy(source, place in the first staging buffer, the first of its bytes, their number) for
/// what brings the rows of runs from the first to the last, which lie together in the data set. For
/// one kernel by as few copies as can be: all of a small data set lies together, but for padding.
template <class Copy>
void for_each_copy(const LaunchPlan& plan, const Run& first, const Run& last, const Copy& copy) {
  const std::vector<StagedInput>& inputs = plan.steps[static_cast<std::size_t>(first.step)].inputs;
  const std::vector<StagedInput>& at_end = plan.steps[static_cast<std::size_t>(last.step)].inputs;
  const auto place = [&](const StagedInput& input) {
    const TensorPlace& source = plan[input.source];
    return std::max(source.offset, source.host_offset) + first.first_row * input.row_bytes;
  };
  for (std::size_t i = 0; i < inputs.size();) {
    const StagedInput& begin = inputs[i];
    std::int64_t bytes = 0;
    bool goes_on = false;
    do {
      const std::int64_t before = inputs[i].staged - begin.staged;
      bytes = before + (last.first_row - first.first_row) * inputs[i].row_bytes + at_end[i].bytes;
      ++i;
      goes_on = plan.persistent && i < inputs.size() &&
                place(inputs[i]) - place(begin) == MemoryPlan::aligned(bytes) &&
                inputs[i].staged - begin.staged == MemoryPlan::aligned(bytes);
    } while (goes_on);
    copy(begin.source, begin.staged, first.first_row * begin.row_bytes, bytes);
  }
}

/// What the device starts one by one in a pass over the whole order: see ProgramFacts.
std::int64_t count_launches(const Workload& workload, const LaunchPlan& plan);

/// Nodes of the graph of the whole order, or of the graphs that it repeats.
std::int64_t count_graph_nodes(const Workload& workload, const LaunchPlan& plan);

/// See ProgramFacts: each Reshape between layouts.
Reorders count_reorders(const Workload& workload, const LaunchPlan& plan);

// ---- The forms that a Workload's graphs may have, and which of them is the fastest.

/// The one of which the others are parts: two streams, and loops where there are any.
constexpr GraphForm largest_form{.loops = true, .streams = 2};

/// Of graphs whose largest_form is planned like this, the plainest first.
std::vector<GraphForm> graph_forms(const Workload& workload, const LaunchPlan& largest);

/// The last that beats the fastest before it, as the first does by running; a single one is not
/// tried. One that throws Unsupported or OutOfMemory does not; where all do, it is the first.
GraphForm fastest_of(const std::vector<GraphForm>& forms,
                     const std::function<bool(const GraphForm&)>& beats);

}  // namespace crossover::cuda
