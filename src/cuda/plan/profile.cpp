// SPDX-License-Identifier: Apache-2.0
#include "profile.h"

#include <algorithm>
#include <numeric>

namespace crossover::cuda {
namespace {

double total(const Profile& profile) {
  return std::accumulate(profile.begin(), profile.end(), 0.0,
                         [](double sum, const auto& part) { return sum + part.second; });
}

}  // namespace

Profile combine(const RunSeconds& run, Placement placement, bool wait_every_step) {
  Profile whole;
  double launch = 0;
  double host = run.host_once;
  double device = 0;
  std::int64_t runs = 0;
  for (const StepSeconds& step : run.steps) {
    const auto times = static_cast<double>(step.runs);
    const double computing = total(step.device);
    for (const auto& [kind, seconds] : step.device) {
      whole[kind] += times * seconds;
    }
    double copy = step.copy;
    if (placement == Placement::pinned_async) {
      copy = std::max(0.0, copy - computing);
    }
    if (placement != Placement::resident) {
      whole[OpCategory::copy_to_device] += times * copy;
    }
    // A pageable copy holds the CPU as long as it lasts, so that launches hide behind the
    // computation alone; any other copy is work like the computation's.
    const double behind = computing + (placement == Placement::pageable ? 0 : copy);
    if (wait_every_step || placement == Placement::pageable) {
      launch += times * std::max(0.0, step.host - behind);
    } else {
      host += times * step.host;
      device += times * behind;
    }
    runs += step.runs;
  }
  launch += std::max(0.0, host - device);
  whole[OpCategory::launch] = launch;
  whole[OpCategory::synchronization] = run.wait * static_cast<double>(wait_every_step ? runs : 1);
  return whole;
}

}  // namespace crossover::cuda
