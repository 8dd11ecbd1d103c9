// SPDX-License-Identifier: Apache-2.0
// task_from() on any text: a network whose layers fit, which described is read the same, or an
// error with a message.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "check.h"
#include "crossover/network_file.h"

namespace crossover {

// How a step goes is not wanted here.
Operands operands(const Op&) { return {}; }

namespace {

using fuzz::require;
using Json = nlohmann::ordered_json;

void look_at(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return;
  }
  try {
    const Task task = task_from(json);
    require(task.rows > 0 && task.batch > 0, "no rows or no batch");
    const Json described = describe(task);
    require(describe(task_from(described)) == described, "described and read again it differs");
  } catch (const std::invalid_argument& error) {
    require(*error.what() != '\0', "an error without a message");
  }
}

}  // namespace
}  // namespace crossover

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crossover::look_at(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
