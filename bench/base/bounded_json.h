// SPDX-License-Identifier: Apache-2.0
// JSON of strangers: whatever reads it recurses as deeply as it is nested, so that has an end.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace crossover::bench {

/// Discarded where the text is no JSON, or is nested deeper.
inline nlohmann::ordered_json bounded_json(const std::string& text, int deepest) {
  bool too_deep = false;
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(
      text,
      [&](int depth, nlohmann::ordered_json::parse_event_t /*event*/,
          nlohmann::ordered_json& /*value*/) {
        too_deep |= depth > deepest;
        return depth <= deepest;
      },
      /*allow_exceptions=*/false);
  return too_deep ? nlohmann::ordered_json(nlohmann::ordered_json::value_t::discarded) : json;
}

}  // namespace crossover::bench
