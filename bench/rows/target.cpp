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

Target host_target(Device& host, const Configuration& common, const Configuration& mode,
                   int ranks) {
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

Target gpu_target(Device& gpu, const Configuration& common, const Configuration& mode, int ranks) {
  Target target{.device = &gpu,
                .ranks = ranks,
                .options = options_of(joined(common, mode)),
                .configuration = joined({{"device", gpu.name()}}, mode)};
  if (ranks > 1) {
    target.warnings = doubts_about_gpus();
  }
  return target;
}

std::vector<Target> of_all(Devices& devices, const Configuration& common, int ranks,
                           const std::vector<int>& threads,
                           const std::vector<Configuration>& cpu_modes,
                           const std::vector<Configuration>& gpu_modes) {
  std::vector<Target> all;
  for (const Configuration& mode : on_threads(cpu_modes, threads)) {
    all.push_back(host_target(devices.cpu(), common, mode, ranks));
  }
  for (Device& gpu : devices.gpus()) {
    for (const Configuration& mode : gpu_modes) {
      all.push_back(gpu_target(gpu, common, mode, ranks));
    }
  }
  return all;
}

}  // namespace

std::vector<Target> targets_of(Devices& devices, const Configuration& common,
                               const std::vector<int>& threads,
                               const std::vector<Configuration>& cpu_modes,
                               const std::vector<Configuration>& gpu_modes) {
  return of_all(devices, common, 1, threads, cpu_modes, gpu_modes);
}

std::vector<Target> targets_on_ranks(Devices& devices, const Configuration& common, int ranks,
                                     const std::vector<int>& threads,
                                     const std::vector<std::int64_t>& buckets,
                                     const std::vector<Configuration>& cpu_modes,
                                     const std::vector<Configuration>& gpu_modes) {
  std::vector<Target> all;
  for (Target target : of_all(devices, common, ranks, threads, cpu_modes, gpu_modes)) {
    const Configuration own = target.configuration;
    for (const std::int64_t bucket : buckets) {
      target.bucket_bytes = bucket;
      target.configuration =
          joined(own, {{"ranks", std::to_string(ranks)}, {"bucket", std::to_string(bucket)}});
      target.counters["ranks"] = ranks;
      all.push_back(target);
    }
  }
  return all;
}

}  // namespace crossover::bench
