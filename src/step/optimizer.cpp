// SPDX-License-Identifier: Apache-2.0
#include "optimizer.h"

#include <algorithm>
#include <utility>

#include "overload.h"

namespace crossover {

// ---- Gradient buckets

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

// ---- Optimizer states

OptimizerStates::OptimizerStates(const Optimizer& optimizer, std::vector<Id> parameters,
                                 std::vector<Id> gradients, Workload& workload)
    : optimizer_(optimizer), parameters_(std::move(parameters)), gradients_(std::move(gradients)) {
  if (std::holds_alternative<MomentumOptions>(optimizer)) {
    velocities_ = add_states("velocity ", workload);
  } else if (std::holds_alternative<AdamWOptions>(optimizer)) {
    m_ = add_states("m ", workload);
    v_ = add_states("v ", workload);
    workload.tensors.push_back({.name = "t", .shape = {1}, .type = Type::i32, .role = Role::state});
    time_ = static_cast<Id>(workload.tensors.size()) - 1;
  }
}

std::vector<Id> OptimizerStates::add_states(const std::string& prefix, Workload& workload) const {
  std::vector<Id> states;
  for (const Id parameter : parameters_) {
    Tensor state = workload[parameter];
    state.name = prefix + state.name;
    state.role = Role::state;
    workload.tensors.push_back(std::move(state));
    states.push_back(static_cast<Id>(workload.tensors.size()) - 1);
  }
  return states;
}

Op OptimizerStates::update(const Workload& workload, double gradient_factor) const {
  return std::visit(Overload{[&](const SgdOptions& options) -> Op {
                               return Sgd{.parameters = parameters_,
                                          .gradients = gradients_,
                                          .learning_rate = options.learning_rate,
                                          .gradient_factor = gradient_factor};
                             },
                             [&](const MomentumOptions& options) -> Op {
                               return Momentum{.parameters = parameters_,
                                               .gradients = gradients_,
                                               .velocities = velocities_,
                                               .learning_rate = options.learning_rate,
                                               .momentum = options.momentum,
                                               .gradient_factor = gradient_factor};
                             },
                             [&](const AdamWOptions& options) -> Op {
                               std::vector<double> decay;
                               for (const Id parameter : parameters_) {
                                 decay.push_back(workload[parameter].shape.size() >= 2
                                                     ? options.weight_decay
                                                     : 0);
                               }
                               return AdamW{.parameters = parameters_,
                                            .gradients = gradients_,
                                            .m = m_,
                                            .v = v_,
                                            .weight_decay = std::move(decay),
                                            .step = time_,
                                            .learning_rate = options.learning_rate,
                                            .beta1 = options.beta1,
                                            .beta2 = options.beta2,
                                            .epsilon = options.epsilon,
                                            .gradient_factor = gradient_factor};
                             }},
                    optimizer_);
}

}  // namespace crossover
