// SPDX-License-Identifier: Apache-2.0
#include "run/order.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "crossover/catalogue.h"
#include "crossover/executions.h"
#include "rows/families.h"

namespace crossover::bench {

namespace {

/// How large the work is, which an overview need not vary.
const std::set<std::string> size_axes{"model", "batch", "bytes", "m", "n", "k", "width", "size"};

/// The row by which a network is represented.
bool stands_for_its_network(const Row& row, const std::string& most_threads) {
  return value_or_unsaid(row.configuration, "precision") == "f32" &&
         (on_gpu(row) ? value_or_unsaid(row.configuration, "data") == "resident" &&
                            value_of(row.configuration, "execution") ==
                                (family_in(row).trains == Trains::steps ? "graph" : "eager")
                      : value_or_unsaid(row.configuration, "cpu_threads") == most_threads);
}

/// Of other precisions than f32 those that the device has, on the CPU on all threads.
bool is_wanted(const Row& row, const std::string& most_threads) {
  const BenchmarkFamily& its = family_in(row);
  if (!is_worth_minutes(row, most_threads)) {
    return false;
  }
  return is_in_f32(row) || its.bounds_others ||
         (row.device->backend->missing_for(options_of(row.configuration).precision).empty() &&
          (on_gpu(row) || value_or_unsaid(row.configuration, "cpu_threads") == most_threads));
}

/// One row at least for each value of each axis of each family on each device; of networks, one for
/// each. Those that come `first` anyway are taken into account. The largest of the others are
/// preferred: registration goes from small to large.
std::set<std::string> overview(Rows& rows, const std::vector<std::string>& names,
                               const std::set<std::string>& first,
                               const std::string& most_threads) {
  std::vector<std::string> candidates(names.rbegin(), names.rend());
  const auto others =
      std::stable_partition(candidates.begin(), candidates.end(),
                            [&](const std::string& name) { return first.contains(name); });
  std::stable_partition(others, candidates.end(), [&](const std::string& name) {
    return stands_for_its_network(rows[name], most_threads);
  });
  std::set<std::string> chosen;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> shown;
  for (const std::string& name : candidates) {
    const Row& row = rows[name];
    bool is_new = false;
    for (const auto& [key, value] : row.configuration) {
      const bool is_network = family_in(row).trains == Trains::epochs && key == "model";
      if (!size_axes.contains(key) || is_network) {
        is_new |= shown
                      .emplace(family_in(row).name, value_or_unsaid(row.configuration, "device"),
                               key, value)
                      .second;
      }
    }
    if (is_new) {
      chosen.insert(name);
    }
  }
  return chosen;
}

/// Where a row comes: in which pass, and where in it. Rows of the same rank stay as registered.
struct Rank {
  std::size_t pass = 0;
  std::size_t step = 0;  ///< see step_of()
  std::size_t within = 0;
  bool on_cpu = false;

  // clang-tidy 14 takes the comparison with zero that the compiler makes for ours.
  // NOLINTNEXTLINE(modernize-use-nullptr,readability-implicit-bool-conversion)
  friend auto operator<=>(const Rank&, const Rank&) = default;
};

struct RankedRow {
  Rank rank;
  PlannedRow row;
};

/// Before the families: the first of the ladder where there is a GPU, ceilings, and what else a
/// sweep puts there.
constexpr std::size_t first_pass_of_families = 3;

/// What an order is made of.
struct Sweeping {
  Rows& rows;
  const std::vector<std::string>& names;
  LeastAndMost threads = threads_of(rows, names);
  std::set<std::string> first = first_of_the_ladder(rows, names, threads);

  /// Without a GPU there is no risk.
  [[nodiscard]] std::size_t step(const Row& row) const {
    return first.empty() ? 0 : step_of(row, threads);
  }
};

/// Family by family, in the order of registration.
std::vector<RankedRow> as_registered(const Sweeping& sweep) {
  std::vector<RankedRow> ranked;
  ranked.reserve(sweep.names.size());
  std::map<std::string, std::size_t> met;
  for (const std::string& name : sweep.names) {
    const Row& row = sweep.rows[name];
    const std::string family = family_of(row);
    ranked.push_back(
        {.rank = {.pass = first_pass_of_families + met.emplace(family, met.size()).first->second,
                  .step = sweep.step(row)},
         .row = {.name = name, .pass = family}});
  }
  return ranked;
}

/// Ceilings, an overview, then what is worth most. The GPU's rows come before the CPU's.
std::vector<RankedRow> by_worth(const Sweeping& sweep) {
  const std::string most_threads = std::to_string(sweep.threads.most);
  const std::set<std::string> shown = overview(sweep.rows, sweep.names, sweep.first, most_threads);
  std::vector<RankedRow> ranked;
  for (const std::string& name : sweep.names) {
    const Row& row = sweep.rows[name];
    const BenchmarkFamily& its = family_in(row);
    const bool on_cpu = !on_gpu(row);
    RankedRow& one = ranked.emplace_back();
    one.row = {.name = name, .pass = its.name};
    one.rank = {.pass = first_pass_of_families + its.worth,
                .step = on_cpu ? step_of_the_others + 1 : sweep.step(row),
                .within = its.worth,
                .on_cpu = on_cpu};
    if (its.bounds_others) {
      one.row.pass = pass_of_ceilings;
      one.rank.pass = 1;
    } else if (shown.contains(name)) {
      one.row.pass = "overview";
      one.rank.pass = 2;
    }
  }
  return ranked;
}

/// Ceilings, then the networks of the ladder, each step halving the widest gap between them, then
/// what is worth most.
std::vector<RankedRow> by_question(const Sweeping& sweep) {
  std::vector<std::string> of_the_ladder;
  std::copy_if(
      sweep.names.begin(), sweep.names.end(), std::back_inserter(of_the_ladder),
      [&](const std::string& name) { return is_of_the_ladder(sweep.rows[name], sweep.threads); });
  const std::map<std::string, std::size_t> turns = turns_of(sweep.rows, of_the_ladder);
  std::vector<RankedRow> ranked;
  for (const std::string& name : sweep.names) {
    const Row& row = sweep.rows[name];
    const BenchmarkFamily& its = family_in(row);
    RankedRow& one = ranked.emplace_back();
    one.row = {.name = name, .pass = its.name};
    if (its.bounds_others) {
      one.row.pass = pass_of_ceilings;
      one.rank = {.pass = 1};
    } else if (is_of_the_ladder(row, sweep.threads)) {
      one.row.pass = pass_of_networks;
      one.rank = {.pass = 2, .step = sweep.step(row), .within = turns.at(network_of(row))};
    } else {
      one.rank.pass = first_pass_of_families + its.worth;
    }
  }
  return ranked;
}

/// Puts these before all others, spread over the sizes of their networks.
void put_first(const std::set<std::string>& first, Rows& rows, std::vector<RankedRow>& ranked) {
  std::vector<std::string> names;  // in the order of registration
  for (const RankedRow& one : ranked) {
    if (first.contains(one.row.name)) {
      names.push_back(one.row.name);
    }
  }
  const std::map<std::string, std::size_t> turns = turns_of(rows, names);
  for (RankedRow& one : ranked) {
    if (const Row& row = rows[one.row.name]; first.contains(one.row.name)) {
      one.row.pass = pass_of_ladder;
      one.rank = {.pass = 0, .within = turns.at(network_of(row)), .on_cpu = !on_gpu(row)};
    }
  }
}

/// Sets what each row is expected to take: the first of those that share a reference computes it.
void expect(std::vector<PlannedRow>& plan, Rows& rows) {
  std::set<std::string> references;
  for (PlannedRow& planned : plan) {
    const Row& row = rows[planned.name];
    planned.seconds = row.expected.all;
    if (references.insert(row.reference).second) {
      planned.seconds += row.reference_seconds;
    }
  }
}

}  // namespace

std::vector<PlannedRow> ordered(Rows& rows, const std::vector<std::string>& names,
                                const Sweep& sweep, bool within_budget) {
  std::vector<std::string> wanted = names;
  if (sweep.by_worth) {
    const std::string most_threads = std::to_string(threads_of(rows, names).most);
    std::erase_if(wanted,
                  [&](const std::string& name) { return !is_wanted(rows[name], most_threads); });
  }
  const Sweeping sweeping{.rows = rows, .names = wanted};
  std::vector<RankedRow> ranked = sweep.by_worth  ? by_worth(sweeping)
                                  : within_budget ? by_question(sweeping)
                                                  : as_registered(sweeping);
  put_first(sweeping.first, rows, ranked);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedRow& one, const RankedRow& two) { return one.rank < two.rank; });
  std::vector<PlannedRow> plan;
  plan.reserve(ranked.size());
  for (RankedRow& one : ranked) {
    plan.push_back(std::move(one.row));
  }
  expect(plan, rows);
  return plan;
}

void print(std::ostream& to, const std::vector<PlannedRow>& plan,
           std::optional<double> budget_seconds) {
  std::vector<std::pair<std::string, std::pair<int, double>>> passes;
  double sum = 0;
  std::pair<int, double> open;
  std::array<char, 64> text{};
  for (const PlannedRow& planned : plan) {
    if (budget_seconds && sum + planned.seconds > *budget_seconds) {
      ++open.first;
      open.second += planned.seconds;
      continue;
    }
    sum += planned.seconds;
    if (passes.empty() || passes.back().first != planned.pass) {
      passes.push_back({planned.pass, {0, 0}});
    }
    ++passes.back().second.first;
    passes.back().second.second += planned.seconds;
    std::snprintf(text.data(), text.size(), "%-9s %7.1f s %7.1f s  ", planned.pass.c_str(),
                  planned.seconds, sum);
    to << text.data() << planned.name << "\n";
  }
  const auto add = [&](const std::string& what, int rows, double seconds) {
    std::snprintf(text.data(), text.size(), "%-9s %5d rows %7.1f s\n", what.c_str(), rows, seconds);
    to << text.data();
  };
  for (const auto& [pass, of_pass] : passes) {
    add(pass, of_pass.first, of_pass.second);
  }
  if (open.first > 0) {
    add("left open", open.first, open.second);
  }
  add("all", static_cast<int>(plan.size()) - open.first, sum);
  to << std::flush;
}

// ---- ladder

namespace {

std::size_t risk_of(const Row& row) {
  return facts_of(options_of(row.configuration).execution).risk;
}

/// 0 and 4, then 2, then 1 and 3: each step halves the widest gap, so that a ladder that ends early
/// has its ends and even rungs.
std::vector<std::size_t> halving(std::size_t count) {
  std::vector<std::size_t> order;
  if (count > 0) {
    order.push_back(0);
  }
  if (count > 1) {
    order.push_back(count - 1);
  }
  std::deque<std::pair<std::size_t, std::size_t>> gaps{{0, count > 0 ? count - 1 : 0}};
  for (; !gaps.empty(); gaps.pop_front()) {
    const auto [low, high] = gaps.front();
    const std::size_t middle = (low + high) / 2;
    if (middle > low) {
      order.push_back(middle);
      gaps.emplace_back(low, middle);
      gaps.emplace_back(middle, high);
    }
  }
  return order;
}

}  // namespace

const BenchmarkFamily& family_in(const Row& row) { return find_family(family_of(row)); }

bool on_gpu(const Row& row) { return !row.device->is_host; }

std::string network_of(const Row& row) {
  return value_of(row.configuration, "model") + "/" + value_of(row.configuration, "batch");
}

LeastAndMost threads_of(Rows& rows, const std::vector<std::string>& names) {
  LeastAndMost threads;
  for (const std::string& name : names) {
    if (const std::string own = value_or_unsaid(rows[name].configuration, "cpu_threads");
        !own.empty()) {
      threads.least = std::min(threads.least, std::stoi(own));
      threads.most = std::max(threads.most, std::stoi(own));
    }
  }
  return threads;
}

bool is_of_the_ladder(const Row& row, const LeastAndMost& threads) {
  if (family_in(row).trains != Trains::epochs ||
      value_or_unsaid(row.configuration, "precision") != "f32") {
    return false;
  }
  if (on_gpu(row)) {
    return value_or_unsaid(row.configuration, "data") == "resident";
  }
  const std::int64_t own = number_of(row.configuration, "cpu_threads");
  return own == threads.least || own == threads.most;
}

std::size_t step_of(const Row& row, const LeastAndMost& threads) {
  if (family_in(row).trains != Trains::epochs) {
    return 0;
  }
  return !is_of_the_ladder(row, threads) ? step_of_the_others : on_gpu(row) ? risk_of(row) : 1;
}

std::set<std::string> first_of_the_ladder(Rows& rows, const std::vector<std::string>& names,
                                          const LeastAndMost& threads) {
  std::map<std::string, std::string> gpu;  // by network
  std::map<std::string, std::string> cpu;
  bool is_on_ladders = false;
  for (const std::string& name : names) {
    const Row& row = rows[name];
    if (!is_of_the_ladder(row, threads)) {
      continue;
    }
    const std::string network = network_of(row);
    if (on_gpu(row)) {
      std::string& least = gpu.try_emplace(network, name).first->second;
      least = risk_of(row) < risk_of(rows[least]) ? name : least;
      is_on_ladders |= !ladder_of(value_of(row.configuration, "model")).empty();
    } else if (number_of(row.configuration, "cpu_threads") == threads.most) {
      cpu[network] = name;
    }
  }
  std::set<std::string> first;
  for (const auto& [network, name] : gpu) {
    const std::string model = value_of(rows[name].configuration, "model");
    if (!is_on_ladders || !ladder_of(model).empty()) {
      first.insert(name);
      if (const auto beside = cpu.find(network); beside != cpu.end()) {
        first.insert(beside->second);
      }
    }
  }
  return first;
}

std::map<std::string, std::size_t> turns_of(Rows& rows, const std::vector<std::string>& names) {
  std::vector<std::string> ladders;                       // in the order of registration
  std::map<std::string, std::vector<std::string>> rungs;  // by ladder
  std::map<std::string, std::size_t> turns;
  for (const std::string& name : names) {
    const std::string network = network_of(rows[name]);
    if (!turns.emplace(network, 0).second) {
      continue;
    }
    const std::string ladder = ladder_of(value_of(rows[name].configuration, "model"));
    std::vector<std::string>& own = rungs[ladder];
    if (own.empty()) {
      ladders.push_back(ladder);
    }
    own.push_back(network);
  }
  std::size_t turn = 0;
  for (const std::string& ladder : ladders) {
    for (const std::size_t rung : halving(rungs[ladder].size())) {
      turns[rungs[ladder][rung]] = turn++;
    }
  }
  return turns;
}

}  // namespace crossover::bench
