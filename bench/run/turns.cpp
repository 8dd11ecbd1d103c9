// SPDX-License-Identifier: Apache-2.0
#include "run/turns.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "command_line/axes.h"

namespace crossover::bench {
namespace {

/// What is computed, however and wherever.
std::string work_of(const Row& row) {
  Configuration work;
  std::copy_if(row.configuration.begin(), row.configuration.end(), std::back_inserter(work),
               [](const auto& pair) { return find_axis(pair.first).role == AxisRole::what; });
  return row_name(work);
}

bool share_a_device(const std::vector<std::string>& names, Rows& rows) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return rows[name].device == rows[names.front()].device;
  });
}

}  // namespace

int repetitions_of(const Row& row, int of_sweep) {
  return row.repetitions > 0 ? row.repetitions : of_sweep;
}

std::vector<std::vector<std::string>> turns(const std::vector<PlannedRow>& plan, Rows& rows,
                                            Together together) {
  std::vector<std::vector<std::string>> groups;
  std::string work;
  for (const PlannedRow& planned : plan) {
    const std::string own = work_of(rows[planned.name]);
    if (groups.empty() || own != work) {
      groups.emplace_back();
      work = own;
    }
    groups.back().push_back(planned.name);
  }
  std::vector<std::vector<std::string>> found;
  for (const std::vector<std::string>& group : groups) {
    if (together == Together::all || !share_a_device(group, rows)) {
      found.push_back(group);
      continue;
    }
    for (const std::string& name : group) {
      found.push_back({name});
    }
  }
  return found;
}

void take_turns(const std::vector<std::string>& names, Rows& rows, Sampler& sampler,
                const std::function<int(const std::string& name)>& wanted,
                const std::function<bool(const std::string& name)>& has_time,
                std::mt19937* random) {
  std::vector<std::string> later;
  std::map<std::string, std::size_t> before;
  for (const std::string& name : names) {
    before[name] = rows[name].record.repetitions.size();
  }
  for (std::vector<std::string> left = names; !left.empty();) {
    if (random != nullptr) {
      std::shuffle(left.begin(), left.end(), *random);
    }
    std::erase_if(left, [&](const std::string& name) {
      const Record& record = rows[name].record;
      const auto taken = [&] { return static_cast<int>(record.repetitions.size()); };
      if (taken() >= wanted(name) || !has_time(name)) {
        return true;
      }
      if (sampler.repeat(name)) {
        return taken() >= wanted(name);
      }
      if (record.out_of_memory && names.size() > 1 && record.repetitions.size() == before[name]) {
        sampler.put_back(name);
        later.push_back(name);
      }
      return true;
    });
  }
  for (const std::string& name : names) {
    sampler.finish(name);
  }
  for (const std::string& name : later) {
    take_turns({name}, rows, sampler, wanted, has_time);
  }
}

}  // namespace crossover::bench
