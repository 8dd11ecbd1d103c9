// SPDX-License-Identifier: Apache-2.0
#include "families/families.h"

#include <algorithm>
#include <stdexcept>

#include "families/device.h"
#include "families/networks.h"

namespace crossover::bench {
namespace {

const std::vector<FamilyRows>& family_rows() {
  static const std::vector<FamilyRows> all{
      {RowFamily::peak, register_peaks, make_peak},
      {RowFamily::copy, register_copies, make_copy, is_copy_worth_minutes},
      {RowFamily::collective, register_collectives, make_collective},
      {RowFamily::gemm, register_gemms, make_gemm, is_gemm_worth_minutes},
      {RowFamily::layer, register_layers, make_layer, is_layer_worth_minutes},
      {RowFamily::epoch, register_epochs, make_training, is_epoch_worth_minutes},
      {RowFamily::minibatch, register_minibatches, make_training, is_minibatch_worth_minutes},
      {RowFamily::forward, register_passes, make_pass},
  };
  return all;
}

/// Null of a family whose rows other programs have.
const FamilyRows* family_rows_of(const RowSpec& row) {
  const auto at = std::ranges::find(family_rows(), row.family, &FamilyRows::family);
  return at == family_rows().end() ? nullptr : &*at;
}

}  // namespace

std::string RowContext::network_of(const RowSpec& row) const {
  const std::optional<Task> task = find_task(arguments, row.model.value_or(""));
  return task ? network_fingerprint(*task) : "";
}

bool is_worth_minutes(const Row& row, int most_threads) {
  const FamilyRows* const its = family_rows_of(row.spec);
  return its == nullptr || its->is_worth_minutes == nullptr ||
         its->is_worth_minutes(row, most_threads);
}

std::unique_ptr<PreparedBenchmark> make_row(RowContext& context, const RowSpec& row,
                                            Result& result) {
  const FamilyRows* const its = family_rows_of(row);
  if (its == nullptr) {
    throw std::logic_error("bench has no rows of the family '" + family_of(row).name + "'");
  }
  return its->make(context, row, result);
}

Followed followed(RowContext& context, const RowSpec& row) {
  const Target target = target_of(row, context.devices);
  const Backend* const backend = target.device->backend.get();
  const Trains trains = family_of(row).trains;
  if (trains == Trains::nothing || trains == Trains::forward_passes) {
    return {.backend = target.device->has_own_memory() ? backend : nullptr,
            .model = {},
            .whole = {},
            .options = {}};
  }
  const TrainingPlan plan = training_plan_of(row, context.arguments, context.references);
  return {.backend = backend,
          .model = plan.task.model,
          .whole = plan.options,
          .options = target.options};
}

Rows register_all(const Arguments& arguments, Devices& devices) {
  Rows rows;
  for (const FamilyRows& family : family_rows()) {
    const auto& wanted = arguments.families;
    if (contains(wanted, family.family)) {
      family.register_rows(arguments, devices, rows);
    }
  }
  note_networks(arguments, rows);
  return rows;
}

}  // namespace crossover::bench
