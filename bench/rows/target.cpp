// SPDX-License-Identifier: Apache-2.0
#include "rows/target.h"

namespace crossover::bench {
namespace {

std::vector<Configuration> on_threads(const std::vector<Configuration>& modes,
                                      const std::vector<int>& threads) {
  std::vector<Configuration> all;
  for (const int count : threads) {
    for (const Configuration& mode : modes) {
      all.push_back(joined(mode, {{"cpu_threads", std::to_string(count)}}));
    }
  }
  return all;
}

/// The host's, of that many ranks.
Target host_target(Device& host, const Configuration& common, const Configuration& mode,
                   int ranks = 1) {
  const int loader = std::stoi(value_or_unsaid(mode, "loader"));
  Target target{.device = &host,
                .ranks = ranks,
                .loader = loader,
                .options = options_of(joined(common, mode)),
                .configuration = joined({{"device", host.name()}}, mode)};
  target.warnings = doubts_about_threads(target.options.threads, ranks, loader);
  target.counters["cpu_threads"] = target.options.threads;
  return target;
}

}  // namespace

std::vector<Target> targets_of(Devices& devices, const Configuration& common,
                               const std::vector<int>& threads,
                               const std::vector<Configuration>& cpu_modes,
                               const std::vector<Configuration>& gpu_modes) {
  std::vector<Target> all;
  for (const Configuration& mode : on_threads(cpu_modes, threads)) {
    all.push_back(host_target(devices.cpu(), common, mode));
  }
  for (Device& gpu : devices.gpus()) {
    for (const Configuration& mode : gpu_modes) {
      all.push_back({.device = &gpu,
                     .options = options_of(joined(common, mode)),
                     .configuration = joined({{"device", gpu.name()}}, mode)});
    }
  }
  return all;
}

std::vector<Target> targets_on_ranks(Device& host, const Configuration& common, int ranks,
                                     const std::vector<int>& threads,
                                     const std::vector<std::int64_t>& buckets,
                                     const std::vector<Configuration>& modes) {
  std::vector<Target> all;
  for (const Configuration& mode : on_threads(modes, threads)) {
    for (const std::int64_t bucket : buckets) {
      Target target = host_target(host, common, mode, ranks);
      target.bucket_bytes = bucket;
      target.configuration = joined(target.configuration, {{"ranks", std::to_string(ranks)},
                                                           {"bucket", std::to_string(bucket)}});
      target.counters["ranks"] = ranks;
      all.push_back(std::move(target));
    }
  }
  return all;
}

}  // namespace crossover::bench
