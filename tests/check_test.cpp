// SPDX-License-Identifier: Apache-2.0
// What check() refuses, and what it says.
#include <gtest/gtest.h>

#include <stdexcept>

#include "crossover/networks.h"
#include "support.h"

namespace crossover::test {
namespace {

TEST(Check, NamesOperationAndTensor) {
  OneOp one;
  const Id x = one.tensor("x", {2, 3});
  const Id w = one.tensor("w", {5, 4}, Role::parameter);
  one.operation(Linear{.x = x, .w = w, .bias = none, .y = one.tensor("y", {2, 5})});
  try {
    check(one.workload);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "Linear: 'x' [2, 3] does not fit the weights [5, 4]");
  }
}

TEST(Check, NamesTheFactorThatDoesNotFit) {
  const auto verdict = [](const Shape& a, const Shape& b, const Shape& c) {
    OneOp one;
    const Id left = one.tensor("a", a);
    const Id right = one.tensor("b", b);
    one.operation(Gemm{.a = left, .b = right, .c = one.tensor("c", c), .transpose_b = true});
    try {
      check(one.workload);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(verdict({5, 7}, {3, 7}, {5, 3}), "");
  EXPECT_EQ(verdict({5, 7}, {3, 6}, {5, 3}), "Gemm: 'a' as [5, 7] does not fit 'b' as [6, 3]");
  EXPECT_EQ(verdict({5, 7}, {3, 7}, {3, 5}), "Gemm: tensor 'c' is [3, 5], not [5, 3]");
  EXPECT_EQ(verdict({5, 7, 1}, {3, 7}, {5, 3}), "Gemm: 'a' [5, 7, 1] is not a matrix");
}

/// What check() says of the workload, for a precision.
std::string complaint(const Workload& workload, Precision precision) {
  try {
    check(workload, precision);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Check, TakesTheTypesThatMeanSomething) {
  const auto linear = [](Type x, Type w, Type bias, Type y, Precision precision) {
    OneOp one;
    const Linear op{.x = one.tensor("x", {2, 3}, Role::activation, x),
                    .w = one.tensor("w", {5, 3}, Role::parameter, w),
                    .bias = one.tensor("bias", {5}, Role::parameter, bias),
                    .y = one.tensor("y", {2, 5}, Role::activation, y)};
    return complaint(one.operation(op).workload, precision);
  };
  constexpr auto f32 = Type::f32;
  for (const auto& [type, precision] :
       {std::pair{Type::bf16, Precision::bf16}, std::pair{Type::f16, Precision::f16}}) {
    EXPECT_EQ(linear(type, type, type, type, precision), "");
    EXPECT_EQ(linear(type, type, f32, f32, precision), "");
    EXPECT_NE(linear(type, f32, type, type, precision), "");
    EXPECT_NE(linear(f32, type, f32, f32, precision), "");
    EXPECT_NE(linear(type, type, f32, type, precision), "");
    EXPECT_NE(linear(type, type, type, f32, precision), "");
    EXPECT_NE(linear(f32, f32, type, type, precision), "");
  }
  EXPECT_EQ(linear(f32, f32, f32, f32, Precision::tf32), "");
  EXPECT_EQ(linear(Type::i32, Type::i32, f32, f32, Precision::f32),
            "Linear: tensor 'x' is stored as i32, which nothing calculates with");
  EXPECT_EQ(linear(Type::bf16, f32, f32, f32, Precision::bf16),
            "Linear: tensor 'w' is stored as f32, not bf16");
  EXPECT_EQ(linear(f32, f32, f32, f32, Precision::bf16),
            "a workload that stores f32 can't be compiled for bf16");
  EXPECT_EQ(linear(Type::f16, Type::f16, f32, f32, Precision::f32),
            "a workload that stores f16 can't be compiled for f32");
}

TEST(Check, CastsFromAndToF32Only) {
  const auto cast = [](Type from, Type to) {
    OneOp one;
    const Id x = one.tensor("x", {3}, Role::activation, from);
    const Id y = one.tensor("y", {3}, Role::activation, to);
    one.operation(Cast{.x = x, .y = y});
    try {
      check(one.workload);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(cast(Type::f32, Type::bf16), "");
  EXPECT_EQ(cast(Type::f16, Type::f32), "");
  EXPECT_EQ(cast(Type::f16, Type::bf16),
            "Cast: from 'x' to 'y', from f16 to bf16: one of two different types must be f32");
  EXPECT_NE(cast(Type::f32, Type::f32), "");
  EXPECT_NE(cast(Type::i32, Type::bf16), "");
}

TEST(Check, KeepsWhatIsTrainedInF32) {
  const auto sgd = [](Type parameter, Type gradient) {
    OneOp one;
    const Id w = one.tensor("w", {3}, Role::parameter, parameter);
    const Id g = one.tensor("g", {3}, Role::gradient, gradient);
    return complaint(one.operation(Sgd{{w}, {g}, 0.1}).workload, Precision::bf16);
  };
  EXPECT_EQ(sgd(Type::bf16, Type::f32), "Sgd: tensor 'w' is stored as bf16, not f32");
  EXPECT_EQ(sgd(Type::f32, Type::bf16), "");  // as a convolution's gradient is on a GPU
}

}  // namespace
}  // namespace crossover::test
