// SPDX-License-Identifier: Apache-2.0
#include "step_planner.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "../operations/operations.h"
#include "crossover/alive.h"
#include "crossover/training.h"

namespace crossover::cuda {

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
  const Operand taken{.offset = scratch_end_};
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

}  // namespace crossover::cuda
