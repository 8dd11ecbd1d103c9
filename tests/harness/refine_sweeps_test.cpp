// SPDX-License-Identifier: Apache-2.0
// Simulated sweeps: how often the intervals of a refinement are right, and how many pairs they
// take. `harness_tests --gtest_filter=RefineSweeps.*` prints the table of
// docs/method/runs.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "run/refine/refine.h"
#include "run/refine/search.h"

namespace crossover::test {
namespace {

using bench::Interval;
using bench::PairTest;
using bench::RefineLimits;
using bench::Rung;
using bench::Search;
using bench::Winner;

constexpr std::size_t places = 161;  // as many as there are disc networks, nearly
constexpr std::size_t spacing = 16;
constexpr int repetitions = 9;  // of a rung, one side after the other
constexpr RefineLimits limits{};

// ---- what is simulated

double uniform(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11U) + 0.5) / 9007199254740992.0;
}

double uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * uniform(random);
}

/// How fast the machine is: wanders, swings, and is disturbed for a while now and then.
class Drift {
 public:
  Drift(std::mt19937_64& random, double size) : random_(random), size_(size) {}

  double next() {
    ++now_;
    wander_ = 0.999 * wander_ + 0.02 * (uniform(random_) - 0.5);
    if (uniform(random_) < 0.002) {
      disturbed_until_ = now_ + 100 * uniform(random_);
    }
    const double swing = 0.3 * std::sin(now_ / 60);
    return std::exp(size_ * (wander_ + swing + (now_ < disturbed_until_ ? 1 : 0)));
  }

 private:
  std::mt19937_64& random_;
  double size_;
  double now_ = 0, wander_ = 0, disturbed_until_ = 0;
};

/// Logarithm of first's time over second's at each place: second wins where it is above zero.
using Curve = std::vector<double>;

Curve curve(const std::function<double(double)>& log_ratio) {
  Curve values;
  for (std::size_t place = 0; place < places; ++place) {
    values.push_back(log_ratio(static_cast<double>(place)));
  }
  return values;
}

struct CurveShape {
  std::string name;
  std::function<Curve(std::mt19937_64&)> make;
  double drift = 0.1;
};

/// Somewhere between the first and the last rung.
double anywhere(std::mt19937_64& random) { return uniform(random, 1, places - 2); }

std::vector<CurveShape> curve_shapes() {
  const auto line = [](double least, double most) {
    return [=](std::mt19937_64& random) {
      const double change = anywhere(random);
      const double slope = uniform(random, least, most);
      return curve([=](double place) { return slope * (place - change); });
    };
  };
  const auto apart = [](double sign) {  // nearest, and near, at a place of its own
    return [=](std::mt19937_64& random) {
      const double nearest = anywhere(random);
      const double gap = uniform(random, 0.002, 0.1);
      const double slope = uniform(random, 0, 0.05);
      return curve([=](double place) { return sign * (gap + slope * std::abs(place - nearest)); });
    };
  };
  return {
      {"sharp", line(0.04, 0.1)},
      {"flat", line(0.001, 0.008)},
      {"jumping",  // each size is off its line by up to a tenth, so that the winner changes often
       [](std::mt19937_64& random) {
         const double change = anywhere(random);
         const double slope = uniform(random, 0.01, 0.05);
         const double jump = uniform(random, 0, 0.3);
         return curve([&](double place) {
           return slope * (place - change) + (place > change ? jump : -jump) +
                  uniform(random, -0.1, 0.1);
         });
       }},
      {"never", apart(-1)},
      {"always", apart(1)},
      {"three crossings",
       [](std::mt19937_64& random) {
         const double first = uniform(random, 4, 40);
         const double period = uniform(random, 68, 116);
         const double height = uniform(random, 0.1, 1);
         return curve([=](double place) {
           const double phase = std::clamp(place, 0.0, first + 1.25 * period) - first;
           return height * std::sin(2 * std::numbers::pi * phase / period);
         });
       }},
      {"drifting noise", line(0.01, 0.08), 1},
  };
}

// ---- how it is measured

class Machine {
 public:
  Machine(std::mt19937_64& random, const Curve& curve, double noise, double drift)
      : random_(random), curve_(curve), noise_(noise), drift_(random, drift) {}

  double first() { return measured(1); }
  double second(std::size_t place) { return measured(std::exp(-curve_[place])); }

  /// A rung's winner where its repetitions do not overlap, as bench guesses it.
  Winner guess(std::size_t place) {
    std::array<double, repetitions> one{};
    std::array<double, repetitions> two{};
    std::generate(one.begin(), one.end(), [&] { return first(); });
    std::generate(two.begin(), two.end(), [&] { return second(place); });
    return bench::apart(one, two);
  }

  PairTest pairs(std::size_t place, double error) {
    PairTest test(error, limits.most_pairs);
    run_pairs(
        test, random_, [] {}, [&] { return std::optional(first()); },
        [&] { return std::optional(second(place)); });
    return test;
  }

 private:
  /// With noise that is never below zero, and skewed.
  double measured(double seconds) {
    return seconds * drift_.next() * (1 - noise_ * std::log(uniform(random_)));
  }

  std::mt19937_64& random_;
  const Curve& curve_;
  double noise_;
  Drift drift_;
};

// ---- what is right

Winner truth(const Curve& curve, std::size_t place) {
  return curve[place] > 0 ? Winner::second : Winner::first;
}

/// Each end of each interval is won by the side that it says, and each change that the true winners
/// of neighbouring rungs show has an interval over it. Of changes that come in twos between rungs
/// nothing is promised; of three or more, one is enough.
bool is_right(const Curve& curve, const Search& found) {
  for (const Interval& interval : found.intervals) {
    if ((interval.low && truth(curve, *interval.low) != interval.below) ||
        (interval.high && truth(curve, *interval.high) != other(interval.below))) {
      return false;
    }
  }
  for (std::size_t rung = 0; rung + spacing < places; rung += spacing) {
    if (truth(curve, rung) == truth(curve, rung + spacing)) {
      continue;
    }
    bool covered = false;
    for (std::size_t place = rung; place < rung + spacing; ++place) {
      if (truth(curve, place) != truth(curve, place + 1)) {
        for (const Interval& interval : found.intervals) {
          covered |=
              interval.low.value_or(0) <= place && place < interval.high.value_or(places - 1);
        }
      }
    }
    if (!covered) {
      return false;
    }
  }
  return true;
}

struct Tally {
  int sweeps = 0, right = 0, complete = 0, grids = 0;
  double intervals = 0, width = 0, sizes = 0;
  double pairs = 0, ladder_pairs = 0;                ///< of all sweeps
  double pairs_of_compared = 0, pairs_of_grids = 0;  ///< where a grid was measured, too
};

void sweep(const CurveShape& shape, std::mt19937_64& random, bool with_grid, Tally& tally) {
  const Curve curve = shape.make(random);
  constexpr std::array noises{0.01, 0.03, 0.1};
  Machine machine(random, curve, noises[random() % noises.size()], shape.drift);
  std::vector<Rung> ladder;
  for (std::size_t place = 0; place < places; place += spacing) {
    ladder.push_back({.place = place, .winner = machine.guess(place)});
  }
  double pairs = 0;
  const Search found = find_changes(ladder, limits.most_sizes, [&](std::size_t place) {
    const PairTest test = machine.pairs(place, limits.error_of_size());
    pairs += static_cast<double>(test.pairs());
    tally.sizes += 1;
    return std::optional(test.winner());
  });
  const double all = pairs + static_cast<double>(repetitions * ladder.size());
  tally.sweeps += 1;
  tally.right += is_right(curve, found) ? 1 : 0;
  tally.complete += found.complete ? 1 : 0;
  tally.pairs += pairs;
  for (const Interval& interval : found.intervals) {
    tally.intervals += 1;
    tally.width +=
        static_cast<double>(interval.high.value_or(places - 1) - interval.low.value_or(0));
  }
  if (with_grid) {
    tally.grids += 1;
    tally.pairs_of_compared += all;
    for (std::size_t place = 0; place < places; ++place) {
      const PairTest test = machine.pairs(place, limits.error / places);
      tally.pairs_of_grids += static_cast<double>(test.pairs());
    }
  }
}

TEST(RefineSweeps, AreRightAndTakeAFewOfTheGridsPairs) {
  constexpr int sweeps = CROSSOVER_SANITIZED ? 700 : 10000;
  constexpr int per_grid = 10;       // one in so many is measured on the whole grid as well
  constexpr int enough_grids = 100;  // of a shape, for a ratio that another seed would give, too
  const std::vector<CurveShape> all = curve_shapes();
  std::vector<Tally> tallies(all.size());
  std::mt19937_64 random(20160824);
  for (int i = 0; i < sweeps; ++i) {
    const auto place = static_cast<std::size_t>(i) % all.size();
    sweep(all[place], random, i / static_cast<int>(all.size()) % per_grid == 0, tallies[place]);
  }
  double pairs = 0;
  double pairs_of_grids = 0;
  std::printf(
      "| shape | sweeps | right | complete | intervals | places wide | sizes | pairs | "
      "with the ladder | grid's pairs | ratio |\n");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Tally& tally = tallies[i];
    const double n = tally.sweeps;
    std::printf(
        "| %s | %d | %.1f %% | %.1f %% | %.2f | %.1f | %.1f | %.0f | %.0f | %.0f | %.3f |\n",
        all[i].name.c_str(), tally.sweeps, 100 * tally.right / n, 100 * tally.complete / n,
        tally.intervals / n, tally.width / std::max(1.0, tally.intervals), tally.sizes / n,
        tally.pairs / n, tally.pairs_of_compared / tally.grids, tally.pairs_of_grids / tally.grids,
        tally.pairs_of_compared / tally.pairs_of_grids);
    EXPECT_GE(tally.right, 0.98 * n) << all[i].name;
    if (tally.grids >= enough_grids) {
      EXPECT_LE(tally.pairs_of_compared, 0.25 * tally.pairs_of_grids) << all[i].name;
    }
    EXPECT_GE(tally.complete, 0.95 * n) << all[i].name;
    pairs += tally.pairs_of_compared;
    pairs_of_grids += tally.pairs_of_grids;
  }
  std::printf("all: %.3f of the grids' pairs\n", pairs / pairs_of_grids);
  if (tallies.front().grids >= enough_grids) {
    EXPECT_LE(pairs, 0.125 * pairs_of_grids);
  }
}

}  // namespace
}  // namespace crossover::test
