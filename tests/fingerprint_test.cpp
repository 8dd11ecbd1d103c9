// SPDX-License-Identifier: Apache-2.0
#include "crossover/fingerprint.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "crossover/catalogue.h"
#include "crossover/product.h"
#include "crossover/training.h"

namespace crossover::test {
namespace {

struct Network {
  std::vector<std::int64_t> widths{4, 3, 2};
  Activation activation = Activation::relu;
  TrainingOptions options{.rows = 13, .batch = 5, .optimizer = SgdOptions{.learning_rate = 0.5}};
};

std::uint64_t of(const Network& network) {
  return fingerprint(
      training_epoch(mlp("any name", network.widths, network.activation), network.options));
}

TEST(Fingerprint, MatchesAnIndependentImplementation) {
  // From the definition evaluated in Python's big integers.
  EXPECT_EQ(hexadecimal(fingerprint(1, 2)), "1b0e2dbc926fd859");
  const Tensor pair{.name = "any name", .shape = {2}};
  EXPECT_EQ(hexadecimal(fingerprint({.tensors = {pair, pair, pair},
                                     .steps = {{.ops = {Add{.a = 0, .b = 1, .y = 2}}}},
                                     .order = {{.step = 0, .first_row = 7}}})),
            "d40e74dfcfa623cd");
}

/// The same on every machine, and in every version in which these are the same: files of one commit
/// are compared with files of another.
TEST(Fingerprint, IsWhatItWas) {
  EXPECT_EQ(hexadecimal(of({})), "cbe2f54d95db2ba9");
  EXPECT_EQ(hexadecimal(fingerprint(disc_points(3))), "621c1c6bff018df0");
  EXPECT_EQ(
      hexadecimal(fingerprint(training_epoch(find_model("lenet-5").model, Network().options))),
      "792768d789dde92f");
}

TEST(Fingerprint, DoesNotDependOnNames) {
  const TrainingOptions options = Network().options;
  EXPECT_EQ(fingerprint(training_epoch(mlp("a", {4, 2}, Activation::relu), options)),
            fingerprint(training_epoch(mlp("b", {4, 2}, Activation::relu), options)));
}

TEST(Fingerprint, ChangesWithEverythingThatIsTrained) {
  const std::vector<std::function<void(Network&)>> changes{
      [](Network&) {},
      [](Network& n) {
        n.widths = {4, 3, 3};
      },
      [](Network& n) {
        n.widths = {4, 4, 2};
      },
      [](Network& n) { n.activation = Activation::sigmoid; },
      [](Network& n) { n.options.rows = 12; },
      [](Network& n) { n.options.batch = 4; },
      [](Network& n) { n.options.accumulate = 2; },
      [](Network& n) { n.options.precision = Precision::bf16; },
      [](Network& n) { n.options.precision = Precision::f16; },
      [](Network& n) { n.options.optimizer = SgdOptions{.learning_rate = 0.25}; },
      [](Network& n) { n.options.optimizer = AdamWOptions{}; },
      [](Network& n) { n.options.optimizer = AdamWOptions{.weight_decay = 1e-3}; },
      [](Network& n) { n.options.optimizer = AdamWOptions{.beta1 = 0.8}; },
      [](Network& n) { n.options.optimizer = AdamWOptions{.epsilon = 1e-7}; },
  };
  std::set<std::uint64_t> met;
  for (const auto& change : changes) {
    Network network;
    change(network);
    met.insert(of(network));
  }
  EXPECT_EQ(met.size(), changes.size());
}

TEST(Fingerprint, ChangesWithEachFieldOfAWorkload) {
  const Workload plain = product_workload({.m = 2, .n = 3, .k = 4}, 2, 3);
  const std::vector<std::function<void(Workload&)>> changes{
      [](Workload&) {},
      [](Workload& w) {
        w.tensors[0].shape = {4, 2};
      },
      [](Workload& w) { w.tensors[0].type = Type::bf16; },
      [](Workload& w) { w.tensors[0].role = Role::parameter; },
      [](Workload& w) { w.tensors[0].source = 1; },
      [](Workload& w) { w.tensors[0].start.bound = 1; },
      [](Workload& w) { w.tensors[0].start.value = 1; },
      [](Workload& w) { w.tensors.emplace_back(); },
      [](Workload& w) { std::get<Gemm>(w.steps[0].ops[0]).transpose_a = true; },
      [](Workload& w) { std::get<Gemm>(w.steps[0].ops[0]).transpose_b = true; },
      [](Workload& w) { w.steps[0].ops[0] = Add{.a = 0, .b = 1, .y = 2}; },
      [](Workload& w) { w.steps[0].ops.clear(); },
      [](Workload& w) { w.order[0].step = 1; },
      [](Workload& w) { w.order[0].first_row = 1; },
      [](Workload& w) { w.order.pop_back(); },
      [](Workload& w) { w.epoch = 0; },
  };
  std::set<std::uint64_t> met;
  for (const auto& change : changes) {
    Workload workload = plain;
    change(workload);
    met.insert(fingerprint(workload));
  }
  EXPECT_EQ(met.size(), changes.size());
}

TEST(Fingerprint, ChangesWithEachDirectionOfAWindow) {
  const auto of_window = [](const Window& window) {
    return fingerprint(
        {.tensors = {{}, {}},
         .steps = {{.ops = {Pool{.kind = PoolKind::average, .x = 0, .y = 1, .window = window}}}},
         .order = {{}}});
  };
  std::set<std::uint64_t> met;
  const std::vector<Window> windows{
      {.size = 3},
      {.size = {3, 1}},
      {.size = {1, 3}},
      {.size = 3, .stride = {1, 2}},
      {.size = 3, .stride = {2, 1}},
      {.size = 3, .padding = {0, 1}},
      {.size = 3, .padding = {1, 0}},
      {.size = 3, .dilation = {1, 2}},
      {.size = 3, .dilation = {2, 1}},
  };
  for (const Window& window : windows) {
    met.insert(of_window(window));
  }
  EXPECT_EQ(met.size(), windows.size());
  EXPECT_EQ(of_window({.size = 3, .stride = 2}), of_window({.size = {3, 3}, .stride = {2, 2}}));
}

TEST(Fingerprint, OfDataChangesWithInputsLabelsAndShape) {
  const Dataset plain = uniform_rows({2}, 3, 2);
  Dataset inputs = plain;
  inputs.inputs[5] += 1e-9;
  Dataset labels = plain;
  labels.labels[2] = 1 - labels.labels[2];
  Dataset targets = plain;
  targets.labels.clear();
  targets.targets = {0, 1, 0};
  Dataset shape = plain;
  shape.sample = {1, 2};
  Dataset source = plain;
  source.source = "elsewhere.csv";
  const std::set<std::uint64_t> met{fingerprint(plain), fingerprint(inputs), fingerprint(labels),
                                    fingerprint(shape), fingerprint(targets)};
  EXPECT_EQ(met.size(), 5U);
  EXPECT_EQ(fingerprint(source), fingerprint(plain));
}

TEST(Fingerprint, IsWrittenAs16Digits) {
  EXPECT_EQ(hexadecimal(0), "0000000000000000");
  EXPECT_EQ(hexadecimal(0x0123456789ABCDEFU), "0123456789abcdef");
}

}  // namespace
}  // namespace crossover::test
