// SPDX-License-Identifier: Apache-2.0
// Products measured by themselves: what is checked of their results, and what makes them cold.
#include "crossover/product.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>

#include "crossover/backend.h"
#include "crossover/cost.h"
#include "crossover/machine.h"
#include "crossover/memory.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "support.h"

namespace crossover::test {
namespace {

/// A product as a device has computed it.
struct Computed {
  ProductSize size;
  std::vector<double> a, b, c;

  explicit Computed(const ProductSize& of) : size(of) {
    const Workload workload = product_workload(size, 1, 1);
    a = numbers(size.m * size.k, 1);
    b = numbers(size.k * size.n, 2);
    const auto program = make_cpu_backend()->compile(workload, {.threads = 1});
    upload(*program, workload, find(workload, "a0"), a);
    upload(*program, workload, find(workload, "b0"), b);
    program->enqueue(0, 1);
    program->wait();
    c = download(*program, workload, find(workload, "c0"));
  }

  double& at(std::int64_t row, std::int64_t column) {
    return c[static_cast<std::size_t>(row * size.n + column)];
  }

  ProductVerification verify() const {
    return verify_product(size, a, b, c, rounding_of(Precision::f32));
  }
};

constexpr ProductSize small_product{.m = 33, .n = 65, .k = 127};
constexpr ProductSize large{.m = 513, .n = 301, .k = 257};

TEST(VerifyProduct, ComparesAllEntriesOfASmallOneAndSamplesALargeOne) {
  for (ProductSize size : {small_product, large}) {
    for (const auto& [transpose_a, transpose_b] :
         {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
      size.transpose_a = transpose_a;
      size.transpose_b = transpose_b;
      const ProductVerification result = Computed(size).verify();
      EXPECT_EQ(result.entries_of, size.m * size.n);
      if (size.m == large.m) {
        EXPECT_GE(result.entries, 500);  // some of 256 + 128 + 128 + 3 are the same
        EXPECT_LT(result.entries, 600);
      } else {
        EXPECT_EQ(result.entries, result.entries_of);
      }
      EXPECT_GT(result.error, 0);
      EXPECT_LE(result.error, result.tolerance);
    }
  }
}

TEST(VerifyProduct, FindsOneWrongEntryOfASmallOne) {
  for (const auto& [row, column] : {std::pair{0, 0}, {17, 31}, {32, 64}, {5, 64}}) {
    Computed product(small_product);
    product.at(row, column) += 0.01;
    const std::string entry = std::to_string(row) + ", " + std::to_string(column);
    const std::string what = message_of<Mismatch>([&] { product.verify(); });
    EXPECT_TRUE(what.starts_with("entry (" + entry + ") of the product")) << what;
  }
}

TEST(VerifyProduct, FindsAWrongCornerOfALargeOne) {
  for (const auto& [row, column] : {std::pair{0, 0}, {0, 300}, {512, 0}, {512, 300}}) {
    Computed product(large);
    product.at(row, column) += 0.01;
    EXPECT_THROW(product.verify(), Mismatch) << row << ", " << column;
  }
}

TEST(VerifyProduct, FindsEdgesOfALargeOneThatWereLeftOut) {
  Computed last_row(large);
  for (std::int64_t column = 1; column < large.n - 1; ++column) {  // not the corners
    last_row.at(large.m - 1, column) = 0;
  }
  EXPECT_THROW(last_row.verify(), Mismatch);
  Computed last_column(large);
  for (std::int64_t row = 1; row < large.m - 1; ++row) {
    last_column.at(row, large.n - 1) = 0;
  }
  EXPECT_THROW(last_column.verify(), Mismatch);
}

TEST(VerifyProduct, FindsATileOfALargeOneThatWasLeftOut) {
  Computed product(large);
  for (std::int64_t row = 128; row < 256; ++row) {
    for (std::int64_t column = 64; column < 128; ++column) {
      product.at(row, column) = 0;
    }
  }
  EXPECT_THROW(product.verify(), Mismatch);
}

TEST(VerifyProduct, FindsATermThatWasLeftOut) {
  Computed product(large);
  for (std::int64_t row = 0; row < large.m; ++row) {
    const auto a = product.a[static_cast<std::size_t>((row + 1) * large.k - 1)];
    for (std::int64_t column = 0; column < large.n; ++column) {
      product.at(row, column) -=
          a * product.b[static_cast<std::size_t>((large.k - 1) * large.n + column)];
    }
  }
  EXPECT_THROW(product.verify(), Mismatch);
}

TEST(VerifyProduct, FindsATransposeTooMany) {
  const Computed product({.m = 64, .n = 64, .k = 64});
  EXPECT_THROW(verify_product({.m = 64, .n = 64, .k = 64, .transpose_b = true}, product.a,
                              product.b, product.c, rounding_of(Precision::f32)),
               Mismatch);
}

TEST(VerifyProduct, TakesNotANumberForAnError) {
  Computed product(small_product);
  product.at(3, 4) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(product.verify(), Mismatch);
}

TEST(VerifyProduct, AllowsEachPrecisionItsOwnRounding) {
  Computed product(small_product);
  for (double& a : product.a) {
    a *= 1 + 1e-4;  // as if the device had read it with 13 bits less
  }
  EXPECT_THROW(product.verify(), Mismatch);
  EXPECT_NO_THROW(
      verify_product(small_product, product.a, product.b, product.c, rounding_of(Precision::tf32)));
}

TEST(VerifyProduct, RefusesMatricesOfOtherExtents) {
  const Computed product(small_product);
  EXPECT_THROW(verify_product(large, product.a, product.b, product.c, {}), std::invalid_argument);
}

TEST(ProductWorkload, MultipliesWarmOperandsAgainAndAgain) {
  const Workload workload = product_workload(small_product, 1, 5);
  EXPECT_NO_THROW(check(workload));
  EXPECT_EQ(workload.steps.size(), 1);
  EXPECT_EQ(workload.order.size(), 5);
  EXPECT_EQ(cost(workload).flops, 5 * 2.0 * 33 * 65 * 127);
}

TEST(ProductWorkload, OfColdOperandsExceedsTheCache) {
  constexpr std::int64_t cache = 1000000;
  const std::int64_t set =
      static_cast<std::int64_t>(cost(product_workload(small_product, 1, 1)).bytes);
  const std::int64_t sets = cold_sets(set, cache);
  const Workload workload = product_workload(small_product, sets, sets);
  EXPECT_NO_THROW(check(workload));
  std::set<Id> touched;
  std::int64_t bytes_touched = 0;
  for (const crossover::Run& run : workload.order) {  // one pass
    const Step& step = workload.steps[static_cast<std::size_t>(run.step)];
    const Operands used = operands(step.ops.front());
    for (const auto* ids : {&used.reads, &used.writes}) {
      for (const Id id : *ids) {
        EXPECT_TRUE(touched.insert(id).second) << "a tensor that the pass has touched before";
        bytes_touched += bytes(workload[id]);
      }
    }
  }
  EXPECT_GE(bytes_touched, 4 * cache);
  EXPECT_LT(bytes_touched, 4 * cache + set);
}

TEST(ProductWorkload, KeepsAllOperandSetsApartInMemory) {
  const Workload workload = product_workload(small_product, 7, 7);
  const MemoryPlan plan = plan_memory(workload);
  const std::set<std::int64_t> places(plan.offset.begin(), plan.offset.end());
  EXPECT_EQ(places.size(), 21);
  EXPECT_FALSE(places.contains(-1));
  EXPECT_GE(plan.bytes, cost(workload).bytes);
}

TEST(ProductWorkload, ComputesEverySet) {
  const Workload workload = product_workload(small_product, 3, 3);
  const auto program = make_cpu_backend()->compile(workload, {.threads = 2});
  for (Id id = 0; id < static_cast<Id>(workload.tensors.size()); ++id) {
    upload(*program, workload, id, numbers(elements(workload[id].shape), id));
  }
  program->enqueue(0, 3);
  program->wait();
  for (int set = 0; set < 3; ++set) {
    const auto values = [&](const char* name) {
      return download(*program, workload, find(workload, name + std::to_string(set)));
    };
    EXPECT_NO_THROW(verify_product(small_product, values("a"), values("b"), values("c"),
                                   rounding_of(Precision::f32)));
  }
}

/// Each term is less than half the last place of the weight, and so is the sum of some thousand.
TEST(LinearGrad, AddsUpManySmallTermsBeforeItChangesTheWeights) {
  constexpr std::int64_t rows = 65536;
  constexpr double term = 1e-11;
  for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{3, 1}, {1, 3}, {24, 17}}) {
    OneOp one;
    const Id x = one.tensor("x", {rows, in});
    const Id w = one.tensor("w", {out, in}, Role::parameter);
    const Id dy = one.tensor("dy", {rows, out});
    const Id dw = one.tensor("dw", {out, in}, Role::gradient);
    const Workload workload =
        one.operation(LinearGrad{.x = x, .w = w, .dy = dy, .dw = dw, .accumulate = true}).workload;
    const auto program = make_cpu_backend()->compile(workload, {.threads = 1});
    upload(*program, workload, x, std::vector<double>(rows * in, 1.0));
    upload(*program, workload, dy, std::vector<double>(rows * out, term));
    upload(*program, workload, dw, std::vector<double>(in * out, 1.0));
    program->enqueue(0, 1);
    program->wait();
    for (const double changed : download(*program, workload, dw)) {
      EXPECT_NEAR(changed, 1 + rows * term, 1e-7);
    }
  }
}

TEST(ColdSets, AreTwoAtLeast) {
  EXPECT_EQ(cold_sets(100, 10), 2);
  EXPECT_EQ(cold_sets(100, 0), 2);
  EXPECT_EQ(cold_sets(100, 1000), 40);
}

}  // namespace
}  // namespace crossover::test
