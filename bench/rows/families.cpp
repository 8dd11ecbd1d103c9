// SPDX-License-Identifier: Apache-2.0
#include "rows/families.h"

#include <algorithm>
#include <stdexcept>

#include "crossover/fingerprint.h"
#include "crossover/network_file.h"

namespace crossover::bench {

const std::vector<BenchmarkFamily>& families() {
  static const std::vector<BenchmarkFamily> all{
      {.name = "Peak", .register_rows = register_peaks, .worth = 5, .bounds_others = true},
      {.name = "Copy",
       .register_rows = register_copies,
       .worth = 1,
       .is_worth_minutes = is_copy_worth_minutes},
      {.name = "Collective",
       .register_rows = register_collectives,
       .worth = 5,
       .bounds_others = true},
      {.name = "Gemm",
       .register_rows = register_gemms,
       .worth = 2,
       .is_worth_minutes = is_gemm_worth_minutes},
      {.name = "Layer",
       .register_rows = register_layers,
       .worth = 3,
       .is_worth_minutes = is_layer_worth_minutes},
      {.name = "Epoch",
       .register_rows = register_epochs,
       .worth = 0,
       .trains = Trains::epochs,
       .is_worth_minutes = is_epoch_worth_minutes},
      {.name = "Minibatch",
       .register_rows = register_minibatches,
       .worth = 4,
       .trains = Trains::steps,
       .is_worth_minutes = is_minibatch_worth_minutes},
      {.name = "Command", .register_rows = [](const Arguments&, Devices&, Rows&) {}, .worth = 6},
  };
  return all;
}

const BenchmarkFamily& find_family(const std::string& name) {
  for (const BenchmarkFamily& family : families()) {
    if (family.name == name) {
      return family;
    }
  }
  throw std::out_of_range("no family '" + name +
                          "'; add it to the table in bench/rows/families.cpp");
}

Rows register_all(const Arguments& arguments, Devices& devices) {
  Rows rows;
  for (const BenchmarkFamily& family : families()) {
    const auto& wanted = arguments.families;
    if (std::find(wanted.begin(), wanted.end(), family.name) != wanted.end()) {
      family.register_rows(arguments, devices, rows);
    }
  }
  note_networks(arguments, rows);
  return rows;
}

std::map<std::string, std::string> network_fingerprints(const Arguments& arguments) {
  std::map<std::string, std::string> found;
  for (const std::vector<Task>* tasks : {&arguments.tasks, &arguments.minibatch_tasks}) {
    for (const Task& task : *tasks) {
      if (std::string& own = found[task.model.name]; own.empty()) {
        own = hexadecimal(fingerprint(describe(task).dump()));
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
