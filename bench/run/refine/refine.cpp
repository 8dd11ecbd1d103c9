// SPDX-License-Identifier: Apache-2.0
#include "run/refine/refine.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>
#include <sstream>
#include <utility>
#include <vector>

#include "base/say.h"
#include "base/times.h"
#include "crossover/names.h"
#include "rows/devices.h"
#include "rows/row.h"

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;

/// So many repetitions of a row are the fewest that readers take for more than a hint.
constexpr std::int64_t pairs_of_the_same = 3;

/// 1234567 -> "1,234,567".
std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return text;
}

Json winner_json(Winner winner) {
  return winner == Winner::first ? "first" : winner == Winner::second ? Json("second") : Json();
}

Json size_json(const LadderSize& size) {
  return {{"model", size.name}, {"params", size.parameters}};
}

}  // namespace

bool is_on_a_ladder(const std::string& row, const Ladders& ladders) {
  return row.starts_with("Command/") || row.starts_with("Function/") ||
         std::ranges::any_of(families(), [&](const BenchmarkFamily& family) {
           const std::string before = family.name + "/model:";
           const std::string model = row.substr(std::min(before.size(), row.size()));
           return family.trains == Trains::epochs && row.starts_with(before) &&
                  !ladders.of(model.substr(0, model.find('/'))).empty();
         });
}

namespace {

class Refinement {
 public:
  Refinement(Contest contest, Rows& rows, const RefineRows& measured, const RefineLimits& limits,
             const std::function<void(const Json& refinement)>& record)
      : contest_(std::move(contest)),
        rows_(rows),
        measured_(measured),
        limits_(limits),
        record_(record) {}

  void run() {
    const Search found = find_changes(contest_.ladder, limits_.most_sizes,
                                      [&](std::size_t place) { return tried(place); });
    is_complete_ = found.complete;
    for (const Interval& interval : found.intervals) {
      const auto parameters = [&](const std::optional<std::size_t>& place) {
        return place ? Json(contest_.sizes[*place].parameters) : Json();
      };
      intervals_.push_back({{"below", winner_json(interval.below)},
                            {"low", parameters(interval.low)},
                            {"high", parameters(interval.high)}});
    }
    if (is_complete_ || !sizes_.empty()) {  // what had no time must not hide an earlier one
      record_(json());
    }
    tell(found);
  }

 private:
  [[nodiscard]] bool is_late() const { return seconds_since(start_) >= limits_.seconds; }

  using Names = std::vector<std::string>;

  /// Rows of that size, on each side; none where a peer did not say rightly which it has.
  std::optional<std::pair<Names, Names>> rows_of_both_sides(std::size_t place) {
    std::pair names{contest_.rows(contest_.first, place), contest_.rows(contest_.second, place)};
    measured_.bring(contest_.sizes[place].name);
    if (contest_.kind == Refine::program) {
      measured_.join(names.first.front());
    }
    for (const Names& side : {names.first, names.second}) {
      if (!std::ranges::all_of(side, [&](const std::string& name) { return rows_.has(name); })) {
        lacks_rows_ = true;
        return std::nullopt;
      }
      for (const std::string& name : side) {
        rows_[name].reported_by_caller = true;
        rows_[name].min_time_seconds = limits_.min_time_seconds;
      }
    }
    return names;
  }

  /// Of a side: the time of its row, or what its row of many steps takes more than that of few.
  std::optional<double> repeated(const Names& side) {
    std::optional<double> taken = measured_.repeat(side.back());
    if (taken && side.size() > 1) {
      const std::optional<double> few = measured_.repeat(side.front());
      taken = few ? std::optional(*taken - *few) : std::nullopt;
    }
    return taken;
  }

  std::optional<Winner> tried(std::size_t place) {
    if (is_late()) {
      return std::nullopt;
    }
    const auto names = rows_of_both_sides(place);
    if (!names) {
      return std::nullopt;
    }
    const std::string& first = names->first.front();
    const std::string& second = names->second.front();
    const double made = rows_[first].reference_seconds;
    if (seconds_since(start_) + made >= limits_.seconds) {
      return std::nullopt;
    }
    PairTest test(limits_.error_of_size(), limits_.most_pairs);
    const auto is_enough = [&] {
      return are_the_same(first, second) && test.pairs() + test.ties() >= pairs_of_the_same;
    };
    const auto measured = [&](const Names& side) -> Measurement {
      return [&] { return is_late() || is_enough() ? std::nullopt : repeated(side); };
    };
    const auto renew = [&] {  // no pair shares its instances with another
      if (!is_late() && !is_enough()) {
        measured_.renew();
      }
    };
    const bool is_decided =
        run_pairs(test, order_, renew, measured(names->first), measured(names->second));
    Json size = size_json(contest_.sizes[place]);
    size.update({{"pairs", test.pairs()},
                 {"won_by_first", test.won_by_first()},
                 {"ties", test.ties()},
                 {"winner", winner_json(test.winner())}});
    const bool is_same = are_the_same(first, second);
    if (is_same) {
      size["same"] = true;
    }
    sizes_.push_back(std::move(size));
    pairs_ += test.pairs() + test.ties();
    record_(json());
    for (const Names& side : {names->first, names->second}) {
      std::ranges::for_each(side, measured_.finish);
    }
    tell(place, test, is_same);
    // A row that failed says so itself; its size stays open.
    return is_decided || !is_late() ? std::optional(test.winner()) : std::nullopt;
  }

  /// Known once both are made.
  [[nodiscard]] bool are_the_same(const std::string& first, const std::string& second) const {
    return program_of(rows_[first]) == program_of(rows_[second]);
  }

  /// "1,234 parameters"; "n = 1,234".
  [[nodiscard]] std::string sized(std::int64_t size) const {
    return contest_.is_over_numbers() ? "n = " + with_commas(size)
                                      : with_commas(size) + " parameters";
  }

  [[nodiscard]] Json json() const {
    Json ladder = Json::array();
    for (const Rung& rung : contest_.ladder) {
      ladder.push_back(size_json(contest_.sizes[rung.place]));
      ladder.back()["winner"] = winner_json(rung.winner);
    }
    return {{"kind", name_in(named_contests, contest_.kind)},
            {"common", configuration_json(contest_.work)},
            {"first", configuration_json(contest_.first)},
            {"second", configuration_json(contest_.second)},
            {"error", limits_.error},
            {"most_sizes", limits_.most_sizes},
            {"most_pairs", limits_.most_pairs},
            {"complete", is_complete_},
            {"ladder", ladder},
            {"sizes", sizes_},
            {"intervals", intervals_}};
  }

  void tell(std::size_t place, const PairTest& test, bool is_same) const {
    const LadderSize& size = contest_.sizes[place];
    std::ostringstream line;
    line << "[refine] " << contest_.problem()
         << (contest_.is_over_numbers() ? sized(size.parameters)
                                        : size.name + " (" + sized(size.parameters) + ")")
         << ": ";
    const std::int64_t won_by_second = test.pairs() - test.won_by_first();
    if (is_same) {
      line << "open, both sides run the same program";
    } else if (test.winner() == Winner::neither) {
      line << "open, " << contest_.words(contest_.first) << " faster in " << test.won_by_first()
           << ", " << contest_.words(contest_.second) << " in " << won_by_second << " of "
           << test.pairs() + test.ties() << " pairs";
    } else {
      const bool is_first = test.winner() == Winner::first;
      line << contest_.words(is_first ? contest_.first : contest_.second) << " faster in "
           << (is_first ? test.won_by_first() : won_by_second) << " of "
           << test.pairs() + test.ties() << " pairs";
    }
    std::cout << line.str() << std::endl;
  }

  void tell(const Search& found) const {
    std::ostringstream text;
    text.precision(3);
    text << "refined " << contest_.problem() << contest_.words(contest_.first) << " against "
         << contest_.words(contest_.second) << ": ";
    for (const Interval& interval : found.intervals) {
      const bool is_second = interval.below == Winner::first;
      const std::string above = contest_.words(is_second ? contest_.second : contest_.first);
      const std::string below = contest_.words(is_second ? contest_.first : contest_.second);
      const auto at = [&](std::size_t place) { return sized(contest_.sizes[place].parameters); };
      if (interval.low && interval.high) {
        const std::int64_t low = contest_.sizes[*interval.low].parameters;
        const std::int64_t high = contest_.sizes[*interval.high].parameters;
        text << above << " won reliably from between "
             << (contest_.is_over_numbers() ? sized(low) + " and " + with_commas(high)
                                            : with_commas(low) + " and " + sized(high));
      } else if (interval.high) {
        text << above << " first won reliably at " << at(*interval.high) << ", " << below
             << " at no smaller size";
      } else if (interval.low) {
        text << below << " last won reliably at " << at(*interval.low) << ", " << above
             << " at no larger size";
      } else {
        text << "no side won reliably where the winner seemed to change";
      }
      text << "; ";
    }
    if (found.intervals.empty() && found.complete) {
      text << "the winner did not change; ";
    }
    if (sizes_.empty()) {
      text << (found.complete ? "no size to try" : "no size was tried");
    } else {
      text << sizes_.size() << " sizes tried in " << pairs_ << " pairs and "
           << seconds_since(start_) << " s";
    }
    text << (found.complete ? ""
             : lacks_rows_  ? ", then a side had no row"
                            : ", then time or sizes were used up");
    say(text.str());
  }

  Contest contest_;
  Rows& rows_;
  const RefineRows& measured_;
  const RefineLimits& limits_;
  const std::function<void(const Json& refinement)>& record_;
  Instant start_ = std::chrono::steady_clock::now();
  std::mt19937_64 order_{std::random_device{}()};  ///< of the sides of a pair
  std::int64_t pairs_ = 0;
  bool is_complete_ = false;
  bool lacks_rows_ = false;  ///< of a size that was to be tried
  Json sizes_ = Json::array(), intervals_ = Json::array();
};

}  // namespace

void refine(Refine kind, Rows& rows, const RefineRows& measured, const RefineLimits& limits,
            const RefineRecord& record) {
  std::ranges::for_each(measured.models, measured.bring);
  std::vector<Contest> contests =
      find_contests(kind, rows, measured.seconds, usable_cores(), measured.ladders);
  const Instant start = std::chrono::steady_clock::now();
  Json all = Json::array();
  auto left = static_cast<double>(contests.size());
  for (Contest& contest : contests) {
    RefineLimits own = limits;
    own.seconds = (limits.seconds - seconds_since(start)) / left--;
    Json last;
    const std::function<void(const Json& refinement)> told = [&](const Json& refinement) {
      last = refinement;
      Json with_last = all;
      with_last.push_back(last);
      record(with_last);
    };
    Refinement(std::move(contest), rows, measured, own, told).run();
    if (!last.is_null()) {
      all.push_back(std::move(last));
    }
  }
  if (contests.empty() && kind != Refine::automatic) {
    say(std::string("--refine=") + name_in(named_contests, kind) +
        ": nothing to refine, since no two sides have times of two sizes of a ladder");
  }
}

}  // namespace crossover::bench
