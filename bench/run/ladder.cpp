// SPDX-License-Identifier: Apache-2.0
#include "run/ladder.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "crossover/catalogue.h"

namespace crossover::bench {
namespace {

/// The executions of a GPU, those first with which the least can go wrong: calls that libraries
/// make for everyone, then what is our own, and what tries all of them.
constexpr std::array executions_by_risk{Execution::eager, Execution::graph, Execution::graph_epoch,
                                        Execution::persistent, Execution::automatic};
static_assert(executions_by_risk.size() == step_of_the_others);

std::size_t risk_of(const Row& row) {
  const auto at = std::find(executions_by_risk.begin(), executions_by_risk.end(),
                            options_of(row.configuration).execution);
  return static_cast<std::size_t>(at - executions_by_risk.begin());
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
