// SPDX-License-Identifier: Apache-2.0
#include "optimizer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

namespace crossover {

void GradientBuckets::add_complete(std::size_t layer, const Workload& workload,
                                   std::vector<Op>& ops) {
  for (const std::size_t parameter : parameters_of_[layer]) {
    const auto here = parameters_of_.begin() + static_cast<std::ptrdiff_t>(layer);
    const bool goes_on =
        std::any_of(parameters_of_.begin(), here, [&](const std::vector<std::size_t>& earlier) {
          return std::find(earlier.begin(), earlier.end(), parameter) != earlier.end();
        });
    if (!goes_on && !is_taken_[parameter]) {
      is_taken_[parameter] = true;
      bucket_.push_back(gradients_[parameter]);
      bytes_ += bytes(workload[gradients_[parameter]]);
    }
  }
  if (bytes_ >= options_.bucket_bytes) {
    close(ops);
  }
}

void GradientBuckets::add_rest(std::vector<Op>& ops) {
  for (std::size_t parameter = 0; parameter < gradients_.size(); ++parameter) {
    if (!is_taken_[parameter]) {
      bucket_.push_back(gradients_[parameter]);
    }
  }
  close(ops);
}

void GradientBuckets::close(std::vector<Op>& ops) {
  if (!bucket_.empty()) {
    std::sort(bucket_.begin(), bucket_.end());  // as they lie in memory
    ops.emplace_back(AllReduce{.tensors = std::move(bucket_), .ranks = options_.ranks});
  }
  bucket_.clear();
  bytes_ = 0;
}

OptimizerStates::OptimizerStates(const Optimizer& optimizer, std::vector<Id> parameters,
                                 std::vector<Id> gradients, Workload& workload)
    : optimizer_(optimizer), parameters_(std::move(parameters)), gradients_(std::move(gradients)) {
  const auto add_all = [&](const auto& rule) {
    for (const StatesName& name : rule.states) {
      states_.push_back(add_states(std::string(name.of_one) + ' ', workload));
    }
    if (rule.counts_steps) {
      step_ = workload.add({.name = "t", .shape = {1}, .type = Type::i32, .role = Role::state});
    }
  };
  std::visit(add_all, optimizer);
}

std::vector<Id> OptimizerStates::add_states(const std::string& prefix, Workload& workload) const {
  std::vector<Id> states;
  for (const Id parameter : parameters_) {
    Tensor state = workload[parameter];
    state.name = prefix + state.name;
    state.role = Role::state;
    states.push_back(workload.add(std::move(state)));
  }
  return states;
}

Op OptimizerStates::update(const Workload& workload, double gradient_factor) const {
  Update update{.rule = optimizer_,
                .parameters = parameters_,
                .gradients = gradients_,
                .states = states_,
                .weight_decay = {},
                .step = step_,
                .gradient_factor = gradient_factor};
  if (const auto* adamw = std::get_if<AdamWOptions>(&optimizer_)) {
    for (const Id parameter : parameters_) {
      const bool decays = workload[parameter].shape.size() >= 2;
      update.weight_decay.push_back(decays ? adamw->weight_decay : 0);
    }
  }
  return update;
}

}  // namespace crossover
