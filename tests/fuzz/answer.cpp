// SPDX-License-Identifier: Apache-2.0
// An answer of another program, to each request. What has no fault is what a result file may have,
// and can be read without a look at what it is.
#include <array>
#include <cstdint>
#include <string>

#include "../../bench/base/bounded_json.h"
#include "../../bench/worker/protocol.h"
#include "check.h"

namespace crossover::bench {
namespace {

using fuzz::require;

const Json request_of(const std::string& what) {
  return {{"do", what},
          {"row", "Epoch/model:m/batch:1/precision:f32/device:cpu/execution:eager/cpu_threads:1"},
          {"configuration",
           {{"family", "Epoch"},
            {"model", "m"},
            {"batch", "1"},
            {"precision", "f32"},
            {"device", "cpu"},
            {"execution", "eager"},
            {"cpu_threads", "1"}}}};
}

/// As whoever asked reads it.
void require_readable(const std::string& what, const Json& answer) {
  if (answer.contains("outcome")) {
    require(answer["outcome"].is_string(), "an outcome that is no text");
  } else if (what == "rows") {
    for (const Json& row : answer.at("rows")) {
      for (const auto& [key, value] : row.at("configuration").items()) {
        require(value.is_string(), key + " is no text");
      }
    }
  } else if (what == "prepare") {
    const Json& facts = answer.at("facts");
    require(facts.at("loss_first_epoch").is_number() && facts.at("flops").get<double>() > 0,
            "facts without numbers");
    require(!facts.contains("name") && !facts.contains("configuration"), "another name");
    require(answer.at("once").at("first_call_seconds").get<double>() >= 0, "no first call");
  } else if (what == "repeat") {
    const Json& times = answer.at("times");
    require(times.at("real_time").get<double>() > 0 && times.at("cpu_time").get<double>() >= 0 &&
                times.at("iterations").get<std::int64_t>() > 0,
            "no time");
  }
}

void look_at(const std::string& text) {
  constexpr std::array requests{"describe", "rows", "prepare", "repeat", "release"};
  const Json answer = bounded_json(text, deepest_answer);
  if (!answer.is_object()) {
    return;
  }
  for (const std::string what : requests) {
    if (fault_of(request_of(what), answer).empty()) {
      require_readable(what, answer);
    }
  }
}

}  // namespace
}  // namespace crossover::bench

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crossover::bench::look_at(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
