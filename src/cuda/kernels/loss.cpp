// SPDX-License-Identifier: Apache-2.0
#include "loss.cuh"

#include "bind.h"

namespace crossover::cuda {

BoundLaunch bind(const LossLaunch& launch, const Binding& binding) {
  return {OpCategory::loss, [launch, binding](const Position& now) {
            softmax_cross_entropy(binding.stream, launch.dlogits.type,
                                  {.logits = binding.address<float>(launch.logits, now),
                                   .labels = binding.address<std::int32_t>(launch.labels, now),
                                   .dlogits = binding.address(launch.dlogits, now),
                                   .loss = binding.address<float>(launch.loss, now),
                                   .run = binding.run_counter(),
                                   .row_losses = binding.address<float>(binding.plan->row_losses),
                                   .rows = launch.rows,
                                   .classes = launch.classes,
                                   .time = launch.time,
                                   .factor = launch.factor,
                                   .advance = launch.advance,
                                   .runs = binding.plan->runs},
                                  {.threads = launch.threads, .in_one_block = launch.in_one_block});
          }};
}

BoundLaunch bind(const MeanLossLaunch& launch, const Binding& binding) {
  return {OpCategory::loss, [launch, binding](const Position& now) {
            mean_loss(binding.stream,
                      {.loss = binding.address<float>(launch.loss, now),
                       .run = binding.run_counter(),
                       .row_losses = binding.address<float>(binding.plan->row_losses),
                       .rows = launch.rows,
                       .advance = launch.advance,
                       .runs = binding.plan->runs});
          }};
}

BoundLaunch bind(const AdvanceLaunch& /*unused*/, const Binding& binding) {
  return {OpCategory::elementwise, [binding](const Position& /*unused*/) {
            advance_run(binding.stream, binding.run_counter(), binding.plan->runs);
          }};
}

}  // namespace crossover::cuda
