// SPDX-License-Identifier: Apache-2.0
// Family Peak: the ceilings of each device, from which readers of the file take every other row's
// bound (plots/core/bounds.py knows which row is which ceiling).
#include <algorithm>
#include <string>

#include "rows/families.h"
#include "rows/probe_row.h"

namespace crossover::bench {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::int64_t float_bytes = sizeof(float);

Configuration named(const std::string& quantity, const Configuration& more, const Device& device,
                    const Configuration& side) {
  Configuration all{{"family", "Peak"}, {"quantity", quantity}};
  all.insert(all.end(), more.begin(), more.end());
  all.emplace_back("device", device.name());
  all.insert(all.end(), side.begin(), side.end());
  return all;
}

/// Whether its products in that precision are measured: where it has them, or where the command
/// line asks, so that the row says what is missing.
bool is_wanted(const Arguments& arguments, const Device& device, Precision precision) {
  const auto& asked = arguments.precisions;
  return device.backend->missing_for(precision).empty() ||
         std::find(asked.begin(), asked.end(), precision) != asked.end();
}

/// Far more than the caches hold, three times over.
std::int64_t triad_values(const Arguments& arguments, const Device& device,
                          std::int64_t least_bytes) {
  std::int64_t values = std::max(least_bytes, 2 * device.cache_bytes) / float_bytes;
  while (!is_modest(arguments, TriadProbe{.values = values}) && values > mebibyte) {
    values /= 2;
  }
  return values;
}

/// In all 4.5 GiB: the wait at the end is 1 % of the time on the fastest memory. On a smaller GPU
/// at most a quarter of its memory.
std::int64_t gpu_triad_values(const Device& gpu) {
  constexpr std::int64_t most = 1536 * mebibyte;
  const std::int64_t quarter = gpu.backend->describe().memory_bytes / 4;
  return std::max(std::min(most, quarter / 3), mebibyte) / float_bytes;
}

void register_cpu(const Arguments& arguments, Device& cpu, Rows& rows) {
  const auto add = [&](const std::string& quantity, const Configuration& more,
                       const ProbeSpec& spec, int threads) {
    const Configuration side{{"cpu_threads", std::to_string(threads)}};
    Row row = probe_row(arguments, cpu, named(quantity, more, cpu, side), spec);
    row.warnings = doubts_about_threads(threads);
    rows.add(std::move(row));
  };
  for (const int threads : thread_counts(arguments, arguments.sweep.threads)) {
    add("fma", {{"precision", "f32"}},
        FmaProbe{.values = std::int64_t{3072} * threads, .length = 1 << 14, .threads = threads},
        threads);

    constexpr std::int64_t least = 64 * mebibyte;
    add("triad", {}, TriadProbe{.values = triad_values(arguments, cpu, least), .threads = threads},
        threads);

    // The smaller ones stay in the caches, the larger ones keep many cores busy.
    for (const std::int64_t size : {512, 2048}) {
      constexpr Precision precision = Precision::bf16;
      if (!is_wanted(arguments, cpu, precision)) {
        break;
      }
      add("matrix", {{"precision", to_string(precision)}, {"size", std::to_string(size)}},
          MatrixProbe{.precision = precision, .size = size, .threads = threads}, threads);
    }

    add("fork-join", {}, ForkJoinProbe{.threads = threads}, threads);
  }
  // The C library's copy writes past the caches, and so reaches more than a plain loop.
  add("copy", {{"direction", "h2h"}},
      CopyProbe{.direction = Direction::host_to_host,
                .bytes = triad_values(arguments, cpu, 64 * mebibyte) * float_bytes},
      1);
}

void register_gpu(const Arguments& arguments, Device& gpu, Rows& rows) {
  const auto add = [&](const std::string& quantity, const Configuration& more,
                       const ProbeSpec& spec) {
    rows.add(probe_row(arguments, gpu, named(quantity, more, gpu, {}), spec));
  };
  add("fma", {{"precision", "f32"}}, FmaProbe{.values = 32 * mebibyte, .length = 1024});
  for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::f16}) {
    if (is_wanted(arguments, gpu, precision)) {
      constexpr std::int64_t size = 8192;
      add("matrix", {{"precision", to_string(precision)}},
          MatrixProbe{.precision = precision, .size = size});
    }
  }
  add("triad", {}, TriadProbe{.values = gpu_triad_values(gpu)});
  for (const auto& [name, direction] :
       {std::pair{"h2d", Direction::host_to_device}, std::pair{"d2h", Direction::device_to_host}}) {
    add("copy", {{"direction", name}},
        CopyProbe{.direction = direction,
                  .memory = HostMemory::pinned,
                  .asynchronous = true,
                  .bytes = 64 * mebibyte});
  }
  constexpr int many = 1000;
  add("launch", {}, LaunchProbe{});
  add("launches", {}, LaunchProbe{.launches = many});
  add("graph-node", {}, GraphNodeProbe{.nodes = many});
  add("synchronization", {}, SynchronizeProbe{});
}

}  // namespace

void register_peaks(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_cpu(arguments, devices.cpu(), rows);
  for (Device& gpu : devices.gpus()) {
    register_gpu(arguments, gpu, rows);
  }
}

}  // namespace crossover::bench
