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

}  // namespace

std::vector<Target> targets_of(Devices& devices, const Configuration& common,
                               const std::vector<int>& threads,
                               const std::vector<Configuration>& cpu_modes,
                               const std::vector<Configuration>& gpu_modes) {
  std::vector<Target> all;
  for (Device& device : devices.all) {
    for (const Configuration& mode : device.is_host ? on_threads(cpu_modes, threads) : gpu_modes) {
      Target target{.device = &device,
                    .options = options_of(joined(common, mode)),
                    .configuration = joined({{"device", device.name()}}, mode)};
      if (device.is_host) {
        target.warnings = doubts_about_threads(target.options.threads);
        target.counters["cpu_threads"] = target.options.threads;
      }
      all.push_back(std::move(target));
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
      Target target{.device = &host,
                    .ranks = ranks,
                    .bucket_bytes = bucket,
                    .options = options_of(joined(common, mode)),
                    .configuration = joined({{"device", host.name()},
                                             {"ranks", std::to_string(ranks)},
                                             {"bucket", std::to_string(bucket)}},
                                            mode)};
      target.warnings = doubts_about_threads(target.options.threads, ranks);
      target.counters["cpu_threads"] = target.options.threads;
      target.counters["ranks"] = ranks;
      all.push_back(std::move(target));
    }
  }
  return all;
}

}  // namespace crossover::bench
