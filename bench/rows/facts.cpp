// SPDX-License-Identifier: Apache-2.0
#include "rows/facts.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "rows/counters.h"

namespace crossover::bench {
namespace {

nlohmann::ordered_json verification_json(const RowVerification& verification) {
  nlohmann::ordered_json json = {{"reference", verification.reference}};
  if (!verification.unit.empty()) {
    json[verification.unit] = verification.compared;
    json[verification.unit + "_of"] = verification.of;
  }
  if (verification.batch) {
    json["batch"] = *verification.batch;
  }
  json["tolerance"] = verification.tolerance;
  json["relative_error"] = verification.error;
  if (verification.parameter_tolerance && verification.parameter_error) {
    json["parameter_tolerance"] = *verification.parameter_tolerance;
    json["parameter_error"] = *verification.parameter_error;
  }
  if (verification.operation_tolerance && verification.operation_error) {
    json["operation_tolerance"] = *verification.operation_tolerance;
    json["operation_error"] = *verification.operation_error;
  }
  if (verification.undetermined > 0) {
    json["undetermined_updates"] = verification.undetermined;
  }
  if (verification.tf32_factors) {
    json["tf32_factors"] = to_string(*verification.tf32_factors);
  }
  if (verification.relu_passes_zero) {
    json["relu_passes_zero"] = true;
  }
  return json;
}

/// What is not there is none.
nlohmann::ordered_json minimum_work_json(const MinimumWork& least) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const std::initializer_list<std::pair<const char*, double>> amounts{
      {"flops", least.flops},
      {"memory_bytes", least.memory_bytes},
      {"bytes_to_device", least.bytes_to_device},
      {"bytes_from_device", least.bytes_from_device},
      {"launches", least.launches}};
  for (const auto& [name, amount] : amounts) {
    if (amount != 0) {
      json[name] = amount;
    }
  }
  if (least.graph) {
    json["graph"] = true;
  }
  return json;
}

}  // namespace

nlohmann::ordered_json facts_json(const Result& result) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!result.verification.reference.empty()) {
    json["verification"] = verification_json(result.verification);
  }
  if (!result.label.empty()) {
    json["label"] = result.label;
  }
  if (!result.workload.empty()) {
    json["workload"] = result.workload;
  }
  if (!result.chosen.empty()) {
    json["chosen"] = configuration_json(result.chosen);
  }
  if (!result.convolutions.empty()) {
    json["convolutions"] = result.convolutions;
  }
  if (result.minimum_work) {
    json["minimum_work"] = minimum_work_json(*result.minimum_work);
  }
  for (const auto& [counter, value] : result.counters) {
    if (kind_of_counter(counter) == CounterKind::fact) {
      json[counter] = value;
    }
  }
  return json;
}

nlohmann::ordered_json first_steps_json(const FirstSteps& steps) {
  return {{"losses", steps.losses}, {"norms", steps.norms}};
}

FirstSteps first_steps_in(const nlohmann::ordered_json& json) {
  return {.losses = json.at("losses").get<std::vector<double>>(),
          .norms = json.at("norms").get<std::vector<double>>()};
}

nlohmann::ordered_json configuration_json(const Configuration& configuration) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [key, value] : configuration) {
    json[key] = value;
  }
  return json;
}

Configuration configuration_in(const nlohmann::ordered_json& json) {
  Configuration configuration;
  for (const auto& [key, value] : json.items()) {
    configuration.emplace_back(key, value.get<std::string>());
  }
  return configuration;
}

}  // namespace crossover::bench
