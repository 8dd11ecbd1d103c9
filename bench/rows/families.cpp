// SPDX-License-Identifier: Apache-2.0
#include "rows/families.h"

#include <algorithm>
#include <stdexcept>

#include "crossover/fingerprint.h"
#include "crossover/network_file.h"
#include "rows/device.h"
#include "rows/training.h"

namespace crossover::bench {
namespace {

const std::vector<FamilyRows>& family_rows() {
  static const std::vector<FamilyRows> all{
      {"Peak", register_peaks, make_peak},
      {"Copy", register_copies, make_copy, is_copy_worth_minutes},
      {"Collective", register_collectives, make_collective},
      {"Gemm", register_gemms, make_gemm, is_gemm_worth_minutes},
      {"Layer", register_layers, make_layer, is_layer_worth_minutes},
      {"Epoch", register_epochs, make_training, is_epoch_worth_minutes},
      {"Minibatch", register_minibatches, make_training, is_minibatch_worth_minutes},
      {"Forward", register_passes, make_pass},
  };
  return all;
}

/// Null of a family whose rows other programs have.
const FamilyRows* rows_of(const std::string& family) {
  const auto at = std::ranges::find(family_rows(), family, &FamilyRows::name);
  return at == family_rows().end() ? nullptr : &*at;
}

}  // namespace

RowContext::RowContext(const Arguments& its_arguments, Devices& its_devices)
    : arguments(its_arguments), devices(its_devices) {}

RowContext::~RowContext() = default;

Training& RowContext::training_of(const Configuration& row) {
  const std::string& family = value_of(row, "family");
  std::unique_ptr<Training>& training = trainings_[family];
  if (training == nullptr) {
    training = std::make_unique<Training>(arguments, find_family(family).trains);
  }
  return *training;
}

std::string RowContext::network_of(const Configuration& row) const {
  const std::optional<Task> task = find_task(arguments, value_or_unsaid(row, "model"));
  return task ? network_fingerprint(*task) : "";
}

bool is_worth_minutes(const Row& row, const std::string& most_threads) {
  const FamilyRows* const its = rows_of(family_of(row));
  return its == nullptr || its->is_worth_minutes == nullptr ||
         its->is_worth_minutes(row, most_threads);
}

std::unique_ptr<PreparedBenchmark> make_row(RowContext& context, const Configuration& row,
                                            Result& result) {
  const std::string& family = value_of(row, "family");
  const FamilyRows* const its = rows_of(family);
  if (its == nullptr) {
    throw std::logic_error("bench has no rows of the family '" + family + "'");
  }
  return its->make(context, row, result);
}

Followed followed(RowContext& context, const Configuration& row) {
  const Target target = target_of(row, context.devices);
  const Backend* const backend = target.device->backend.get();
  const Trains trains = find_family(value_of(row, "family")).trains;
  if (trains == Trains::nothing || trains == Trains::forward_passes) {
    return {.backend = target.device->is_host ? nullptr : backend,
            .model = {},
            .whole = {},
            .options = {}};
  }
  const TrainingPlan plan = context.training_of(row).plan_of(row);
  return {.backend = backend,
          .model = plan.task.model,
          .whole = plan.options,
          .options = target.options};
}

Rows register_all(const Arguments& arguments, Devices& devices) {
  Rows rows;
  for (const FamilyRows& family : family_rows()) {
    const auto& wanted = arguments.families;
    if (contains(wanted, family.name)) {
      family.register_rows(arguments, devices, rows);
    }
  }
  note_networks(arguments, rows);
  return rows;
}

std::string network_fingerprint(const Task& task) {
  return hexadecimal(fingerprint(describe(task).dump()));
}

std::map<std::string, std::string> network_fingerprints(const Arguments& arguments) {
  std::map<std::string, std::string> found;
  for (const std::vector<Task>* tasks : {&arguments.tasks, &arguments.minibatch_tasks}) {
    for (const Task& task : *tasks) {
      if (std::string& own = found[task.model.name]; own.empty()) {
        own = network_fingerprint(task);
      }
    }
  }
  return found;
}

void note_networks(const Arguments& arguments, Rows& rows) {
  const std::map<std::string, std::string> known = network_fingerprints(arguments);
  for (const std::string& name : rows.names()) {
    Row& row = rows[name];
    const auto own = known.find(value_or_unsaid(row.configuration, "model"));
    if (row.network.empty() && own != known.end()) {
      row.network = own->second;
    }
  }
}

}  // namespace crossover::bench
