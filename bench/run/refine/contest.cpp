// SPDX-License-Identifier: Apache-2.0
#include "run/refine/contest.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/times.h"
#include "crossover/backends.h"
#include "crossover/executions.h"
#include "run/refine/search.h"

namespace crossover::bench {
namespace {

struct Times {
  std::vector<double> seconds;  ///< of the repetitions
  RowSpec program;              ///< see program_of()
};

/// By the size's place on its ladder.
using Curve = std::map<std::size_t, Times>;

struct MeasuredWay {
  RowSpec spec;
  Curve curve;
};

/// All ways in which the same was computed, of the networks of one ladder.
struct Work {
  RowSpec spec;
  std::vector<MeasuredWay> ways;
};

struct Ladder {
  std::vector<LadderSize> sizes;
  std::vector<Work> work;
};

/// The element of that, made where there is none.
template <class Item>
Item& found_or_made(std::vector<Item>& items, const RowSpec& spec) {
  const auto at = std::ranges::find(items, spec, &Item::spec);
  if (at != items.end()) {
    return *at;
  }
  items.push_back({.spec = spec});
  return items.back();
}

std::map<std::string, Ladder> measured_work(Rows& rows, const SecondsOf& seconds,
                                            const Ladders& ladders, bool of_all) {
  std::map<std::string, Ladder> all;
  for (const std::string& name : rows.names()) {
    const Row& row = rows[name];
    if ((row.worker != nullptr && !of_all) || row.record.outcome != Outcome::measured ||
        family_of(row.spec).trains != Trains::epochs) {
      continue;
    }
    const std::string& model = value_of(row.spec, &RowSpec::model);
    const std::string name_of_ladder = ladders.of(model);
    const auto [at, is_new] = all.try_emplace(name_of_ladder);
    Ladder& ladder = at->second;
    if (is_new) {
      ladder.sizes = ladders.sizes(name_of_ladder);
    }
    const auto place = std::ranges::find(ladder.sizes, model, &LadderSize::name);
    const std::vector<double> taken =
        place != ladder.sizes.end() ? seconds(name) : std::vector<double>();
    if (taken.empty()) {
      continue;
    }
    const auto is_how = [](const Axis& axis) { return axis.role == AxisRole::how; };
    const RowSpec way = part_of(row.spec, is_how);
    RowSpec work = part_of(row.spec, std::not_fn(is_how));
    work.model.reset();
    found_or_made(found_or_made(ladder.work, work).ways, way)
        .curve[static_cast<std::size_t>(place - ladder.sizes.begin())] = {taken, program_of(row)};
  }
  return all;
}

std::vector<Rung> rungs_of(const Curve& first, const Curve& second) {
  std::vector<Rung> rungs;
  for (const auto& [place, times] : first) {
    if (const auto at = second.find(place); at != second.end()) {
      const bool is_same = times.program == at->second.program;
      rungs.push_back(
          {.place = place,
           .winner = is_same ? Winner::neither : apart(times.seconds, at->second.seconds),
           .is_same = is_same});
    }
  }
  return rungs;
}

using Ways = std::vector<const MeasuredWay*>;

int cpu_threads_of(const MeasuredWay* way) { return value_of(way->spec, &RowSpec::threads); }

bool is_on_cpu(const RowSpec& way) { return way.device == backends().front().name; }

Ways ways_on(const Work& work, bool cpu) {
  Ways ways;
  for (const MeasuredWay& way : work.ways) {
    if (is_on_cpu(way.spec) == cpu) {
      ways.push_back(&way);
    }
  }
  return ways;
}

/// Null where the work was not measured so, but in `other`.
const MeasuredWay* find_way(const Work& work, const RowSpec& spec, const MeasuredWay* other) {
  const auto at = std::ranges::find(work.ways, spec, &MeasuredWay::spec);
  return at == work.ways.end() || &*at == other ? nullptr : &*at;
}

Contest between(Refine kind, const Work& work, const MeasuredWay* first,
                const MeasuredWay* second) {
  return {.kind = kind,
          .work = work.spec,
          .first = first->spec,
          .second = second->spec,
          .ladder = rungs_of(first->curve, second->curve)};
}

std::optional<Contest> of_threads(const Work& work, int cores) {
  std::optional<Contest> found;
  for (const ExecutionFacts& facts : execution_table) {
    Ways ways = ways_on(work, true);
    std::erase_if(ways, [&](const MeasuredWay* way) {
      return cpu_threads_of(way) > cores || way->spec.execution != facts.execution;
    });
    if (ways.size() < 2) {
      continue;
    }
    std::ranges::stable_sort(ways, {}, cpu_threads_of);
    Contest own = between(Refine::threads, work, ways.front(), ways.back());
    if (!found || own.ladder.size() >= found->ladder.size()) {  // auto is the last of the CPU's
      found = std::move(own);
    }
  }
  return found;
}

/// At each size the way with the smallest median.
std::map<std::size_t, const MeasuredWay*> best(const Ways& ways) {
  std::map<std::size_t, const MeasuredWay*> found;
  for (const MeasuredWay* way : ways) {
    for (const auto& [place, times] : way->curve) {
      const MeasuredWay*& fastest = found.try_emplace(place, way).first->second;
      if (median(times.seconds) < median(fastest->curve.at(place).seconds)) {
        fastest = way;
      }
    }
  }
  return found;
}

/// From which place on second wins for sure; beyond all where it does not at the last.
std::size_t start_of_second(const std::vector<Rung>& rungs) {
  std::size_t start = std::numeric_limits<std::size_t>::max();
  for (auto rung = rungs.rbegin(); rung != rungs.rend() && rung->winner == Winner::second; ++rung) {
    start = rung->place;
  }
  return start;
}

/// Of a GPU's ways those that stand for the others: with the data there, and what anyone would run
/// where it has all sizes of these.
Ways standing_for_all(Ways gpus) {
  const auto keep = [&](const auto& is_better) {
    if (std::ranges::any_of(gpus, is_better)) {
      std::erase_if(gpus, [&](const MeasuredWay* way) { return !is_better(way); });
    }
  };
  keep([](const MeasuredWay* way) { return way->spec.placement == Placement::resident; });
  std::size_t most = 0;
  for (const MeasuredWay* way : gpus) {
    most = std::max(most, way->curve.size());
  }
  keep([&](const MeasuredWay* way) {
    return way->spec.execution == Execution::automatic && way->curve.size() == most;
  });
  return gpus;
}

std::optional<Contest> of_devices(const Work& work) {
  const std::map<std::size_t, const MeasuredWay*> cpu = best(ways_on(work, true));
  const Ways gpus = standing_for_all(ways_on(work, false));
  if (cpu.empty() || gpus.empty()) {
    return std::nullopt;
  }
  Curve cpu_curve;
  for (const auto& [place, way] : cpu) {
    cpu_curve[place] = way->curve.at(place);
  }
  // Of those that win from the same rung on the fastest there wins earliest.
  const auto earliness = [&](const MeasuredWay* gpu) {
    const std::size_t start = start_of_second(rungs_of(cpu_curve, gpu->curve));
    const auto at = gpu->curve.find(start);
    const Times& times = at != gpu->curve.end() ? at->second : gpu->curve.rbegin()->second;
    return std::pair(start, median(times.seconds));
  };
  const MeasuredWay* const chosen = *std::ranges::min_element(gpus, {}, earliness);
  const MeasuredWay* last_winner = cpu.begin()->second;
  for (const Rung& rung : rungs_of(cpu_curve, chosen->curve)) {
    if (rung.winner == Winner::first) {
      last_winner = cpu.at(rung.place);
    }
  }
  return between(Refine::device, work, last_winner, chosen);
}

std::optional<Contest> of_executions(const Work& work) {
  std::optional<Contest> found;
  for (const MeasuredWay* eager : ways_on(work, false)) {
    if (eager->spec.execution != Execution::eager) {
      continue;
    }
    RowSpec spec = eager->spec;
    spec.execution = Execution::graph;
    const MeasuredWay* const graph = find_way(work, spec, eager);
    if (graph != nullptr && (!found || spec.placement == Placement::resident)) {
      found = between(Refine::execution, work, eager, graph);
    }
  }
  return found;
}

std::optional<Contest> of_programs(const Work& work, int cores) {
  std::optional<Contest> found;
  int most = 0;
  for (const MeasuredWay* other : ways_on(work, true)) {
    RowSpec spec = other->spec;
    spec.program = RowSpec().program;
    const MeasuredWay* const own = find_way(work, spec, other);
    if (own != nullptr && cpu_threads_of(other) <= cores && cpu_threads_of(other) > most) {
      found = between(Refine::program, work, own, other);
      for (Rung& rung : found->ladder) {  // asked is whether one wins, not where that changes
        rung.winner = Winner::neither;
      }
      most = cpu_threads_of(other);
    }
  }
  return found;
}

/// From the smallest to the largest of these, and what lies between: each 7 % above the one before.
std::vector<LadderSize> sizes_around(const std::set<std::int64_t>& rungs) {
  constexpr double of_a_factor_of_ten = 32;
  std::set<std::int64_t> all = rungs;
  const auto largest = static_cast<double>(*rungs.rbegin());
  const double start = std::log10(static_cast<double>(*rungs.begin()));
  // Powers of ten are among them wherever the rungs begin, so that a resumed run meets the same.
  for (double at = std::ceil(start * of_a_factor_of_ten);; ++at) {
    const double size = std::round(std::pow(10, at / of_a_factor_of_ten));
    if (size > largest) {
      break;
    }
    all.insert(static_cast<std::int64_t>(size));
  }
  std::vector<LadderSize> sizes;
  std::ranges::transform(all, std::back_inserter(sizes), [](std::int64_t size) {
    return LadderSize{.name = std::to_string(size), .parameters = size};
  });
  return sizes;
}

/// The sizes at which each side has times of few and of many steps.
std::optional<Contest> of_commands(Rows& rows, const SecondsOf& seconds) {
  std::set<std::int64_t> sizes;
  std::set<std::int64_t> steps;
  std::set<std::string> programs;
  for (const std::string& name : rows.names()) {
    if (const RowSpec& spec = rows[name].spec;
        spec.family == RowFamily::command && !seconds(name).empty()) {
      sizes.insert(value_of(spec, &RowSpec::size));
      steps.insert(value_of(spec, &RowSpec::step_count));
      programs.insert(spec.program);
    }
  }
  if (programs.size() != 2 || steps.size() != 2) {
    return std::nullopt;
  }
  Contest found{.kind = Refine::command,
                .sizes = sizes_around(sizes),
                .work = {.family = RowFamily::command},
                .first = {.program = *programs.begin()},
                .second = {.program = *programs.rbegin()},
                .ladder = {},
                .steps = {*steps.begin(), *steps.rbegin()}};
  const auto of_more_steps = [&](const RowSpec& side, std::size_t place) {
    const std::vector<std::string> names = found.rows(side, place);
    const std::vector<double> few = seconds(names.front());
    std::vector<double> taken = seconds(names.back());
    taken.resize(std::min(few.size(), taken.size()));
    std::ranges::transform(taken, few, taken.begin(), std::minus());
    return taken;
  };
  for (std::size_t place = 0; place < found.sizes.size(); ++place) {
    if (sizes.contains(found.sizes[place].parameters)) {
      const std::vector<double> first = of_more_steps(found.first, place);
      const std::vector<double> second = of_more_steps(found.second, place);
      if (!first.empty() && !second.empty()) {
        found.ladder.push_back({.place = place, .winner = apart(first, second)});
      }
    }
  }
  return found.ladder.size() < 2 ? std::nullopt : std::optional(std::move(found));
}

/// All ways in which each problem was solved, over the sizes of `sizes`.
std::vector<Work> measured_functions(Rows& rows, const SecondsOf& seconds,
                                     std::vector<std::vector<LadderSize>>& sizes) {
  std::vector<Work> all;
  std::vector<std::set<std::int64_t>> measured;
  const auto each = [&](const auto& take) {
    for (const std::string& name : rows.names()) {
      const Row& row = rows[name];
      std::vector<double> taken = seconds(name);
      if (row.spec.family == RowFamily::function && row.record.outcome == Outcome::measured &&
          !taken.empty()) {
        const auto is_how = [](const Axis& axis) { return axis.role == AxisRole::how; };
        RowSpec work = part_of(row.spec, std::not_fn(is_how));
        work.size.reset();
        Work& own = found_or_made(all, work);
        measured.resize(all.size());
        take(static_cast<std::size_t>(&own - all.data()), value_of(row.spec, &RowSpec::size),
             part_of(row.spec, is_how), Times{std::move(taken), program_of(row)});
      }
    }
  };
  each([&](std::size_t work, std::int64_t size, const RowSpec& /*way*/, const Times& /*times*/) {
    measured[work].insert(size);
  });
  std::ranges::transform(measured, std::back_inserter(sizes), sizes_around);
  each([&](std::size_t work, std::int64_t size, const RowSpec& way, const Times& times) {
    const auto place = std::ranges::find(sizes[work], size, &LadderSize::parameters);
    found_or_made(all[work].ways, way)
        .curve[static_cast<std::size_t>(place - sizes[work].begin())] = times;
  });
  return all;
}

/// Whether the winner changes between two rungs.
bool has_change(const Contest& contest) {
  std::set<Winner> winners;
  for (const Rung& rung : contest.ladder) {
    winners.insert(rung.winner);
  }
  winners.erase(Winner::neither);
  return winners.size() > 1;
}

std::optional<Contest> between_functions(const Work& work) {
  std::optional<Contest> found = of_devices(work);
  if (found) {
    found->kind = Refine::function;
    return found;
  }
  for (std::size_t i = 0; i < work.ways.size(); ++i) {
    for (std::size_t j = i + 1; j < work.ways.size(); ++j) {
      Contest own = between(Refine::function, work, &work.ways[i], &work.ways[j]);
      if (!found || (has_change(own) && !has_change(*found))) {
        found = std::move(own);
      }
    }
  }
  return found;
}

/// One of each problem.
std::vector<Contest> of_functions(Rows& rows, const SecondsOf& seconds) {
  std::vector<std::vector<LadderSize>> sizes;
  const std::vector<Work> all = measured_functions(rows, seconds, sizes);
  std::vector<Contest> found;
  for (std::size_t place = 0; place < all.size(); ++place) {
    std::optional<Contest> own = between_functions(all[place]);
    constexpr std::size_t fewest = 2;
    if (own && own->ladder.size() >= fewest) {
      own->sizes = std::move(sizes[place]);
      found.push_back(std::move(*own));
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> Contest::rows(const RowSpec& side, std::size_t place) const {
  RowSpec row = overlaid(work, side);
  if (!is_over_numbers()) {
    row.model = sizes[place].name;
    return {row_name(row)};
  }
  row.size = sizes[place].parameters;
  if (steps.empty()) {
    return {row_name(row)};
  }
  std::vector<std::string> names;
  for (const std::int64_t count : steps) {
    row.step_count = count;
    names.push_back(row_name(row));
  }
  return names;
}

std::string Contest::words(const RowSpec& side) const {
  if (kind == Refine::command) {
    return "the " + side.program + " program";
  }
  if (kind == Refine::function) {
    const bool copies = side.others.contains(transfers_key);
    return side.others.at(side_key) + (copies ? " with its copies" : "");
  }
  if (!is_on_cpu(side)) {
    return "the GPU (" + text_of(side, &RowSpec::execution) + ", " +
           text_of(side, &RowSpec::placement) + ")";
  }
  if (kind == Refine::program) {
    return side.program;
  }
  return (kind == Refine::threads ? "" : "the CPU on ") +
         words_of_threads(value_of(side, &RowSpec::threads));
}

std::string Contest::problem() const {
  const auto at = work.others.find(problem_key);
  return at == work.others.end() ? "" : at->second + ", ";
}

RowSpec program_of(const Row& row) {
  RowSpec program = overlaid(row.spec, row.record.chosen().value_or(RowSpec()));
  const auto used = row.record.facts.find("threads_used");
  if (used != row.record.facts.end()) {
    program.threads = used->get<int>();
  }
  return program;
}

namespace {

std::optional<Contest> find_contest(Refine kind, Rows& rows, const SecondsOf& seconds, int cores,
                                    const Ladders& ladders) {
  if (kind == Refine::command) {
    return of_commands(rows, seconds);
  }
  const std::map<std::string, Ladder> all =
      measured_work(rows, seconds, ladders, kind == Refine::program);
  const auto look = [&](Refine wanted) {
    std::optional<Contest> found;
    for (const auto& [name, ladder] : all) {
      for (const Work& work : ladder.work) {
        std::optional<Contest> own = wanted == Refine::threads   ? of_threads(work, cores)
                                     : wanted == Refine::device  ? of_devices(work)
                                     : wanted == Refine::program ? of_programs(work, cores)
                                                                 : of_executions(work);
        constexpr std::size_t fewest = 2;
        if (own && own->ladder.size() >= (found ? found->ladder.size() + 1 : fewest)) {
          found = std::move(own);
          found->sizes = ladder.sizes;
        }
      }
    }
    return found;
  };
  if (kind != Refine::automatic) {
    return look(kind);
  }
  std::optional<Contest> found = look(Refine::device);
  return found ? found : look(Refine::threads);
}

}  // namespace

std::vector<Contest> find_contests(Refine kind, Rows& rows, const SecondsOf& seconds, int cores,
                                   const Ladders& ladders) {
  if (kind == Refine::function) {
    return of_functions(rows, seconds);
  }
  std::optional<Contest> found = find_contest(kind, rows, seconds, cores, ladders);
  return found ? std::vector{std::move(*found)} : std::vector<Contest>();
}

}  // namespace crossover::bench
