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

#include "rows/families.h"

namespace crossover::bench {
namespace {

/// How large the work is, which an overview need not vary.
const std::set<std::string> size_axes{"model", "batch", "bytes", "m", "n", "k", "width", "size"};

bool on_gpu(const Row& row) { return !row.device->is_host; }

const BenchmarkFamily& family(const Row& row) { return find_family(family_of(row)); }

/// The row by which a network is represented: one of the fastest.
bool stands_for_its_network(const Row& row, const std::string& most_threads) {
  return value_or_unsaid(row.configuration, "precision") == "f32" &&
         (on_gpu(row) ? value_or_unsaid(row.configuration, "execution") ==
                            (family(row).trains == Trains::steps ? "graph" : "graph-epoch")
                      : value_or_unsaid(row.configuration, "cpu_threads") == most_threads);
}

std::string missing_for(const Row& row, const std::string& precision) {
  for (const Precision known : {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
    if (to_string(known) == precision) {
      return row.device->backend->missing_for(known);
    }
  }
  return "";
}

/// Of other precisions than f32 those that the device has, on the CPU on all threads.
bool is_wanted(const Row& row, const std::string& most_threads) {
  const BenchmarkFamily& its = family(row);
  if (its.is_worth_minutes != nullptr && !its.is_worth_minutes(row, most_threads)) {
    return false;
  }
  return is_in_f32(row) || its.bounds_others ||
         (missing_for(row, value_of(row.configuration, "precision")).empty() &&
          (on_gpu(row) || value_or_unsaid(row.configuration, "cpu_threads") == most_threads));
}

std::string most_threads_of(Rows& rows, const std::vector<std::string>& names) {
  int most = 0;
  for (const std::string& name : names) {
    const std::string threads = value_or_unsaid(rows[name].configuration, "cpu_threads");
    most = std::max(most, threads.empty() ? 0 : std::stoi(threads));
  }
  return std::to_string(most);
}

/// One row at least for each value of each axis of each family on each device; of networks, one for
/// each. The largest come first, and are what such a row is of: registration goes from small to
/// large.
std::set<std::string> overview(Rows& rows, const std::vector<std::string>& names,
                               const std::string& most_threads) {
  std::vector<std::string> candidates(names.rbegin(), names.rend());
  std::stable_partition(candidates.begin(), candidates.end(), [&](const std::string& name) {
    return stands_for_its_network(rows[name], most_threads);
  });
  std::set<std::string> chosen;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> shown;
  for (const std::string& name : candidates) {
    const Row& row = rows[name];
    bool is_new = false;
    for (const auto& [key, value] : row.configuration) {
      const bool is_network = family(row).trains == Trains::epochs && key == "model";
      if (!size_axes.contains(key) || is_network) {
        is_new |=
            shown
                .emplace(family(row).name, value_or_unsaid(row.configuration, "device"), key, value)
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

constexpr std::size_t first_pass_of_families = 2;

/// Family by family, in the order of registration.
std::vector<RankedRow> as_registered(Rows& rows, const std::vector<std::string>& names) {
  std::vector<RankedRow> ranked;
  ranked.reserve(names.size());
  for (const std::string& name : names) {
    ranked.push_back({.rank = {}, .row = {.name = name, .pass = family_of(rows[name])}});
  }
  return ranked;
}

std::vector<RankedRow> by_worth(Rows& rows, const std::vector<std::string>& names) {
  const std::string most_threads = most_threads_of(rows, names);
  std::vector<std::string> wanted;
  std::copy_if(names.begin(), names.end(), std::back_inserter(wanted),
               [&](const std::string& name) { return is_wanted(rows[name], most_threads); });
  const std::set<std::string> first = overview(rows, wanted, most_threads);
  std::vector<RankedRow> ranked;
  for (const std::string& name : wanted) {
    const BenchmarkFamily& its = family(rows[name]);
    const bool on_cpu = !on_gpu(rows[name]);
    RankedRow& one = ranked.emplace_back();
    one.row = {.name = name, .pass = its.name};
    one.rank = {.pass = first_pass_of_families + its.worth, .within = its.worth, .on_cpu = on_cpu};
    if (its.bounds_others) {
      one.row.pass = pass_of_ceilings;
      one.rank.pass = 0;
    } else if (first.contains(name)) {
      one.row.pass = "overview";
      one.rank.pass = 1;
      one.rank.within += on_cpu ? families().size() : 0;
    }
  }
  return ranked;
}

/// Whether the row is one of those that the crossover is made of: on the CPU by one thread and by
/// all of them, on a GPU with the data there.
bool is_of_the_ladder(const Row& row, const std::set<int>& threads) {
  if (family(row).trains != Trains::epochs ||
      value_or_unsaid(row.configuration, "precision") != "f32") {
    return false;
  }
  if (!row.device->is_host) {
    return value_or_unsaid(row.configuration, "data") == "resident";
  }
  const int own = std::stoi(value_or_unsaid(row.configuration, "cpu_threads"));
  return own == *threads.begin() || own == *threads.rbegin();
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

/// Ceilings, then the networks of the ladder, each step halving the widest gap between them, then
/// what is worth most.
std::vector<RankedRow> by_question(Rows& rows, const std::vector<std::string>& names) {
  std::set<int> threads;
  for (const std::string& name : names) {
    const std::string own = value_or_unsaid(rows[name].configuration, "cpu_threads");
    if (!own.empty()) {
      threads.insert(std::stoi(own));
    }
  }
  std::vector<RankedRow> ranked;
  std::map<std::string, std::size_t> rungs;  // by network and batch, in the order of registration
  for (const std::string& name : names) {
    const Row& row = rows[name];
    const BenchmarkFamily& its = family(row);
    RankedRow& one = ranked.emplace_back();
    one.row = {.name = name, .pass = its.name};
    if (its.bounds_others) {
      one.row.pass = pass_of_ceilings;
    } else if (is_of_the_ladder(row, threads)) {
      const std::string work = value_or_unsaid(row.configuration, "model") + "/" +
                               value_or_unsaid(row.configuration, "batch");
      one.row.pass = pass_of_networks;
      one.rank = {.pass = 1, .within = rungs.emplace(work, rungs.size()).first->second};
    } else {
      one.rank.pass = first_pass_of_families + its.worth;
    }
  }
  std::vector<std::size_t> turn_of(rungs.size());
  const std::vector<std::size_t> turns = halving(rungs.size());
  for (std::size_t turn = 0; turn < turns.size(); ++turn) {
    turn_of[turns[turn]] = turn;
  }
  for (RankedRow& one : ranked) {
    if (one.row.pass == pass_of_networks) {
      one.rank.within = turn_of[one.rank.within];
    }
  }
  return ranked;
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
  std::vector<RankedRow> ranked = sweep.by_worth  ? by_worth(rows, names)
                                  : within_budget ? by_question(rows, names)
                                                  : as_registered(rows, names);
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

void print(std::ostream& to, const std::vector<PlannedRow>& plan) {
  std::vector<std::pair<std::string, std::pair<int, double>>> passes;
  double sum = 0;
  std::array<char, 64> text{};
  for (const PlannedRow& planned : plan) {
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
  for (const auto& [pass, of_pass] : passes) {
    std::snprintf(text.data(), text.size(), "%-9s %5d rows %7.1f s\n", pass.c_str(), of_pass.first,
                  of_pass.second);
    to << text.data();
  }
  std::snprintf(text.data(), text.size(), "%-9s %5zu rows %7.1f s\n", "all", plan.size(), sum);
  to << text.data() << std::flush;
}

}  // namespace crossover::bench
