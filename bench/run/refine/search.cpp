// SPDX-License-Identifier: Apache-2.0
#include "run/refine/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace crossover::bench {

// ---- Two sides at one size

Winner other(Winner winner) {
  return winner == Winner::first    ? Winner::second
         : winner == Winner::second ? Winner::first
                                    : Winner::neither;
}

double log_evidence(std::int64_t pairs, std::int64_t won) {
  // Asked twice for each pair: those of small numbers are kept.
  static const auto kept = [] {
    std::array<double, 4096> logs{};
    for (std::size_t n = 0; n < logs.size(); ++n) {
      logs[n] = std::lgamma(static_cast<double>(n) + 1);
    }
    return logs;
  }();
  const auto log_factorial = [](std::int64_t n) {
    const auto place = static_cast<std::size_t>(n);
    return place < kept.size() ? kept[place] : std::lgamma(static_cast<double>(n) + 1);
  };
  const auto n = static_cast<double>(pairs);
  return std::log(n + 1) + log_factorial(pairs) - log_factorial(won) - log_factorial(pairs - won) -
         n * std::log(2.0);
}

void PairTest::add(double first_seconds, double second_seconds) {
  ++(first_seconds < second_seconds ? first_ : second_seconds < first_seconds ? second_ : ties_);
}

bool PairTest::is_sure(std::int64_t pairs, std::int64_t won) const {
  return log_evidence(pairs, won) < std::log(error_);
}

Winner PairTest::winner() const {
  return !is_sure(pairs(), first_) ? Winner::neither
         : first_ > second_        ? Winner::first
                                   : Winner::second;
}

bool PairTest::is_open() const {
  const std::int64_t left = most_pairs_ - pairs() - ties_;
  // Each pair more that the leading side wins makes it surer: all of them tell what can be reached.
  return left > 0 && winner() == Winner::neither &&
         is_sure(pairs() + left, std::max(first_, second_) + left);
}

bool run_pairs(PairTest& test, std::mt19937_64& order, const std::function<void()>& begin,
               const Measurement& first, const Measurement& second) {
  while (test.is_open()) {
    const bool first_begins = order() % 2 == 0;
    begin();
    const std::optional<double> one = first_begins ? first() : second();
    const std::optional<double> two = !one ? one : first_begins ? second() : first();
    if (!one || !two) {
      return false;
    }
    test.add(first_begins ? *one : *two, first_begins ? *two : *one);
  }
  return true;
}

Winner apart(std::span<const double> first_seconds, std::span<const double> second_seconds) {
  if (first_seconds.empty() || second_seconds.empty()) {
    return Winner::neither;
  }
  const auto [first_least, first_most] = std::ranges::minmax(first_seconds);
  const auto [second_least, second_most] = std::ranges::minmax(second_seconds);
  return first_most < second_least   ? Winner::first
         : second_most < first_least ? Winner::second
                                     : Winner::neither;
}

// ---- Many sizes

namespace {

/// No more sizes can be tried, or no more may be.
struct Exhausted {};

class Searcher {
 public:
  Searcher(const std::vector<Rung>& ladder, std::size_t most_sizes, const TrySize& try_size)
      : try_size_(try_size), sizes_left_(most_sizes) {
    for (const Rung& rung : ladder) {
      rungs_.insert(rung.place);
    }
  }

  /// First what the sure rungs show, from the top: who wins at all larger sizes is asked most. Then
  /// what lies beyond and between them.
  Search run(const std::vector<Rung>& ladder) {
    std::ranges::copy_if(ladder, std::back_inserter(known_),
                         [](const Rung& rung) { return rung.winner != Winner::neither; });
    bool ignored = true;
    const std::vector<Change> sure = changes();
    for (std::size_t left = sure.size(); left > 0; --left) {
      allowance_ = sizes_left_ / left;  // so that the last has as many as the first
      look_at(sure[left - 1], ignored);
    }
    allowance_ = sizes_left_;
    Search found{.intervals = {}, .complete = climb(ladder)};
    std::vector<Change> all = changes();
    std::ranges::reverse(all);
    for (const Change& change : all) {
      const std::optional<Interval> interval = look_at(change, found.complete);
      const auto& others = found.intervals;
      if (interval && std::ranges::find(others, *interval) == others.end()) {
        found.intervals.push_back(*interval);
      }
    }
    std::ranges::reverse(found.intervals);
    return found;
  }

 private:
  /// Two decided rungs with different winners and none decided between them; or a decided rung and
  /// the end of the ladder, where that is undecided.
  struct Change {
    std::size_t from = 0, to = 0;  ///< in known_
  };

  /// Of the interval that is looked for.
  struct End {
    std::size_t known = 0;  ///< the rung that it comes from
    std::size_t place = 0;
    bool is_none = false;  ///< no sure win was found up to the end of the ladder
  };

  Winner tried(std::size_t place) {
    if (const auto at = tried_.find(place); at != tried_.end()) {
      return at->second;
    }
    if (sizes_left_ == 0 || allowance_ == 0) {
      throw Exhausted();
    }
    const std::optional<Winner> winner = try_size_(place);
    if (!winner) {
      sizes_left_ = 0;
      throw Exhausted();
    }
    --sizes_left_;
    --allowance_;
    return tried_[place] = *winner;
  }

  [[nodiscard]] bool is_sure(std::size_t place, Winner winner) const {
    const auto at = tried_.find(place);
    return at != tried_.end() && at->second == winner;
  }

  /// Tries the place beside each rung without a winner, but where the winner changes from the rung
  /// before it to the one behind it: all of that is looked at anyway. False where it could not.
  bool climb(const std::vector<Rung>& ladder) {
    const std::vector<Rung> sure = std::exchange(known_, {});
    bool is_complete = true;
    for (std::size_t i = ladder.size(); i-- > 0;) {
      if (ladder[i].winner != Winner::neither) {
        known_.push_back(ladder[i]);
        continue;
      }
      const bool is_last = i + 1 == ladder.size();
      const std::size_t beside = is_last ? ladder[i].place - 1 : ladder[i].place + 1;
      const auto behind = std::ranges::find_if(
          sure, [&](const Rung& rung) { return rung.place > ladder[i].place; });
      const bool is_inside =
          behind != sure.begin() && behind != sure.end() && behind->winner != (behind - 1)->winner;
      const Rung& next = ladder[is_last ? std::max<std::size_t>(i, 1) - 1 : i + 1];
      const bool is_same = ladder[i].is_same && next.is_same;
      if (is_inside || is_same || ladder.size() == 1 || rungs_.contains(beside)) {
        continue;
      }
      try {
        known_.push_back({.place = beside, .winner = tried(beside)});
        if (ladder[i].is_same) {  // where the sides part, though nothing beyond it is tried
          known_.insert(known_.end() - (is_last ? 1 : 0), ladder[i]);
        }
      } catch (const Exhausted&) {
        is_complete = false;
      }
    }
    std::ranges::reverse(known_);
    return is_complete;
  }

  [[nodiscard]] std::vector<Change> changes() const {
    std::vector<Change> found;
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (known_[i].winner == Winner::neither) {
        continue;
      }
      if (last ? known_[*last].winner != known_[i].winner : i > 0) {
        found.push_back({.from = last.value_or(0), .to = i});
      }
      last = i;
    }
    if (last && *last + 1 < known_.size()) {
      found.push_back({.from = *last, .to = known_.size() - 1});
    }
    return found;
  }

  /// None where there is no change after all.
  std::optional<Interval> look_at(const Change& change, bool& complete) {
    const Winner above = known_[change.to].winner != Winner::neither
                             ? known_[change.to].winner
                             : other(known_[change.from].winner);
    const Winner below = other(above);
    End low{.known = change.from, .place = known_[change.from].place};
    End high{.known = change.to, .place = known_[change.to].place};
    try {
      if (!settle(low, high, below)) {
        return std::nullopt;
      }
    } catch (const Exhausted&) {
      complete = false;
    }
    const auto sure_end = [&](std::size_t place, Winner winner) {
      return is_sure(place, winner) ? std::optional(place) : std::nullopt;
    };
    return Interval{
        .below = below, .low = sure_end(low.place, below), .high = sure_end(high.place, above)};
  }

  /// Moves both ends to sure wins as near to each other as can be. False where there is no change.
  bool settle(End& low, End& high, Winner below) {
    for (;;) {
      narrow(low, high, below);
      const bool is_low_open = !low.is_none && !is_sure(low.place, below);
      const bool is_high_open = !high.is_none && !is_sure(high.place, other(below));
      if (!is_low_open && !is_high_open) {
        return true;
      }
      if (is_low_open ? !reach(low, high, below, -1) : !reach(high, low, other(below), 1)) {
        return false;
      }
    }
  }

  /// Halves the space between the ends until nothing is left to try: between the last sure win of
  /// `below`, what lies open, and the first sure win of the other.
  void narrow(End& low, End& high, Winner below) {
    for (;;) {
      std::size_t first_open = high.place;
      std::size_t last_open = low.place;
      for (auto at = tried_.upper_bound(low.place); at != tried_.end() && at->first < high.place;
           ++at) {
        if (at->second == other(below)) {
          high.place = at->first;
          high.is_none = false;
          break;
        }
      }
      for (auto at = tried_.upper_bound(low.place); at != tried_.end() && at->first < high.place;
           ++at) {
        if (at->second == below) {
          low.place = at->first;
          low.is_none = false;
          first_open = high.place;
        } else {
          first_open = std::min(first_open, at->first);
          last_open = at->first;
        }
      }
      first_open = std::min(first_open, high.place);
      last_open = std::max(last_open, low.place);
      std::optional<std::size_t> next = middle(low.place, first_open);
      next = next ? next : middle(last_open, high.place);
      if (!next) {
        return;
      }
      tried(*next);
    }
  }

  /// Tries sizes beyond an end that is no sure win, in steps that double, up to the next rung,
  /// which becomes the end where none of them is sure. False where that rung is the other side's.
  bool reach(End& end, End& opposite, Winner own, int direction) {
    if (end.known == (direction < 0 ? 0 : known_.size() - 1)) {
      end.is_none = true;
      return true;
    }
    const std::size_t next = direction < 0 ? end.known - 1 : end.known + 1;
    const std::size_t limit = known_[next].place;
    for (std::size_t step = 1;; step *= 2) {
      const std::optional<std::size_t> place = beyond(end.place, limit, step);
      if (!place) {
        break;
      }
      const Winner winner = tried(*place);
      if (winner == own) {
        end.place = *place;
        return true;
      }
      if (winner == other(own)) {
        opposite.place = *place;
        break;
      }
    }
    end.known = next;
    end.place = limit;
    return known_[next].winner != other(own);
  }

  [[nodiscard]] bool is_new(std::size_t place) const {
    return !rungs_.contains(place) && !tried_.contains(place);
  }

  /// The place nearest to the middle of two that can be tried; none where there is none.
  [[nodiscard]] std::optional<std::size_t> middle(std::size_t low, std::size_t high) const {
    if (high <= low + 1) {
      return std::nullopt;
    }
    const std::size_t half = low + (high - low) / 2;
    for (std::size_t away = 0; away < high - low; ++away) {
      if (half > low + away && is_new(half - away)) {
        return half - away;
      }
      if (half + away < high && is_new(half + away)) {
        return half + away;
      }
    }
    return std::nullopt;
  }

  /// The first place, `step` or more from `start` towards `limit` and before it, that is no rung.
  [[nodiscard]] std::optional<std::size_t> beyond(std::size_t start, std::size_t limit,
                                                  std::size_t step) const {
    const std::size_t distance = limit > start ? limit - start : start - limit;
    for (; step < distance; ++step) {
      const std::size_t place = limit > start ? start + step : start - step;
      if (!rungs_.contains(place)) {
        return place;
      }
    }
    return std::nullopt;
  }

  const TrySize& try_size_;
  std::size_t sizes_left_;
  std::size_t allowance_ = 0;  ///< of the sizes left, those for the change that is looked at
  std::set<std::size_t> rungs_;
  std::vector<Rung> known_;
  std::map<std::size_t, Winner> tried_;
};

}  // namespace

Search find_changes(const std::vector<Rung>& ladder, std::size_t most_sizes,
                    const TrySize& try_size) {
  return Searcher(ladder, most_sizes, try_size).run(ladder);
}

}  // namespace crossover::bench
