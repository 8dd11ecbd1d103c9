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
                         labelled);

class GpuOperation : public testing::TestWithParam<std::tuple<OperationCase, Execution>> {};

TEST_P(GpuOperation, MatchesTheReference) {
  const FoundBackend gpu = make_cuda_backend();
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
                         labelled);

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

/// The members of an operation that it describes, by where they lie.
template <class Operation>
class Described {
 public:
  explicit Described(const Operation& op) : op_(op) {}

  void reads(const char* /*name*/, const auto& operand) { see(operand); }
  void writes(const char* /*name*/, const auto& operand) { see(operand); }
  void value(const char* /*name*/, const auto& value) { see(value); }
  void newer_reads(const char* /*name*/, const Id& operand) { see(operand); }
  template <class Value>
  void newer_value(const char* /*name*/, const Value& value, const Value& /*before*/) {
    see(value);
  }
  [[nodiscard]] std::size_t count() const { return members_.size(); }

 private:
  /// Left out is what is computed for it.
  void see(const auto& member) {
    const auto at = reinterpret_cast<std::uintptr_t>(&member);
    const auto first = reinterpret_cast<std::uintptr_t>(&op_);
    if (first <= at && at < first + sizeof(Operation)) {
      members_.insert(at);
    }
  }

  const Operation& op_;
  std::set<std::uintptr_t> members_;
};

/// Of an operation of several kinds, by any of them; the kind is in its name.
template <class Operation>
void expect_described() {
  Operation op;
  Described described(op);
  std::size_t left_out = 0;
  if constexpr (requires { op.kind; }) {
    constexpr int most_kinds = 8;
    for (int kind = 0; kind < most_kinds; ++kind) {
      op.kind = static_cast<decltype(op.kind)>(kind);
      op.describe(described);
    }
    left_out = 1;
  } else if constexpr (requires { op.cell; }) {
    for (const Cell& cell : {Cell{LstmCell{}}, Cell{GruCell{}}}) {
      op.cell = cell;
      op.describe(described);
    }
    left_out = 1;
  } else {
    op.describe(described);
    left_out = std::is_same_v<Operation, Update> ? 1 : 0;  // the lists of its states lie elsewhere
  }
  EXPECT_EQ(described.count(), member_count<Operation>() - left_out) << name_of(op);
}

template <class Rule>
void expect_rule_described(std::size_t left_out = 0) {
  const Rule rule;
  Described described(rule);
  rule.describe(described);
  EXPECT_EQ(described.count(), member_count<Rule>() - left_out) << rule.name;
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
  expect_rule_described<SgdOptions>();
  expect_rule_described<MomentumOptions>();
  expect_rule_described<AdamWOptions>(1);  // weight_decay is for the one who makes the operation
}

}  // namespace

}  // namespace crossover::test
