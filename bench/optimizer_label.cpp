// SPDX-License-Identifier: Apache-2.0
#include "optimizer_label.h"

#include <sstream>
#include <variant>

namespace crossover::bench {

std::string optimizer_label(const Optimizer& optimizer) {
  std::ostringstream text;
  if (const auto* adamw = std::get_if<AdamWOptions>(&optimizer)) {
    text << "adamw lr=" << adamw->learning_rate << " weight_decay=" << adamw->weight_decay;
  } else {
    text << "sgd lr=" << std::get<SgdOptions>(optimizer).learning_rate;
  }
  return text.str();
}

}  // namespace crossover::bench
