// SPDX-License-Identifier: Apache-2.0
// What a kernel is compiled for that trains one network, and whether it fits a block.
#include <algorithm>
#include <cstdint>
#include <string>

#include "persistent.h"

namespace crossover::cuda {
namespace {

[[noreturn]] void refuse_to_tailor(const std::string& why) {
  throw Unsupported("a kernel made for the network " + why);
}

tailored::Shape shape_of(const std::vector<DenseStep>& steps, bool keep) {
  const DenseStep& first = steps.front();
  tailored::Shape shape{.layers = static_cast<int>(first.layers.size()),
                        .loss = first.loss.function,
                        .rule = kept_of(first).rule,
                        .keep = keep};
  std::int64_t parameters = 0;
  std::int64_t batch = 0;
  shape.width[0] = static_cast<int>(first.layers.front().in);
  for (std::size_t l = 0; l < first.layers.size(); ++l) {
    const DenseLayer& layer = first.layers[l];
    shape.width[l + 1] = static_cast<int>(layer.out);
    shape.activation[l] = layer.activation;
    parameters += (layer.in + 1) * layer.out;
  }
  for (const DenseStep& step : steps) {
    batch = std::max(batch, step.batch);
  }
  if (parameters > tailored::most_parameters) {
    refuse_to_tailor("takes at most " + std::to_string(tailored::most_parameters) +
                     " parameters, not " + std::to_string(parameters));
  }
  constexpr std::int64_t most_batch = 1 << 16;  // far beyond what shared memory holds
  shape.batch = static_cast<int>(std::min(batch, most_batch));
  return shape;
}

}  // namespace

PersistentPlan plan_tailored(const Workload& workload, const CompileOptions& options,
                             const OnChip& chip) {
  PersistentPlan plan{.dense = steps_of_one_kernel(workload, options)};
  const auto turns = [&](int blocks) {
    const std::int64_t at_once = chip.teams_at_once(blocks);
    return (options.copies + at_once - 1) / at_once;
  };
  const tailored::Shape of_batch = shape_of(plan.dense, options.keep_activations);
  plan.tailored = fastest(of_batch, chip.cluster_blocks, chip.shared_bytes, turns);
  plan.team = plan.tailored->blocks > 1 ? TeamKind::cluster : TeamKind::block;
  plan.blocks = plan.tailored->blocks;
  plan.threads = plan.tailored->threads;
  plan.bytes =
      std::int64_t{layout_of(*plan.tailored).floats} * static_cast<std::int64_t>(sizeof(float));
  plan.most_shared_bytes = chip.shared_bytes;
  if (plan.bytes > chip.shared_bytes) {
    refuse_to_tailor("needs " + std::to_string((plan.bytes + 1023) >> 10) + " KB at batch " +
                     std::to_string(plan.tailored->batch) + "; a block of this GPU has " +
                     std::to_string(chip.shared_bytes >> 10) + " KB of shared memory");
  }
  return plan;
}

}  // namespace crossover::cuda
