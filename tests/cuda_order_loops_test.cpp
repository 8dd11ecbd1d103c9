// SPDX-License-Identifier: Apache-2.0
// Orders of runs as loops. Needs no CUDA.
#include <gtest/gtest.h>

#include <string>

#include "../src/cuda/planning/run_mode.h"

namespace crossover::test {
namespace {

using cuda::find_loops;
using cuda::OrderLoop;

/// An order whose steps are letters.
std::vector<crossover::Run> order_of(const std::string& steps) {
  std::vector<crossover::Run> order;
  for (const char step : steps) {
    order.push_back({.step = step - 'a', .first_row = static_cast<std::int64_t>(order.size())});
  }
  return order;
}

/// "3(ab) 1(c)": how often what.
std::string loops_of(const std::string& steps) {
  std::string words;
  std::int64_t end = 0;
  for (const OrderLoop& loop : find_loops(order_of(steps))) {
    EXPECT_EQ(loop.first, end);
    end = loop.end();
    words +=
        (words.empty() ? "" : " ") + std::to_string(loop.times) + "(" +
        steps.substr(static_cast<std::size_t>(loop.first), static_cast<std::size_t>(loop.cycle)) +
        ")";
  }
  EXPECT_EQ(end, static_cast<std::int64_t>(steps.size()));
  return words;
}

TEST(CudaOrderLoops, CoverTheOrder) {
  EXPECT_EQ(loops_of(""), "");
  EXPECT_EQ(loops_of("a"), "1(a)");
  EXPECT_EQ(loops_of("ab"), "1(ab)");
  EXPECT_EQ(loops_of("aaaa"), "4(a)");
  EXPECT_EQ(loops_of("aaaab"), "4(a) 1(b)");
  EXPECT_EQ(loops_of("ababab"), "3(ab)");
  EXPECT_EQ(loops_of("abababc"), "3(ab) 1(c)");
  EXPECT_EQ(loops_of("aabaabaabac"), "3(aab) 1(ac)");
  EXPECT_EQ(loops_of("abcdd"), "1(abc) 2(d)");
}

TEST(CudaOrderLoops, OfALongEpochAreFewAndFoundFast) {
  const std::string long_epoch(100'000, 'a');
  EXPECT_EQ(find_loops(order_of(long_epoch + "b")).size(), 2);
  std::string updates;  // gradients of a hundred batches added up: beyond the longest cycle
  for (int update = 0; update < 10; ++update) {
    updates += std::string(99, 'a') + "b";
  }
  EXPECT_EQ(find_loops(order_of(updates)).size(), 20);
}

}  // namespace
}  // namespace crossover::test
