// SPDX-License-Identifier: Apache-2.0
// Embeddings and LSTMs.
#include "embedding.cuh"
#include "lstm.cuh"

#include "bind.h"

namespace crossover::cuda {

BoundLaunch bind(const EmbeddingLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            embedding(binding.stream, launch.y.type,
                      binding.address<std::int32_t>(launch.tokens, now),
                      binding.address(launch.table, now), binding.address(launch.y, now),
                      launch.batch, launch.time, launch.width);
          }};
}

BoundLaunch bind(const EmbeddingGradLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            embedding_grad(
                binding.stream, launch.dy.type, binding.address<std::int32_t>(launch.tokens, now),
                binding.address(launch.dy, now), binding.address<float>(launch.dtable, now),
                launch.batch, launch.time, launch.width);
          }};
}

BoundLaunch bind(const LstmGatesLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            lstm_gates(binding.stream, launch.gates.type,
                       {.sums = binding.address<float>(launch.sums, now),
                        .b_ih = binding.address<float>(launch.b_ih, now),
                        .b_hh = binding.address<float>(launch.b_hh, now),
                        .c_before = binding.maybe<float>(launch.c_before, now),
                        .gates = binding.address(launch.gates, now),
                        .c = binding.address<float>(launch.c, now),
                        .h = binding.address(launch.h, now),
                        .batch = launch.batch,
                        .hidden = launch.hidden});
          }};
}

BoundLaunch bind(const LstmGatesGradLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            lstm_gates_grad(binding.stream, launch.gates.type,
                            {.gates = binding.address(launch.gates, now),
                             .c_before = binding.maybe<float>(launch.c_before, now),
                             .c = binding.address<float>(launch.c, now),
                             .dh = binding.address(launch.dh, now),
                             .dgates = binding.address(launch.dgates, now),
                             .carry_h = binding.address<float>(launch.carry_h, now),
                             .carry_c = binding.address<float>(launch.carry_c, now),
                             .batch = launch.batch,
                             .hidden = launch.hidden,
                             .is_last = launch.is_last});
          }};
}

}  // namespace crossover::cuda
