// SPDX-License-Identifier: Apache-2.0
#include "step_planner.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "crossover/alive.h"
#include "crossover/executions.h"
#include "crossover/training.h"
#include "operations/operations.h"
#include "persistent.h"
#include "plan.h"
#include "tensor_places.h"

namespace crossover::cuda {

// ---- One step

StepPlanner::StepPlanner(const Workload& workload, int step, const TensorPlaces& places,
                         Offers offers, std::int64_t scratch)
    : workload_(workload),
      step_(step),
      ops_(workload.steps[static_cast<std::size_t>(step)].ops),
      places_(places),
      offers_(std::move(offers)),
      scratch_end_(scratch),
      fusions_(choose_linear_fusions(*this)) {}

StepPlan StepPlanner::plan() {
  for (at_ = 0; at_ < ops_.size(); ++at_) {
    end_sums_before(ops_[at_]);
    // An operation without a rule does not compile.
    std::visit([this](const auto& op) { plan_operation(op, *this); }, ops_[at_]);
    alive();
  }
  collect_inputs();
  return std::move(planned_);
}

/// The first operation that reads one of them waits for all, as it does on the CPU.
void StepPlanner::end_sums_before(const Op& op) {
  const Operands used = operands(op);
  if (const auto* begun = std::get_if<AllReduce>(&op); begun != nullptr && overlaps_sums()) {
    under_way_.insert(begun->tensors.begin(), begun->tensors.end());
  } else if (std::any_of(used.reads.begin(), used.reads.end(),
                         [this](Id id) { return under_way_.contains(id); })) {
    emit(SumsEndLaunch{});
    border_ = planned_.launches.size();
    under_way_.clear();
  }
}

bool StepPlanner::is_last_of_its_kind() const {
  return std::none_of(std::next(ops_.begin(), static_cast<std::ptrdiff_t>(at_) + 1), ops_.end(),
                      [this](const Op& op) { return category(op) == category(ops_[at_]); });
}

ChannelView StepPlanner::by_channel(Id image) const {
  const std::int64_t batch = shape(image)[0];
  const std::int64_t channels = shape(image)[1];
  const std::int64_t pixels = count(image) / (batch * channels);
  return layout(image) == Layout::plain ? ChannelView{batch, channels, pixels}
                                        : ChannelView{batch * pixels, channels, 1};
}

void StepPlanner::emit_side_by_side(const std::function<void()>& first,
                                    const std::function<void()>& second) {
  SideBySide parts{.first = planned_.launches.size()};
  border_ = parts.first;
  first();
  parts.second = border_ = planned_.launches.size();
  second();
  parts.end = border_ = planned_.launches.size();
  if (places_.streams() > 1 && parts.first < parts.second && parts.second < parts.end) {
    planned_.side_by_side.push_back(parts);
  }
}

void StepPlanner::emit_column_sums(const Operand& matrix, const Operand& sums, std::int64_t rows,
                                   std::int64_t columns, bool accumulate) {
  constexpr std::int64_t columns_of_a_block = 32;
  constexpr std::int64_t enough_blocks = 512;
  constexpr std::int64_t least_rows = 256;  // of a part
  constexpr std::int64_t tall = 2048;
  const std::int64_t blocks = (columns + columns_of_a_block - 1) / columns_of_a_block;
  const std::int64_t parts = std::min(enough_blocks / blocks, rows / least_rows);
  if (rows < tall || parts < 2) {
    emit(ColumnSumsLaunch{matrix, sums, rows, columns, accumulate});
    return;
  }
  const Operand partial = scratch(parts * columns * bytes(Type::f32));
  emit(ColumnSumsLaunch{matrix, partial, rows, columns, false, parts});
  emit(ColumnSumsLaunch{partial, sums, parts, columns, accumulate});
}

void StepPlanner::emit_channel_sums(Id images, const Operand& sums) {
  const ChannelView of = by_channel(images);
  if (of.inner == 1) {
    emit_column_sums(operand(images), sums, of.outer, of.channels);
    return;
  }
  const Operand of_images = scratch(of.outer * of.channels * bytes(Type::f32));
  emit(RowSumsLaunch{operand(images), of_images, of.outer * of.channels, of.inner});
  emit_column_sums(of_images, sums, of.outer, of.channels);
}

Operand StepPlanner::scratch(std::int64_t bytes) {
  constexpr std::int64_t scratch_alignment = 256;
  const Operand taken{.offset = scratch_end_, .bytes = bytes};
  scratch_end_ += round_up(bytes, scratch_alignment);
  return taken;
}

void StepPlanner::collect_inputs() {
  if (!places_.has_buffers()) {
    return;
  }
  const std::vector<Id> views =
      views_of(workload_, workload_.steps[static_cast<std::size_t>(step_)]);
  if (places_.gathers() && views.size() > max_gathered) {
    throw Unsupported("one kernel gathers the rows of at most " + std::to_string(max_gathered) +
                      " tensors, not " + std::to_string(views.size()) +
                      ": graphs need the data in another placement");
  }
  std::transform(views.begin(), views.end(), std::back_inserter(planned_.inputs),
                 [this](Id view) { return places_.staged_input(view, step_); });
}

// ---- The whole plan: memory, then step by step. How an operation runs is said in operations/.

namespace {

bool is_loss(const Op& op) { return category(op) == OpCategory::loss; }

bool has_loss(const Step& step) { return std::any_of(step.ops.begin(), step.ops.end(), is_loss); }

/// What the kernels of a loss leave for the one that sums it, at most: a number for each row.
std::int64_t loss_rows(const Workload& workload) {
  std::int64_t rows = 0;
  for (const Step& step : workload.steps) {
    for (const Op& op : step.ops) {
      if (const auto* loss = std::get_if<SoftmaxCrossEntropy>(&op)) {
        rows = std::max(rows, leading(workload[loss->logits].shape));
      } else if (const auto* loss_of_each = std::get_if<ElementwiseLoss>(&op)) {
        rows = std::max(rows, loss_parts(elements(workload[loss_of_each->logits].shape)));
      }
    }
  }
  return rows;
}

std::int64_t workspace_for(const LaunchPlan& plan, std::int64_t memory_bytes) {
  std::int64_t most = std::max(
      launches_of<ProductLaunch>(plan).empty() ? 0 : workspace_for_products,
      launches_of<ConvolutionLaunch>(plan).empty() ? 0 : workspace_for_cudnn(memory_bytes));
  for (const SdpaLaunch& launch : launches_of<SdpaLaunch>(plan)) {
    most = std::max(most, workspace_for_sdpa(launch.form, memory_bytes));
  }
  return most;
}

/// Versions of cuBLASLt differ in the epilogues of gradients where an extent is 1: some refuse k =
/// 1 for ReLU's derivative, those before 12.3.4 bias gradients. Own kernels cost such products
/// little.
bool is_gradient_of_a_line(const ProductForm& form) {
  const bool of_gradient = form.epilogue == Epilogue::drelu ||
                           form.epilogue == Epilogue::drelu_bias_sum ||
                           form.epilogue == Epilogue::b_sum;
  return of_gradient && std::min({form.m, form.n, form.k}) == 1;
}

/// The counter of runs, and the order where kernels look up what it stands for.
void reserve_order(const Workload& workload, LaunchPlan& plan, TensorPlaces& places) {
  plan.runs = std::ssize(workload.order);
  plan.run = places.reserve(static_cast<std::int64_t>(sizeof(std::int64_t)));
  if (plan.persistent || plan.mode.gathers()) {
    plan.order = places.reserve(plan.runs * static_cast<std::int64_t>(sizeof(OrderedRun)));
  }
}

/// The graph of a whole order as loops, where that makes it smaller and where each run's first
/// kernel is one that gathers rows: it also ends the loops.
std::vector<OrderLoop> choose_loops(const Workload& workload) {
  std::vector<OrderLoop> loops = find_loops(workload.order);
  const bool repeats =
      std::any_of(loops.begin(), loops.end(), [](const OrderLoop& loop) { return loop.times > 1; });
  const bool reads_rows =
      std::none_of(workload.steps.begin(), workload.steps.end(),
                   [&](const Step& step) { return views_of(workload, step).empty(); });
  return repeats && reads_rows ? loops : std::vector<OrderLoop>{};
}

/// A kernel that waits for more starts late; one that has less starts often.
constexpr std::int64_t bytes_at_once = 256 << 10;

/// Where one kernel finds the rows of the runs that it trains, if they come from the host.
void reserve_rows_at_once(LaunchPlan& plan, TensorPlaces& places) {
  PersistentPlan& persistent = *plan.persistent;
  std::int64_t rows = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const DenseStep& step = persistent.dense[s];
    for (const Id view : {step.inputs(), step.loss.wanted}) {
      plan.steps[s].inputs.push_back(places.staged_input(view, static_cast<int>(s)));
    }
    rows = std::max(rows, step.batch);  // at least
  }
  const std::vector<StagedInput>& inputs = plan.steps.front().inputs;
  std::int64_t bytes_of_row = 0;
  for (const StagedInput& input : inputs) {
    bytes_of_row += input.row_bytes;
  }
  rows = std::max(rows, std::min(bytes_at_once / bytes_of_row,
                                 inputs.front().source_bytes / inputs.front().row_bytes));
  persistent.rows_at_once = rows;
  std::vector<std::int64_t> staged;
  for (const StagedInput& input : inputs) {
    staged.push_back(plan.buffer_bytes);
    plan.buffer_bytes += MemoryPlan::aligned(rows * input.row_bytes);
  }
  const std::int64_t buffers = places.reserve(plan.mode.buffers * plan.buffer_bytes);
  for (StepPlan& step : plan.steps) {
    for (std::size_t i = 0; i < staged.size(); ++i) {
      step.inputs[i].staged = buffers + staged[i];
    }
  }
}

/// Activations stay with the kernel: they have no place of their own, unless they are kept.
/// So do gradients, whose place is only what a start sets to zero, as of any Program.
LaunchPlan make_persistent_plan(const Workload& workload, const CompileOptions& options,
                                const OnChip& chip) {
  LaunchPlan plan{.mode = choose_run_mode(options)};
  plan.persistent = options.execution == Execution::tailored
                        ? plan_tailored(workload, options, chip)
                        : plan_persistent(workload, options, chip);
  const int buffers = std::exchange(plan.mode.buffers, 0);  // of more rows than a step's
  TensorPlaces places(workload, options.precision, plan);
  plan.mode.buffers = buffers;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (plan.mode.activations != Activations::kept &&
        workload.tensors[i].role == Role::activation) {
      plan.tensors[i].offset = -1;
    }
  }
  reserve_order(workload, plan, places);
  if (!plan.persistent->is_on_chip()) {
    plan.persistent->workspace = places.reserve(plan.persistent->bytes);
  }
  plan.steps.resize(workload.steps.size());
  if (!plan.mode.is_resident()) {
    reserve_rows_at_once(plan, places);
  }
  return plan;
}

/// Of one run: its step, and what brings the rows.
std::int64_t launches_in(const LaunchPlan& plan, const Run& run) {
  const StepPlan& step = plan.steps[static_cast<std::size_t>(run.step)];
  const std::int64_t inputs = plan.mode.in_place ? 0 : std::ssize(step.inputs);
  return std::ssize(step.launches) +
         (plan.mode.gathers() ? std::min<std::int64_t>(1, inputs) : inputs);
}

// ---- Several networks

template <class Visit>
void for_each_launch(LaunchPlan& plan, const Visit& visit) {
  for (StepPlan& step : plan.steps) {
    for (Launch& launch : step.launches) {
      std::visit(visit, launch);
    }
  }
}

void set_networks(LaunchPlan& plan, const Networks& networks) {
  plan.networks = networks;
  for_each_launch(plan, [&](auto& launch) {
    if constexpr (std::is_same_v<decltype(launch), ProductLaunch&>) {
      launch.form.networks = networks;
    }
  });
}

/// Whether several networks may be what the plan is of one. Rows that come from the host would be
/// copied to each of them.
bool may_take_networks(LaunchPlan& plan) {
  bool may = plan.mode.is_resident() && !plan.mode.loss_every_step;
  for_each_launch(plan, [&](const auto& launch) {
    may = may && takes_networks<std::remove_cvref_t<decltype(launch)>>;
  });
  return may;
}

/// Launch by launch. The networks' stride may turn out to be a larger one.
LaunchPlan make_plan_for(const Networks& networks, const Workload& workload,
                         const CompileOptions& options, const Offers& offers, bool loops,
                         std::int64_t memory_bytes) {
  const Supports allowed = [&](const ProductForm& form) {  // also a network by itself
    return !is_gradient_of_a_line(form) && offers.products(form) &&
           (networks.count == 1 || offers.products(for_networks(form, networks)));
  };
  LaunchPlan plan{.mode = choose_run_mode(options)};
  if (plan.mode.execution == Execution::graph_epoch && loops &&
      options.graph_form.value_or(GraphForm{}).loops) {
    plan.loops = choose_loops(workload);
    plan.mode.in_place = plan.loops.empty();
  }
  TensorPlaces places(workload, options.precision, plan);
  plan.row_losses = places.reserve(loss_rows(workload) * static_cast<std::int64_t>(sizeof(float)));
  plan.factors = places.reserve(factors_bytes);
  const std::int64_t scratch = places.end();
  const bool counts_runs =
      std::any_of(workload.steps.begin(), workload.steps.end(), [&](const Step& step) {
        return has_loss(step) || (plan.mode.gathers() && !views_of(workload, step).empty());
      });
  for (std::size_t i = 0; i < workload.steps.size(); ++i) {
    StepPlanner step(workload, static_cast<int>(i), places,
                     {allowed, offers.convolutions, offers.sdpas}, scratch);
    plan.steps.push_back(step.plan());
    if (counts_runs && !has_loss(workload.steps[i])) {
      plan.steps.back().launches.emplace_back(AdvanceLaunch{});
    }
    places.extend(step.scratch_end());
  }
  reserve_order(workload, plan, places);
  if (networks.count > 1) {
    set_networks(plan, {networks.count, std::max(networks.stride, places.end())});
    plan.bytes = plan.networks.count * plan.networks.stride;
  }
  plan.workspace_bytes = workspace_for(plan, memory_bytes);
  plan.workspace = places.reserve(plan.workspace_bytes * plan.mode.streams);
  return plan;
}

}  // namespace

LaunchPlan make_plan(const Workload& workload, const CompileOptions& options,
                     const Supports& supports, const SupportsConvolution& convolutions,
                     const OnChip& chip, bool loops, std::int64_t memory_bytes,
                     const SupportsSdpa& sdpas) {
  if (facts_of(options.execution).in_one_kernel) {
    return make_persistent_plan(workload, options, chip);
  }
  const auto plan_for = [&](const Networks& networks) {
    return make_plan_for(networks, workload, options, {supports, convolutions, sdpas}, loops,
                         memory_bytes);
  };
  LaunchPlan one = plan_for({});
  Networks networks{.count = options.copies, .stride = one.workspace};
  if (networks.count == 1 || networks.count > Networks::most || !may_take_networks(one)) {
    return one;
  }
  constexpr int most_attempts = 3;  // the library may have other epilogues for several products
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    try {
      LaunchPlan all = plan_for(networks);
      if (all.networks == networks) {
        return all;
      }
      networks = all.networks;
    } catch (const Unsupported&) {
      break;
    }
  }
  return one;
}

LaunchPlan of_one_network(LaunchPlan plan) {
  set_networks(plan, {});
  return plan;
}

OrderPart first_part(const Workload& workload, const LaunchPlan& plan, const OrderPart& all) {
  if (plan.mode.is_resident() || all.is_empty()) {
    return all;
  }
  const std::int64_t first_row = workload.order[static_cast<std::size_t>(all.first)].first_row;
  OrderPart part{.first = all.first, .end = all.first};
  for (std::int64_t rows = 0; part.end < all.end; ++part.end) {
    const Run& run = workload.order[static_cast<std::size_t>(part.end)];
    const bool follows = run.first_row == first_row + rows;
    rows += plan.persistent->dense[static_cast<std::size_t>(run.step)].batch;
    if (!follows || rows > plan.persistent->rows_at_once) {
      break;
    }
  }
  return part;
}

std::int64_t count_launches(const Workload& workload, const LaunchPlan& plan) {
  std::int64_t sum = 0;
  if (plan.persistent) {
    for (OrderPart left{.end = std::ssize(workload.order)}; !left.is_empty();) {
      const OrderPart part = first_part(workload, plan, left);
      for_each_copy(plan, workload.order[static_cast<std::size_t>(part.first)],
                    workload.order[static_cast<std::size_t>(part.end - 1)],
                    [&](const auto&...) { ++sum; });
      ++sum;  // the kernel
      left.first = part.end;
    }
    return sum;
  }
  for (const Run& run : workload.order) {
    sum += launches_in(plan, run) + (plan.mode.loss_every_step ? 1 : 0);
  }
  return sum;
}

std::int64_t count_graph_nodes(const Workload& workload, const LaunchPlan& plan) {
  if (plan.loops.empty()) {
    return count_launches(workload, plan);
  }
  std::int64_t sum = std::ssize(plan.loops);
  for (const OrderLoop& loop : plan.loops) {
    for (std::int64_t run = loop.first; run < loop.first + loop.cycle; ++run) {
      sum += launches_in(plan, workload.order[static_cast<std::size_t>(run)]);
    }
  }
  return sum;
}

Reorders count_reorders(const Workload& workload, const LaunchPlan& plan) {
  Reorders sum;
  for (const Run& run : workload.order) {
    for (const Launch& launch : plan.steps[static_cast<std::size_t>(run.step)].launches) {
      const auto* reshape = std::get_if<ReshapeLaunch>(&launch);
      if (reshape != nullptr && reshape->moves()) {
        ++sum.count;
        sum.bytes += 2 * reshape->count * bytes(reshape->x.type);
      }
    }
  }
  return sum;
}

}  // namespace crossover::cuda
