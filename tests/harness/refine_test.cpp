// SPDX-License-Identifier: Apache-2.0
// The sequential test of pairs, and the search for the places where the winner changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "run/refine/search.h"

namespace crossover::bench {

std::ostream& operator<<(std::ostream& to, const Interval& interval) {
  const auto end = [](const std::optional<std::size_t>& place) {
    return place ? std::to_string(*place) : "none";
  };
  return to << "below " << static_cast<int>(interval.below) << ", " << end(interval.low) << " to "
            << end(interval.high);
}

}  // namespace crossover::bench

namespace crossover::test {
namespace {

using bench::find_changes;
using bench::Interval;
using bench::log_evidence;
using bench::Measurement;
using bench::PairTest;
using bench::Rung;
using bench::Search;
using bench::Winner;

constexpr Winner a = Winner::first;
constexpr Winner b = Winner::second;
constexpr Winner open = Winner::neither;

// ---- the test of pairs

TEST(PairTest, EvidenceIsThatOfTheBinomialDistribution) {
  std::vector<long double> row{1};  // C(n, s) / 2^n by Pascal's triangle
  for (int n = 1; n <= 600; ++n) {
    std::vector<long double> next(row.size() + 1, 0);
    for (std::size_t s = 0; s < row.size(); ++s) {
      next[s] += row[s] / 2;
      next[s + 1] += row[s] / 2;
    }
    row = next;
    for (int s = 0; s <= n; s += 1 + n / 20) {
      const auto expected =
          static_cast<double>(std::log((n + 1) * row[static_cast<std::size_t>(s)]));
      EXPECT_NEAR(log_evidence(n, s), expected, 1e-10) << n << " " << s;
    }
  }
  EXPECT_NEAR(log_evidence(0, 0), 0, 1e-15);
}

TEST(PairTest, EvidenceOfManyPairsIsNeitherZeroNorInfinite) {
  // Stirling's series, to 1/n^3: log C(2m, m) / 4^m = -log(pi m) / 2 - 1/(8m) + 1/(192 m^3).
  for (const double m : {1e4, 1e6, 1e8}) {
    const double pi = std::acos(-1.0);
    const double expected =
        std::log(2 * m + 1) - std::log(pi * m) / 2 - 1 / (8 * m) + 1 / (192 * m * m * m);
    const auto n = static_cast<std::int64_t>(2 * m);
    EXPECT_NEAR(log_evidence(n, n / 2), expected, 1e-16 * m * 40);
    EXPECT_NEAR(log_evidence(n, n), std::log(2 * m + 1) - 2 * m * std::log(2.0), 1e-6);
  }
}

PairTest after(int won_by_first, int won_by_second, double error = 0.01, std::int64_t most = 1000) {
  PairTest test(error, most);
  for (int i = 0; i < won_by_first; ++i) {
    test.add(1, 2);
  }
  for (int i = 0; i < won_by_second; ++i) {
    test.add(2, 1);
  }
  return test;
}

TEST(PairTest, IsSureFromTheFirstPairsThatTellEnough) {
  EXPECT_EQ(after(9, 0).winner(), open);   // 10 / 512
  EXPECT_EQ(after(10, 0).winner(), open);  // 11 / 1024 = 0.0107
  EXPECT_EQ(after(11, 0).winner(), a);     // 12 / 2048 = 0.0059
  EXPECT_EQ(after(0, 11).winner(), b);
  EXPECT_EQ(after(11, 3).winner(), open);
  EXPECT_TRUE(after(10, 0).is_open());
  EXPECT_FALSE(after(11, 0).is_open());
  EXPECT_EQ(after(7, 3).won_by_first(), 7);
  EXPECT_EQ(after(7, 3).pairs(), 10);
}

TEST(PairTest, TiesCountForNeitherAndEnd) {
  PairTest test(0.01, 30);
  for (int i = 0; i < 29; ++i) {
    test.add(1, 1);
  }
  EXPECT_EQ(test.pairs(), 0);
  EXPECT_EQ(test.ties(), 29);
  EXPECT_EQ(test.winner(), open);
  EXPECT_FALSE(test.is_open());  // one pair is left, which can't tell
}

TEST(PairTest, EndsWhereNoSideCanBecomeSureAnyMore) {
  PairTest test(0.01, 100);
  int pairs = 0;
  for (; test.is_open(); ++pairs) {
    test.add(pairs % 2 == 0 ? 1 : 2, pairs % 2 == 0 ? 2 : 1);
  }
  EXPECT_EQ(test.winner(), open);
  EXPECT_LT(pairs, 100);
  // One side winning all that are left is not enough, but was before the last two.
  EXPECT_EQ(after((pairs + 1) / 2 + 100 - pairs, pairs / 2, 0.01).winner(), open);
  EXPECT_NE(after(pairs / 2 - 1 + 102 - pairs, pairs / 2 - 1, 0.01).winner(), open);
}

// Robbins: of equal sides the test is ever wrong in at most `error` of the cases, looked at after
// each pair.
TEST(PairTest, IsSeldomSureOfEqualSides) {
  std::mt19937_64 random(1);
  constexpr double error = 0.05;
  constexpr int tests = CROSSOVER_SANITIZED ? 400 : 4000;
  int sure = 0;
  for (int i = 0; i < tests; ++i) {
    PairTest test(error, 1000);
    while (test.is_open()) {
      test.add(random() % 2 == 0 ? 1 : 2, 1.5);
    }
    sure += test.winner() != open ? 1 : 0;
  }
  EXPECT_LT(sure, tests * error);
  EXPECT_GT(sure, 0);  // it is a test of something
}

TEST(PairTest, ChanceSaysWhichSideOfAPairBegins) {
  std::string order;
  PairTest test(0.01, 1000);
  std::mt19937_64 random(7);
  EXPECT_TRUE(run_pairs(
      test, random, [&] { order += '.'; },
      [&] {
        order += 'a';
        return std::optional(1.0);
      },
      [&] {
        order += 'b';
        return std::optional(2.0);
      }));
  EXPECT_EQ(order, ".ba.ab.ab.ab.ba.ab.ba.ab.ba.ab.ab");
  EXPECT_EQ(test.winner(), a);
}

TEST(PairTest, NeitherDriftNorAPeriodHelpsASide) {
  std::mt19937_64 random(7);
  double drifting = 1;
  int calls = 0;
  const auto slower_and_slower = [&] { return std::optional(drifting *= 1.01); };
  const auto now_and_then = [&] { return std::optional(calls++ % 4 % 3 == 0 ? 1.0 : 2.0); };
  for (const Measurement& equal : {Measurement(slower_and_slower), Measurement(now_and_then)}) {
    PairTest test(0.01, 200);
    EXPECT_TRUE(run_pairs(
        test, random, [] {}, equal, equal));
    EXPECT_EQ(test.winner(), open) << test.won_by_first() << " of " << test.pairs();
  }
}

TEST(PairTest, EndsWhereASideCanNotBeMeasured) {
  PairTest test(0.01, 100);
  int left = 5;
  const auto some = [&]() -> std::optional<double> {
    return left-- > 0 ? std::optional(1.0) : std::nullopt;
  };
  std::mt19937_64 random(7);
  EXPECT_FALSE(run_pairs(
      test, random, [] {}, some, some));
  EXPECT_EQ(test.pairs() + test.ties(), 2);
}

// ---- the search

/// A grid on which each size's winner is known, and what was tried of it.
struct Grid {
  std::vector<Winner> winners;
  std::vector<std::size_t> rungs;
  std::vector<std::size_t> tried = {};

  [[nodiscard]] std::vector<Rung> ladder() const {
    std::vector<Rung> ladder;
    for (const std::size_t place : rungs) {
      ladder.push_back({.place = place, .winner = winners[place]});
    }
    return ladder;
  }

  Search search(std::size_t most_sizes = 1000) { return search(ladder(), most_sizes); }
  Search search(const std::vector<Rung>& ladder, std::size_t most_sizes = 1000) {
    return find_changes(ladder, most_sizes, [&](std::size_t place) {
      tried.push_back(place);
      return std::optional(winners.at(place));
    });
  }
};

/// "AAAoBBB"; a rung at each place that `every` divides.
Grid grid(const std::string& text, std::size_t every) {
  Grid made;
  for (std::size_t place = 0; place < text.size(); ++place) {
    made.winners.push_back(text[place] == 'A' ? a : text[place] == 'B' ? b : open);
    if (place % every == 0) {
      made.rungs.push_back(place);
    }
  }
  return made;
}

std::string repeated(int count, char letter) {
  return std::string(static_cast<std::size_t>(count), letter);
}

using Intervals = std::vector<Interval>;

TEST(RefineSearch, HalvesTheSpaceBetweenTwoRungs) {
  for (int change = 1; change <= 32; ++change) {
    Grid made = grid(repeated(change, 'A') + repeated(33 - change, 'B'), 16);
    const Search found = made.search();
    const auto low = static_cast<std::size_t>(change) - 1;
    // Beside a rung it lies between the sizes next to the rung, which is not tried itself.
    Interval expected{.below = a, .low = low, .high = low + 1};
    if (low % 16 == 0) {
      expected.low = low > 0 ? std::optional(low - 1) : std::nullopt;
    }
    if ((low + 1) % 16 == 0) {
      expected.high = low + 1 < 32 ? std::optional(low + 2) : std::nullopt;
    }
    EXPECT_EQ(found.intervals, Intervals{expected}) << change;
    EXPECT_TRUE(found.complete);
    EXPECT_LE(made.tried.size(), 6U) << change;
  }
}

TEST(RefineSearch, TriesNothingWhereOneSideWinsEverywhere) {
  Grid made = grid(repeated(33, 'B'), 16);
  EXPECT_EQ(made.search().intervals, Intervals{});
  EXPECT_TRUE(made.tried.empty());
}

TEST(RefineSearch, WhatLiesOpenBelongsToTheInterval) {
  Grid made = grid("AAAAAAAoooooBBBBBBBBBBBBBBBBBBBBB", 16);
  EXPECT_EQ(made.search().intervals, (Intervals{{.below = a, .low = 6, .high = 12}}));
  EXPECT_LE(made.tried.size(), 8U);
}

TEST(RefineSearch, FindsEachOfSeveralChanges) {
  Grid made =
      grid(repeated(20, 'A') + repeated(33, 'B') + repeated(36, 'A') + repeated(40, 'B'), 16);
  EXPECT_EQ(made.search().intervals, (Intervals{{.below = a, .low = 19, .high = 20},
                                                {.below = b, .low = 52, .high = 53},
                                                {.below = a, .low = 88, .high = 89}}));
}

TEST(RefineSearch, ARungWithoutAWinnerIsTriedBesideIt) {
  Grid made = grid("AAAAAAAAoBBBBBBBB", 8);
  EXPECT_EQ(made.search().intervals, (Intervals{{.below = a, .low = 7, .high = 9}}));
}

TEST(RefineSearch, OpenSizesAtAnEndMakeAnIntervalWithOneEnd) {
  Grid below = grid("ooooooooooBBBBBBBBBBBBBBBBBBBBBBB", 8);
  EXPECT_EQ(below.search().intervals, (Intervals{{.below = a, .low = std::nullopt, .high = 10}}));
  Grid above = grid("BBBBBBBBBBBBooooooooooooooooooooo", 8);
  EXPECT_EQ(above.search().intervals, (Intervals{{.below = b, .low = 11, .high = std::nullopt}}));
  Grid equal = grid(repeated(33, 'o'), 8);
  EXPECT_EQ(equal.search().intervals, Intervals{});
}

TEST(RefineSearch, NothingIsTriedBetweenRungsAtWhichBothRunOneProgram) {
  Grid made = grid(repeated(17, 'o') + repeated(16, 'B'), 8);
  std::vector<Rung> ladder = made.ladder();
  for (const std::size_t rung : {0, 1, 2}) {
    ladder[rung].is_same = true;
  }
  EXPECT_EQ(made.search(ladder).intervals,
            (Intervals{{.below = a, .low = std::nullopt, .high = 17}}));
  EXPECT_GT(*std::ranges::min_element(made.tried), 16U);
}

TEST(RefineSearch, AWrongGuessIsFoundOut) {
  Grid made = grid(repeated(65, 'A'), 16);
  std::vector<Rung> ladder = made.ladder();
  ladder[2].winner = b;
  EXPECT_EQ(made.search(ladder).intervals, Intervals{});

  made = grid(repeated(35, 'A') + repeated(30, 'B'), 16);  // one rung on which the guess is late
  ladder = made.ladder();
  ladder[3].winner = a;
  EXPECT_EQ(made.search(ladder).intervals, (Intervals{{.below = a, .low = 34, .high = 35}}));

  ladder = made.ladder();  // and early
  ladder[2].winner = b;
  ladder[1].winner = b;
  made.tried.clear();
  EXPECT_EQ(made.search(ladder).intervals, (Intervals{{.below = a, .low = 34, .high = 35}}));
}

TEST(RefineSearch, EndsAtTheMostSizesWithWhatIsSure) {
  Grid made = grid(repeated(20, 'A') + repeated(45, 'B'), 64);
  const Search found = made.search(3);  // 32: B, 16: A, 24: B
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.intervals, (Intervals{{.below = a, .low = 16, .high = 24}}));
  EXPECT_EQ(made.tried.size(), 3U);

  Grid none = grid(repeated(20, 'A') + repeated(45, 'B'), 64);
  EXPECT_EQ(none.search(0).intervals,
            (Intervals{{.below = a, .low = std::nullopt, .high = std::nullopt}}));
}

TEST(RefineSearch, LeavesSizesForTheLastChange) {
  Grid made = grid(repeated(20, 'A') + repeated(38, 'B') + repeated(47, 'A'), 13);
  const Search found = made.search(6);
  ASSERT_EQ(found.intervals.size(), 2U);
  EXPECT_TRUE(found.intervals[1].low && found.intervals[1].high) << found.intervals[1];
}

TEST(RefineSearch, EndsWhereNothingCanBeTriedAnyMore) {
  const Grid made = grid(repeated(20, 'A') + repeated(45, 'B'), 64);
  int calls = 0;
  const Search found = find_changes(made.ladder(), 100, [&](std::size_t) {
    ++calls;
    return std::optional<Winner>();
  });
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(found.complete);
}

TEST(RefineSearch, TriesNoRungAndNoPlaceTwice) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    while (text.size() < 65) {
      text += repeated(1 + static_cast<int>(random() % 20), "ABo"[random() % 3]);
    }
    Grid made = grid(text.substr(0, 65), 1 + random() % 16);
    if (made.rungs.back() != 64) {
      made.rungs.push_back(64);
    }
    const Search found = made.search();
    std::vector<std::size_t> tried = made.tried;
    std::ranges::sort(tried);
    ASSERT_EQ(std::ranges::adjacent_find(tried), tried.end()) << text;
    for (const std::size_t rung : made.rungs) {
      ASSERT_FALSE(std::ranges::binary_search(tried, rung)) << text;
    }
    for (const Interval& interval : found.intervals) {
      if (interval.low) {
        ASSERT_EQ(made.winners[*interval.low], interval.below) << text;
      }
      if (interval.high) {
        ASSERT_EQ(made.winners[*interval.high], other(interval.below)) << text;
      }
      if (interval.low && interval.high) {
        ASSERT_LT(*interval.low, *interval.high) << text;
      }
    }
    ASSERT_TRUE(found.complete);
  }
}

}  // namespace
}  // namespace crossover::test
