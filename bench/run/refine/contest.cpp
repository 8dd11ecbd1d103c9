// SPDX-License-Identifier: Apache-2.0
#include "run/refine/contest.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/statistics.h"
#include "rows/families.h"
#include "run/refine/pair_test.h"

namespace crossover::bench {
namespace {

struct Times {
  std::vector<double> seconds;                 ///< of the repetitions
  std::map<std::string, std::string> program;  ///< see program_of()
};

/// By the size's place on its ladder.
using Curve = std::map<std::size_t, Times>;

struct MeasuredWay {
  Configuration configuration;
  Curve curve;
};

/// All ways in which the same was computed, of the networks of one ladder.
struct Work {
  Configuration configuration;
  std::vector<MeasuredWay> ways;
};

struct Ladder {
  std::vector<LadderSize> sizes;
  std::vector<Work> work;
};

std::optional<std::size_t> place_of(const std::string& model,
                                    const std::vector<LadderSize>& sizes) {
  const auto at = std::find_if(sizes.begin(), sizes.end(),
                               [&](const LadderSize& size) { return size.name == model; });
  return at == sizes.end() ? std::nullopt : std::optional<std::size_t>(at - sizes.begin());
}

/// The element with that configuration, made where there is none.
template <class Item>
Item& found_or_made(std::vector<Item>& items, const Configuration& configuration) {
  const auto at = std::find_if(items.begin(), items.end(), [&](const Item& item) {
    return item.configuration == configuration;
  });
  if (at != items.end()) {
    return *at;
  }
  items.push_back({.configuration = configuration});
  return items.back();
}

std::map<std::string, Ladder> measured_work(Rows& rows, const SecondsOf& seconds,
                                            const std::vector<Family>& networks, bool of_all) {
  std::map<std::string, Ladder> all;
  for (const std::string& name : rows.names()) {
    const Row& row = rows[name];
    if ((row.worker != nullptr && !of_all) || row.record.outcome != Outcome::measured ||
        find_family(family_of(row)).trains != Trains::epochs) {
      continue;
    }
    const std::string model = value_of(row.configuration, "model");
    const std::string name_of_ladder = ladder_of(model, networks);
    const auto [at, is_new] = all.try_emplace(name_of_ladder);
    Ladder& ladder = at->second;
    if (is_new) {
      ladder.sizes = sizes_of(name_of_ladder, networks);
    }
    const std::optional<std::size_t> place = place_of(model, ladder.sizes);
    const std::vector<double> taken = place ? seconds(name) : std::vector<double>();
    if (taken.empty()) {
      continue;
    }
    Configuration work;
    Configuration way;
    for (const auto& pair : row.configuration) {
      if (pair.first != "model") {
        (find_axis(pair.first).role == AxisRole::how ? way : work).push_back(pair);
      }
    }
    found_or_made(found_or_made(ladder.work, work).ways, way).curve[*place] = {taken,
                                                                               program_of(row)};
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

std::vector<const MeasuredWay*> ways_on(const Work& work, bool cpu) {
  std::vector<const MeasuredWay*> ways;
  for (const MeasuredWay& way : work.ways) {
    if ((value_or_unsaid(way.configuration, "device") == "cpu") == cpu) {
      ways.push_back(&way);
    }
  }
  return ways;
}

Contest between(Refine kind, const Work& work, const MeasuredWay& first,
                const MeasuredWay& second) {
  return {.kind = kind,
          .work = work.configuration,
          .first = first.configuration,
          .second = second.configuration,
          .ladder = rungs_of(first.curve, second.curve)};
}

std::optional<Contest> of_threads(const Work& work, int cores) {
  const auto threads = [](const MeasuredWay* way) {
    return number_of(way->configuration, "cpu_threads");
  };
  std::optional<Contest> found;
  for (const std::string& execution : find_axis("execution").values) {
    std::vector<const MeasuredWay*> ways = ways_on(work, true);
    std::erase_if(ways, [&](const MeasuredWay* way) {
      return threads(way) > cores || value_or_unsaid(way->configuration, "execution") != execution;
    });
    std::stable_sort(ways.begin(), ways.end(), [&](const MeasuredWay* one, const MeasuredWay* two) {
      return threads(one) < threads(two);
    });
    if (ways.size() < 2) {
      continue;
    }
    Contest own = between(Refine::threads, work, *ways.front(), *ways.back());
    if (!found || own.ladder.size() >= found->ladder.size()) {  // auto is the last of the CPU's
      found = std::move(own);
    }
  }
  return found;
}

/// At each size the way with the smallest median.
std::map<std::size_t, const MeasuredWay*> best(const std::vector<const MeasuredWay*>& ways) {
  std::map<std::size_t, const MeasuredWay*> found;
  for (const MeasuredWay* way : ways) {
    for (const auto& [place, times] : way->curve) {
      const MeasuredWay*& fastest = found[place];
      if (fastest == nullptr || median(times.seconds) < median(fastest->curve.at(place).seconds)) {
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

/// What anyone would run stands for the others where it has all their sizes.
void keep_automatic(std::vector<const MeasuredWay*>& gpus) {
  std::size_t most = 0;
  for (const MeasuredWay* way : gpus) {
    most = std::max(most, way->curve.size());
  }
  const auto is_automatic = [&](const MeasuredWay* way) {
    return value_or_unsaid(way->configuration, "execution") == "auto" && way->curve.size() == most;
  };
  if (std::any_of(gpus.begin(), gpus.end(), is_automatic)) {
    std::erase_if(gpus, [&](const MeasuredWay* way) { return !is_automatic(way); });
  }
}

std::optional<Contest> of_devices(const Work& work) {
  const std::map<std::size_t, const MeasuredWay*> cpu = best(ways_on(work, true));
  Curve cpu_curve;
  for (const auto& [place, way] : cpu) {
    cpu_curve[place] = way->curve.at(place);
  }
  std::vector<const MeasuredWay*> gpus = ways_on(work, false);
  const auto is_copied = [](const MeasuredWay* way) {
    return value_or_unsaid(way->configuration, "data") != "resident";
  };
  if (!std::all_of(gpus.begin(), gpus.end(), is_copied)) {
    std::erase_if(gpus, is_copied);
  }
  keep_automatic(gpus);
  const MeasuredWay* chosen = nullptr;
  std::pair<std::size_t, double> earliest;
  for (const MeasuredWay* gpu : gpus) {
    const std::size_t start = start_of_second(rungs_of(cpu_curve, gpu->curve));
    // Of those that win from the same rung on the fastest there wins earliest.
    const auto at = gpu->curve.find(start);
    const std::pair own{
        start,
        median(at != gpu->curve.end() ? at->second.seconds : gpu->curve.rbegin()->second.seconds)};
    if (chosen == nullptr || own < earliest) {
      chosen = gpu;
      earliest = own;
    }
  }
  if (chosen == nullptr || cpu.empty()) {
    return std::nullopt;
  }
  const MeasuredWay* last_winner = cpu.begin()->second;
  for (const Rung& rung : rungs_of(cpu_curve, chosen->curve)) {
    if (rung.winner == Winner::first) {
      last_winner = cpu.at(rung.place);
    }
  }
  return between(Refine::device, work, *last_winner, *chosen);
}

std::optional<Contest> of_executions(const Work& work) {
  std::optional<Contest> found;
  for (const MeasuredWay* eager : ways_on(work, false)) {
    Configuration graph = eager->configuration;
    for (auto& [key, text] : graph) {
      if (key == "execution" && text == "eager") {
        text = "graph";
      }
    }
    const auto at = std::find_if(work.ways.begin(), work.ways.end(), [&](const MeasuredWay& way) {
      return way.configuration == graph && &way != eager;
    });
    const bool is_first = !found || value_or_unsaid(eager->configuration, "data") == "resident";
    if (at != work.ways.end() && is_first) {
      found = between(Refine::execution, work, *eager, *at);
    }
  }
  return found;
}

std::optional<Contest> of_programs(const Work& work, int cores) {
  std::optional<Contest> found;
  int most = 0;
  for (const MeasuredWay* other : ways_on(work, true)) {
    Configuration own = other->configuration;
    std::erase_if(own, [](const auto& pair) { return pair.first == "program"; });
    const auto threads = static_cast<int>(number_of(own, "cpu_threads"));
    const auto at = std::find_if(work.ways.begin(), work.ways.end(), [&](const MeasuredWay& way) {
      return way.configuration == own && &way != other;
    });
    if (at != work.ways.end() && threads <= cores && threads > most) {
      found = between(Refine::program, work, *at, *other);
      for (Rung& rung : found->ladder) {  // asked is whether one wins, not where that changes
        rung.winner = Winner::neither;
      }
      most = threads;
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
  std::transform(all.begin(), all.end(), std::back_inserter(sizes), [](std::int64_t size) {
    return LadderSize{.name = std::to_string(size), .parameters = size};
  });
  return sizes;
}

/// The sizes at which each side has times of few and of many steps.
std::optional<Contest> of_commands(Rows& rows, const SecondsOf& seconds) {
  Contest found{.kind = Refine::command, .work = {{"family", "Command"}}};
  std::set<std::int64_t> sizes;
  std::set<std::int64_t> steps;
  std::vector<std::string> programs;
  for (const std::string& name : rows.names()) {
    const Row& row = rows[name];
    if (family_of(row) != "Command" || seconds(name).empty()) {
      continue;
    }
    sizes.insert(number_of(row.configuration, "size"));
    steps.insert(number_of(row.configuration, "step_count"));
    const std::string& program = value_of(row.configuration, "program");
    if (std::find(programs.begin(), programs.end(), program) == programs.end()) {
      programs.push_back(program);
    }
  }
  if (programs.size() != 2 || steps.size() != 2) {
    return std::nullopt;
  }
  std::sort(programs.begin(), programs.end());
  found.first = {{"program", programs[0]}};
  found.second = {{"program", programs[1]}};
  found.steps = {std::to_string(*steps.begin()), std::to_string(*steps.rbegin())};
  found.sizes = sizes_around(sizes);
  const auto of_more_steps = [&](const Configuration& side, std::size_t place) {
    const std::vector<std::string> names = found.rows(side, place);
    const std::vector<double> few = seconds(names.front());
    std::vector<double> taken = seconds(names.back());
    taken.resize(std::min(few.size(), taken.size()));
    for (std::size_t i = 0; i < taken.size(); ++i) {
      taken[i] -= few[i];
    }
    return taken;
  };
  for (std::size_t place = 0; place < found.sizes.size(); ++place) {
    if (!sizes.contains(found.sizes[place].parameters)) {
      continue;
    }
    const std::vector<double> first = of_more_steps(found.first, place);
    const std::vector<double> second = of_more_steps(found.second, place);
    if (!first.empty() && !second.empty()) {
      found.ladder.push_back({.place = place, .winner = apart(first, second)});
    }
  }
  return found.ladder.size() < 2 ? std::nullopt : std::optional(std::move(found));
}

}  // namespace

std::vector<std::string> Contest::rows(const Configuration& side, std::size_t place) const {
  const std::string& size = sizes[place].name;
  if (kind != Refine::command) {
    return {row_name(in_order(joined(joined(work, {{"model", size}}), side)))};
  }
  std::vector<std::string> names;
  std::transform(steps.begin(), steps.end(), std::back_inserter(names),
                 [&](const std::string& count) {
                   const Configuration own{{"size", size}, {"step_count", count}};
                   return row_name(in_order(joined(joined(work, own), side)));
                 });
  return names;
}

std::string Contest::words(const Configuration& side) const {
  if (kind == Refine::command) {
    return "the " + value_of(side, "program") + " program";
  }
  if (value_or_unsaid(side, "device") != "cpu") {
    return "the GPU (" + value_or_unsaid(side, "execution") + ", " + value_or_unsaid(side, "data") +
           ")";
  }
  if (kind == Refine::program) {
    return value_or_unsaid(side, "program");
  }
  return (kind == Refine::threads ? "" : "the CPU on ") +
         words_of_threads(value_or_unsaid(side, "cpu_threads"));
}

std::map<std::string, std::string> program_of(const Row& row) {
  std::map<std::string, std::string> program(row.configuration.begin(), row.configuration.end());
  for (const auto& [key, value] : row.record.chosen()) {
    program[key] = value;
  }
  const auto used = row.record.facts.find("threads_used");
  if (used != row.record.facts.end()) {
    program["cpu_threads"] = std::to_string(used->get<int>());
  }
  return program;
}

std::optional<Contest> find_contest(Refine kind, Rows& rows, const SecondsOf& seconds, int cores,
                                    const std::vector<Family>& networks) {
  if (kind == Refine::command) {
    return of_commands(rows, seconds);
  }
  std::optional<Contest> found;
  const std::map<std::string, Ladder> all =
      measured_work(rows, seconds, networks, kind == Refine::program);
  const auto look_at = [&](Refine wanted, const Ladder& ladder) {
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
  };
  const auto look = [&](Refine wanted) {
    for (const auto& [name, ladder] : all) {
      look_at(wanted, ladder);
    }
  };
  if (kind != Refine::automatic) {
    look(kind);
  } else {
    look(Refine::device);
    if (!found) {
      look(Refine::threads);
    }
  }
  return found;
}

}  // namespace crossover::bench
