// SPDX-License-Identifier: Apache-2.0
#include "families/order.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "crossover/catalogue.h"
#include "crossover/executions.h"
#include "families/families.h"

namespace crossover::bench {

namespace {

using Names = std::vector<std::string>;

bool trains_epochs(const Row& row) { return family_of(row.spec).trains == Trains::epochs; }

bool on_gpu(const Row& row) { return !row.device->has_threads(); }

/// The network's ladder; empty where it is on none, or where the row is of no network.
std::string ladder_of_row(const Row& row) { return ladder_of(row.spec.model.value_or("")); }

/// "disc-2/100": of a row of a network.
std::string network_of(const Row& row) {
  return row.spec.model.value_or("") + "/" + text_of(row.spec, &RowSpec::batch);
}

std::size_t risk_of(const Row& row) { return facts_of(options_of(row.spec).execution).risk; }

bool is_a_plain_graph(const Row& row) {
  return row.spec.execution == Execution::graph && row.spec.products != ProductChoice::autotuned;
}

// ---- Which rows a sweep of minutes has

/// The row by which a network is represented.
bool stands_for_its_network(const Row& row, int most_threads) {
  const bool is_of_steps = family_of(row.spec).trains == Trains::steps;
  return row.spec.precision == Precision::f32 &&
         (on_gpu(row)
              ? row.spec.placement == Placement::resident &&
                    row.spec.execution == (is_of_steps ? Execution::graph : Execution::eager)
              : row.spec.threads == most_threads);
}

/// Of other precisions than f32 those that the device has, on the CPU on all threads.
bool is_wanted(const Row& row, int most_threads) {
  return is_worth_minutes(row, most_threads) &&
         (is_in_f32(row) || family_of(row.spec).bounds_others ||
          (row.device->backend->missing_for(options_of(row.spec).precision).empty() &&
           (on_gpu(row) || row.spec.threads == most_threads)));
}

/// One row at least for each value of each axis of each family on each device; of networks, one for
/// each. Those that come `first` anyway are taken into account. The largest of the others are
/// preferred: registration goes from small to large.
std::set<std::string> overview(Rows& rows, const Names& names, const std::set<std::string>& first,
                               int most_threads) {
  // How large the work is, which an overview need not vary.
  const std::set<std::string> sizes{"model", "batch", "bytes", "m", "n", "k", "width", "size"};
  Names candidates(names.rbegin(), names.rend());
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
    for (const auto& [key, value] : configuration_of(row.spec)) {
      const bool counts = !sizes.contains(key) || (trains_epochs(row) && key == "model");
      if (counts &&
          shown.emplace(family_of(row.spec).name, row.spec.device.value_or(""), key, value)
              .second) {
        chosen.insert(name);
      }
    }
  }
  return chosen;
}

// ---- The ladder: the rows that a crossover is made of, in the order in which they are worth most
// and risk least.

/// 0 and 4, then 2, then 1 and 3: each step halves the widest gap, so that a ladder that ends early
/// has its ends and even rungs.
std::vector<std::size_t> halving(std::size_t count) {
  std::vector<std::size_t> order{0};
  if (count > 1) {
    order.push_back(count - 1);
  }
  std::deque<std::pair<std::size_t, std::size_t>> gaps{{0, count - 1}};
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

/// Every second one, the middle before the ends; of few rungs none, which are soon all measured.
std::vector<std::size_t> every_second(std::size_t count) {
  constexpr std::size_t few = 4;
  std::vector<std::size_t> rungs;
  for (std::size_t rung = 0; rung < count && count > few; rung += 2) {
    rungs.push_back(rung);
  }
  const auto twice_the_middle = static_cast<std::ptrdiff_t>(count) - 1;
  std::ranges::stable_sort(rungs, {}, [&](std::size_t rung) {
    return std::abs(2 * static_cast<std::ptrdiff_t>(rung) - twice_the_middle);
  });
  return rungs;
}

/// By network of these rows, when its turn is: ladder by ladder, each with one batch, in the order
/// of registration.
/// `rungs` says which of so many have one, and in which order.
std::map<std::string, std::size_t> turns_of(
    Rows& rows, const Names& names,
    const std::function<std::vector<std::size_t>(std::size_t count)>& rungs) {
  std::vector<std::pair<std::string, Names>> ladders;  // with their networks
  std::set<std::string> met;
  for (const std::string& name : names) {
    const std::string network = network_of(rows[name]);
    if (met.insert(network).second) {
      const std::string ladder =
          ladder_of_row(rows[name]) + "/" + text_of(rows[name].spec, &RowSpec::batch);
      const auto known = std::ranges::find(ladders, ladder, &std::pair<std::string, Names>::first);
      (known == ladders.end() ? ladders.emplace_back(ladder, Names()) : *known)
          .second.push_back(network);
    }
  }
  std::map<std::string, std::size_t> turns;
  for (const auto& [ladder, networks] : ladders) {
    for (const std::size_t rung : rungs(networks.size())) {
      turns.emplace(networks[rung], turns.size());
    }
  }
  return turns;
}

/// The rows of a sweep, and what their ranks stand on.
class Sweeping {
 public:
  Sweeping(Rows& rows, const Names& names) : rows_(rows), names_(names) {
    for (const std::string& name : names) {
      const RowSpec& spec = rows[name].spec;
      if (trains_epochs(rows[name])) {
        rungs_[ladder_of_row(rows[name])][spec.batch].insert(spec.model.value_or(""));
      }
      if (spec.threads) {
        least_threads_ = std::min(least_threads_, *spec.threads);
        most_threads_ = std::max(most_threads_, *spec.threads);
      }
    }
  }

  [[nodiscard]] int most_threads() const { return most_threads_; }

  /// Whether the row is one of those that the crossover is made of: on the CPU by one thread and by
  /// all of them, on a GPU with the data there.
  [[nodiscard]] bool is_of_the_ladder(const Row& row) const {
    if (!trains_epochs(row) || row.spec.precision != Precision::f32 || is_aside(row)) {
      return false;
    }
    return on_gpu(row) ? row.spec.placement == Placement::resident : has_threads_of_the_ladder(row);
  }

  /// Of a ladder in a batch in which it has less than half as many rungs as in another.
  [[nodiscard]] bool is_aside(const Row& row) const {
    const std::string ladder = ladder_of_row(row);
    const auto& by_batch = rungs_.at(ladder);
    const auto count = [](const auto& rungs) { return rungs.second.size(); };
    const std::size_t most = std::ranges::max(by_batch | std::views::transform(count));
    return !ladder.empty() && 2 * by_batch.at(row.spec.batch).size() < most;
  }

  /// On the CPU.
  [[nodiscard]] bool has_threads_of_the_ladder(const Row& row) const {
    const int threads = value_of(row.spec, &RowSpec::threads);
    return threads == least_threads_ || threads == most_threads_;
  }

  [[nodiscard]] Names of_the_ladder() const {
    Names found;
    std::ranges::copy_if(names_, std::back_inserter(found),
                         [&](const std::string& name) { return is_of_the_ladder(rows_[name]); });
    return found;
  }

  /// Of what trains epochs, the GPU's part of the ladder goes by risk, and the CPU's further rows
  /// beside it; what is not of the ladder comes behind.
  [[nodiscard]] std::size_t step_of(const Row& row) const {
    return !trains_epochs(row)      ? 0
           : !is_of_the_ladder(row) ? step_of_the_others
           : on_gpu(row)            ? risk_of(row)
                                    : 1;
  }
  static constexpr std::size_t step_of_the_others = most_risk + 1;

  /// What the question needs before all else, of the networks on ladders, or without any, where
  /// there is a GPU, of all. They are a crossover, whatever comes of the rest:
  ///   with a GPU     of each network its row with which the least can go wrong, and the CPU's on
  ///                  all threads beside it, of several executions that which was registered last
  ///                  (auto)
  ///   without one    those of the ladder: by one thread, and by all
  [[nodiscard]] std::set<std::string> first() const {
    std::map<std::string, std::string> gpu;  // by network
    std::map<std::string, std::string> cpu;
    const auto is_on_a_ladder = [&](const std::string& name) {
      return !ladder_of_row(rows_[name]).empty();
    };
    bool are_on_ladders = false;
    for (const std::string& name : of_the_ladder()) {
      const Row& row = rows_[name];
      are_on_ladders |= is_on_a_ladder(name);
      if (on_gpu(row)) {
        std::string& least = gpu.try_emplace(network_of(row), name).first->second;
        least = risk_of(row) < risk_of(rows_[least]) ? name : least;
      } else if (row.spec.threads == most_threads()) {
        cpu[network_of(row)] = name;
      }
    }
    std::set<std::string> found;
    for (const std::string& name : of_the_ladder()) {
      const Row& row = rows_[name];
      const std::string network = network_of(row);
      if (are_on_ladders ? !is_on_a_ladder(name) : gpu.empty()) {
        continue;
      }
      const auto least = gpu.find(network);
      const auto beside = cpu.find(network);
      if (gpu.empty() || (least != gpu.end() && least->second == name) ||
          (least != gpu.end() && beside != cpu.end() && beside->second == name)) {
        found.insert(name);
      }
    }
    return found;
  }

 private:
  Rows& rows_;
  const Names& names_;
  /// Networks, by ladder and batch.
  std::map<std::string, std::map<std::optional<std::int64_t>, std::set<std::string>>> rungs_;
  int least_threads_ = std::numeric_limits<int>::max(), most_threads_ = 0;
};

// ---- Ranks

/// Where a row comes: in which pass, and where in it. Rows of the same rank stay as registered.
struct Rank {
  std::size_t pass = 0;
  std::size_t step = 0;  ///< see Sweeping::step_of()
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

/// Before the families: what answers, others of the ladders, ceilings, and what else a sweep puts
/// there.
constexpr std::size_t first_pass_of_families = 4;
constexpr std::size_t pass_of_bounds = 2;
constexpr std::size_t first_step_behind_bounds = 1;

/// What answers, and where there is a GPU the others of the ladders. Behind them:
///   by worth        ceilings, an overview, then what is worth most; the GPU's before the CPU's
///   within a budget ceilings (without a GPU before what answers), the networks of the ladder, each
///   step halving the widest gap between
///                   them, then what is worth most
///   else            family by family, in the order of registration
std::vector<RankedRow> ranked(Rows& rows, const Names& names, bool by_worth, bool within_budget) {
  const Sweeping sweep(rows, names);
  const std::set<std::string> first = sweep.first();
  Names first_names;  // in the order of registration
  Names on_ladders;   // of these
  for (const std::string& name : names) {
    if (first.contains(name)) {
      first_names.push_back(name);
      if (!ladder_of_row(rows[name]).empty()) {
        on_ladders.push_back(name);
      }
    }
  }
  using TurnOf = std::map<std::string, std::size_t>;
  const TurnOf answer_turns = turns_of(rows, on_ladders, every_second);
  const TurnOf first_turns = turns_of(rows, first_names, halving);
  const TurnOf turns = turns_of(rows, sweep.of_the_ladder(), halving);
  const bool has_gpu =
      std::ranges::any_of(names, [&](const auto& name) { return on_gpu(rows[name]); });
  const std::set<std::string> shown =
      by_worth ? overview(rows, names, first, sweep.most_threads()) : std::set<std::string>();
  std::map<std::string, std::size_t> met;  // families
  std::vector<RankedRow> all;
  for (const std::string& name : names) {
    const Row& row = rows[name];
    const BenchmarkFamily& its = family_of(row.spec);
    const bool on_cpu = !on_gpu(row);
    const std::size_t step = has_gpu ? sweep.step_of(row) : 0;
    RankedRow& one = all.emplace_back(RankedRow{.rank = {}, .row = {.name = name}});
    const auto place = [&](const std::string& pass, const Rank& rank) {
      one.row.pass = pass;
      one.rank = rank;
    };
    const std::size_t risk = on_cpu ? 0 : risk_of(row);
    const auto answers = answer_turns.find(network_of(row));
    const bool is_graph = sweep.is_of_the_ladder(row) && is_a_plain_graph(row);
    if ((first.contains(name) || is_graph) && answers != answer_turns.end()) {
      place(pass_of_answer, {.pass = within_budget && !has_gpu ? pass_of_bounds : 0,
                             .step = first_step_behind_bounds + risk,
                             .within = answers->second,
                             .on_cpu = on_cpu});
    } else if (first.contains(name) && has_gpu) {
      place(pass_of_ladder,
            {.pass = 1, .step = risk, .within = first_turns.at(network_of(row)), .on_cpu = on_cpu});
    } else if (by_worth) {
      Rank rank{.pass = first_pass_of_families + its.worth,
                .step = on_cpu ? Sweeping::step_of_the_others + 1 : step,
                .within = its.worth,
                .on_cpu = on_cpu};
      const bool is_shown = shown.contains(name);
      rank.pass = its.bounds_others ? pass_of_bounds : is_shown ? 3 : rank.pass;
      place(its.bounds_others ? pass_of_ceilings : is_shown ? "overview" : its.name, rank);
    } else if (!within_budget) {
      place(its.name,
            {.pass = first_pass_of_families + met.emplace(its.name, met.size()).first->second,
             .step = step});
    } else if (its.bounds_others) {
      place(pass_of_ceilings, {.pass = pass_of_bounds});
    } else if (sweep.is_of_the_ladder(row)) {
      place(pass_of_networks, {.pass = 3, .step = step, .within = turns.at(network_of(row))});
    } else {
      place(its.name, {.pass = first_pass_of_families + its.worth});
    }
  }
  return all;
}

}  // namespace

std::vector<PlannedRow> ordered(Rows& rows, const std::vector<std::string>& names,
                                const Sweep& sweep, bool within_budget) {
  Names wanted = names;
  if (sweep.by_worth) {
    const int most_threads = Sweeping(rows, names).most_threads();
    std::erase_if(wanted,
                  [&](const std::string& name) { return !is_wanted(rows[name], most_threads); });
  }
  std::vector<RankedRow> all = ranked(rows, wanted, sweep.by_worth, within_budget);
  std::ranges::stable_sort(all, {}, &RankedRow::rank);
  std::vector<PlannedRow> plan;
  std::set<std::string> references;
  for (RankedRow& one : all) {
    const Row& row = rows[one.row.name];
    one.row.seconds = row.expected.all;
    if (references.insert(row.reference).second) {  // the first of those that share it computes it
      one.row.seconds += row.reference_seconds;
    }
    plan.push_back(std::move(one.row));
  }
  return plan;
}

void keep_share_of_peers(std::vector<PlannedRow>& plan, Rows& rows, double share,
                         std::optional<double> budget_seconds) {
  const Names names = names_of(plan);
  const Sweeping sweep(rows, names);
  std::erase_if(plan, [&](const PlannedRow& planned) {
    const Row& row = rows[planned.name];
    return is_of_a_peer(row) && !on_gpu(row) && !sweep.has_threads_of_the_ladder(row);
  });
  double ours = 0;
  std::vector<std::pair<std::string, double>> works;  // with what others take for them, in seconds
  for (const PlannedRow& planned : plan) {
    if (!is_of_a_peer(rows[planned.name])) {
      ours += planned.seconds;
      continue;
    }
    const std::string work = work_of(rows[planned.name]);
    const auto known = std::ranges::find(works, work, &std::pair<std::string, double>::first);
    (known == works.end() ? works.emplace_back(work, 0.0) : *known).second += planned.seconds;
  }
  double open = budget_seconds ? share * *budget_seconds : share / (1 - share) * ours;
  std::set<std::string> kept;
  for (const auto& [work, seconds] : works) {
    if (seconds <= open) {
      open -= seconds;
      kept.insert(work);
    }
  }
  std::erase_if(plan, [&](const PlannedRow& planned) {
    const Row& row = rows[planned.name];
    return is_of_a_peer(row) && !kept.contains(work_of(row));
  });
}

}  // namespace crossover::bench
