// SPDX-License-Identifier: Apache-2.0
// The rules by which every reader of result files judges them,
// plots/crossover_bench/files/schema.json: the program holds that file, so that it writes nothing
// which they refuse.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace crossover::bench {

/// What is wrong with `value`, by the part of the schema at that JSON pointer
/// ("/definitions/row"): "'facts.label' is not a text". Empty: nothing. `place`: what the value is
/// called, "facts"; empty: its members have no such name before them.
std::string fault_in(const nlohmann::ordered_json& value, const std::string& part,
                     const std::string& place);

}  // namespace crossover::bench
