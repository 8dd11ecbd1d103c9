// SPDX-License-Identifier: Apache-2.0
// What a worker answers of a check, whatever its parts do.
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cases/operation_cases.h"
#include "check/check.h"
#include "crossover/backend.h"
#include "crossover/operations.h"
#include "crossover/verify.h"

namespace crossover::bench {
namespace {

template <class Error>
Part throwing(const Error& error) {
  return {"second", [error] { throw error; }};
}

Json answer_of(const Part& second) {
  const std::vector<Check> checks{
      {"cuda", "Linear", "bf16", "graph", {{"first", [] {}}, second, {"third", [] {}}}}};
  std::string told;
  Json answer = run_check(checks, "cuda Linear bf16 graph",
                          [&](const std::string& doing) { told += doing + " "; });
  EXPECT_EQ(told, answer["verdict"] == "ok" || answer["verdict"] == "refused"
                      ? "checking first checking second checking third "
                      : "checking first checking second ");
  return answer;
}

TEST(Check, TellsWhatBecameOfItsParts) {
  EXPECT_EQ(answer_of({"second", [] {}}), Json({{"verdict", "ok"}, {"reason", ""}}));
  const char* const refused = "1 of 3 refused; second: no algorithm";
  EXPECT_EQ(answer_of(throwing(Unsupported("no algorithm"))),
            Json({{"verdict", "refused"}, {"reason", refused}}));
  EXPECT_EQ(answer_of(throwing(OutOfMemory("no algorithm")))["reason"], refused);
  EXPECT_EQ(answer_of(throwing(std::bad_alloc()))["verdict"], "refused");
  EXPECT_EQ(answer_of(throwing(Mismatch("far off", 0.5, 1e-6))),
            Json({{"verdict", "wrong"},
                  {"reason", "second: far off"},
                  {"error", 0.5},
                  {"tolerance", 1e-6}}));
  EXPECT_EQ(answer_of(throwing(DeviceFailed("illegal"))),
            Json({{"verdict", "crashed"}, {"reason", "second: illegal"}, {"device_failed", true}}));
  EXPECT_EQ(answer_of(throwing(std::runtime_error("odd"))),
            Json({{"verdict", "failed"}, {"reason", "second: odd"}}));
}

TEST(Check, OfAGpuThatIsGoneFails) {
  EXPECT_EQ(run_check({}, "cuda Linear bf16 graph", {}),
            Json({{"verdict", "failed"}, {"reason", "the GPU is gone"}}));
}

Devices cpu_and_gpu() {
  Devices devices;
  for (const BackendKind& kind : backends()) {
    devices.all.push_back(planned_device(kind));
  }
  return devices;
}

TEST(Check, HasANameOfItsOwn) {
  Devices devices = cpu_and_gpu();
  std::set<std::string> names;
  const std::vector<Check> checks = all_checks({}, devices);
  for (const Check& check : checks) {
    EXPECT_FALSE(check.parts.empty()) << check.name();
    names.insert(check.name());
  }
  EXPECT_EQ(names.size(), checks.size());
  EXPECT_TRUE(names.contains("cuda Convolution bf16 graph"));
  EXPECT_TRUE(names.contains("cuda tiny-mlp f32 persistent"));
}

TEST(Check, TriesEveryOperation) {
  Devices devices = cpu_and_gpu();
  std::set<std::string> tried;  // on a GPU, which has every precision: Casts are of 16 bits
  for (const Check& check : all_checks({}, devices)) {
    if (check.device == "cuda") {
      tried.insert(check.what);
    }
  }
  for (const OperationCase& c : operation_cases()) {
    const std::string operation = name(c.workload.steps.front().ops.front());
    // AllReduce needs several ranks.
    EXPECT_TRUE(tried.contains(operation) || operation == AllReduce::name) << operation;
  }
}

/// What the time does not suffice for is not the code with the highest risk.
TEST(Check, TriesNetworksBeforeOperations) {
  Devices devices = cpu_and_gpu();
  const std::vector<Check> checks = all_checks({}, devices);
  const auto at = [&](const std::string& name) {
    return std::ranges::find(checks, name, &Check::name);
  };
  const auto first = std::min(at("cuda Activate f32 eager"), at("cuda Linear bf16 graph"));
  for (const char* name : {"tiny-cnn f16 eager", "tiny-gpt bf16 graph-epoch", "tiny-vit tf32 auto",
                           "tiny-mlp f32 persistent"}) {
    EXPECT_LT(at(std::string("cuda ") + name), first) << name;
  }
  EXPECT_FALSE(at("cuda Activate f32 eager")->calls_libraries);
  EXPECT_TRUE(at("cuda Linear bf16 graph")->calls_libraries);
}

}  // namespace
}  // namespace crossover::bench
