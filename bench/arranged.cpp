// SPDX-License-Identifier: Apache-2.0
#include "arranged.h"

#include <sstream>
#include <utility>
#include <variant>

namespace crossover::bench {

Workload arranged(const Workload& epoch, bool on_cpu) {
  Workload fused = fuse(epoch);
  return on_cpu ? fuse_update(std::move(fused)) : fused;
}

std::string description(const Optimizer& optimizer) {
  std::ostringstream text;
  if (const auto* adamw = std::get_if<AdamWOptions>(&optimizer)) {
    text << "adamw lr=" << adamw->learning_rate << " weight_decay=" << adamw->weight_decay;
  } else {
    text << "sgd lr=" << std::get<SgdOptions>(optimizer).learning_rate;
  }
  return text.str();
}

}  // namespace crossover::bench
