// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "crossover/product.h"
#include "crossover/step.h"
#include "crossover/training.h"
#include "support.h"

namespace crossover::test {

// ---- Every operation by itself, on every backend and thread count, against the reference.

namespace {

class Operation : public testing::TestWithParam<std::tuple<OperationCase, int>> {};

TEST_P(Operation, MatchesTheReference) {
  const auto& [c, threads] = GetParam();
  const auto backend = make_cpu_backend();
  const Precision precision = stored_precision(c.workload);
  if (const std::string refused =
          expect_operation_or_refusal(c, *backend, {.threads = threads, .precision = precision});
      !refused.empty()) {
    GTEST_SKIP() << refused;
  }
}

std::vector<int> thread_counts() { return thinned() ? std::vector{3} : std::vector{1, 2, 3}; }

INSTANTIATE_TEST_SUITE_P(Cpu, Operation,
                         testing::Combine(testing::ValuesIn(operation_cases()),
                                          testing::ValuesIn(thread_counts())),
                         [](const auto& parameters) {
                           return std::get<0>(parameters.param).name + "_" +
                                  std::to_string(std::get<1>(parameters.param)) + "_threads";
                         });

class GpuOperation : public testing::TestWithParam<std::tuple<OperationCase, Execution>> {};

TEST_P(GpuOperation, MatchesTheReference) {
  const CudaBackend gpu = make_cuda_backend();
  if (!gpu.backend) {
    GTEST_SKIP() << gpu.reason;
  }
  const auto& [c, execution] = GetParam();
  const Precision precision = stored_precision(c.workload);
  for (const Precision compiled : {precision, Precision::tf32}) {
    if (compiled == Precision::tf32 && precision != Precision::f32) {
      continue;
    }
    if (const std::string refused = expect_operation_or_refusal(
            c, *gpu.backend, {.precision = compiled, .execution = execution});
        !refused.empty()) {
      GTEST_SKIP() << refused;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuOperation,
                         testing::Combine(testing::ValuesIn(operation_cases()),
                                          testing::Values(Execution::eager, Execution::graph)),
                         [](const auto& parameters) {
                           return std::get<0>(parameters.param).name +
                                  (std::get<1>(parameters.param) == Execution::eager ? "_eager"
                                                                                     : "_graph");
                         });

}  // namespace

// ---- What every operation says of itself: describe() leaves nothing out.

namespace {

/// Converts to the type of any member.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

/// How many members the aggregate has: as many as it can be initialized with.
template <class T, class... Members>
consteval std::size_t member_count() {
  if constexpr (requires { T{Members{}..., Anything{}}; }) {
    return member_count<T, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

class MemberNames {
 public:
  void reads(const std::string& name, const auto& /*operand*/) { names_.insert(name); }
  void writes(const std::string& name, const auto& /*operand*/) { names_.insert(name); }
  void value(const std::string& name, const auto& /*value*/) { names_.insert(name); }
  void newer_reads(const std::string& name, Id /*operand*/) { names_.insert(name); }
  template <class Value>
  void newer_value(const std::string& name, const Value& /*value*/, const Value& /*before*/) {
    names_.insert(name);
  }
  [[nodiscard]] std::size_t count() const { return names_.size(); }

 private:
  std::set<std::string> names_;
};

template <class Operation>
void expect_described(const Operation& op, std::size_t members) {
  MemberNames names;
  op.describe(names);
  EXPECT_EQ(names.count(), members) << name_of(op);
}

/// Of an operation of several kinds: of each of them, whose names are those of its members.
template <class Operation>
void expect_described() {
  constexpr std::size_t members = member_count<Operation>();
  if constexpr (std::is_same_v<Operation, Update>) {
    constexpr std::size_t of_all = members - 2;  // without the rule and the lists of its states
    const std::vector<Id> one{0};
    expect_described(Update{SgdOptions{}}, of_all + 1);
    expect_described(Update{.rule = MomentumOptions{}, .states = {one}}, of_all + 2 + 1);
    // weight_decay is for the one who makes the operation.
    expect_described(Update{.rule = AdamWOptions{}, .states = {one, one}},
                     of_all + member_count<AdamWOptions>() - 1 + 2);
  } else if constexpr (requires(Operation op) { op.cell; }) {
    constexpr bool has_dk = std::is_same_v<Operation, RecurrentGrad>;
    expect_described(Operation{LstmCell{}}, members - 1 - (has_dk ? 1 : 0));
    expect_described(Operation{GruCell{}}, members - 1);
  } else {
    expect_described(Operation{}, members);
  }
}

template <std::size_t... Alternative>
void expect_all_described(std::index_sequence<Alternative...> /*all*/) {
  (expect_described<std::variant_alternative_t<Alternative, Op>>(), ...);
}

/// Of what is stored in 16 bits too: a step of each kind of layer that multiplies.
TEST(Operations, SayOfEachProductAsWhatItsFactorsAreStored) {
  Model images{.name = "m", .sample = {1, 4, 4}, .classes = 2, .layers = {}};
  images.add(ConvolutionLayer{.out_channels = 2, .window = {.size = 3}}, {0});
  images.add(FlattenLayer{}, {1});
  images.add(LinearLayer{2}, {2});
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const Workload workload =
        training_epoch(images, {.rows = 2, .batch = 2, .precision = precision});
    int products = 0;
    for (const Op& op : workload.steps.front().ops) {
      for (const OpProduct& product : products_of(workload, op)) {
        EXPECT_EQ(product.size.type, storage_of(precision)) << name(op);
        ++products;
      }
    }
    EXPECT_EQ(products, 5);
    const ProductSize size{.m = 2, .n = 3, .k = 4, .type = storage_of(precision)};
    const Workload one = product_workload(size, 1, 1);
    EXPECT_EQ(products_of(one, one.steps.front().ops.front()).front().size, size);
  }
}

TEST(Operations, DescribeEveryMember) {
  expect_all_described(std::make_index_sequence<std::variant_size_v<Op>>());
}

}  // namespace

}  // namespace crossover::test
