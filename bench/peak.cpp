// SPDX-License-Identifier: Apache-2.0
// Family Peak: the ceilings of each device, which every other row's bound is taken from.
#include <algorithm>
#include <string>

#include "families.h"
#include "probe_row.h"

namespace crossover::bench {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::int64_t float_bytes = sizeof(float);

/// What raises a ceiling by the rate that a counter holds.
auto raises(Ceiling ceiling, const Device& device, Precision precision, int threads,
            const char* counter) {
  return [=, name = device.name()](Ceilings& ceilings, const benchmark::UserCounters& counters) {
    ceilings.raise(ceiling, name, precision, threads, counters.at(counter).value);
  };
}

/// The same of a time: so many a second.
auto raises_by_time(Ceiling ceiling, const Device& device) {
  return [=, name = device.name()](Ceilings& ceilings, const benchmark::UserCounters& counters) {
    ceilings.raise(ceiling, name, Precision::f32, 0, 1 / counters.at("seconds").value);
  };
}

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
std::int64_t triad_values(const Device& device, std::int64_t least_bytes) {
  std::int64_t values = std::max(least_bytes, 2 * device.cache_bytes) / float_bytes;
  while (!is_modest(TriadProbe{.values = values}) && values > mebibyte) {
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
  const auto add = [&](Row row, int threads) {
    row.quality = doubts_about_threads(threads);
    rows.add(std::move(row));
  };
  for (const int threads : thread_counts(arguments)) {
    const Configuration side{{"cpu_threads", std::to_string(threads)}};
    Row fma = probe_row(
        arguments, cpu, named("fma", {{"precision", "f32"}}, cpu, side),
        FmaProbe{.values = std::int64_t{3072} * threads, .length = 1 << 14, .threads = threads});
    fma.raise = raises(Ceiling::flops_per_second, cpu, Precision::f32, threads, "flops_per_second");
    add(std::move(fma), threads);

    constexpr std::int64_t least = 64 * mebibyte;
    Row triad = probe_row(arguments, cpu, named("triad", {}, cpu, side),
                          TriadProbe{.values = triad_values(cpu, least), .threads = threads});
    triad.raise =
        raises(Ceiling::memory_bytes_per_second, cpu, Precision::f32, threads, "bytes_per_second");
    add(std::move(triad), threads);

    // The smaller ones stay in the caches, the larger ones keep many cores busy.
    for (const std::int64_t size : {512, 2048}) {
      constexpr Precision precision = Precision::bf16;
      if (!is_wanted(arguments, cpu, precision)) {
        break;
      }
      Row matrix = probe_row(
          arguments, cpu,
          named("matrix", {{"precision", to_string(precision)}, {"size", std::to_string(size)}},
                cpu, side),
          MatrixProbe{.precision = precision, .size = size, .threads = threads});
      matrix.raise = raises(Ceiling::flops_per_second, cpu, precision, threads, "flops_per_second");
      add(std::move(matrix), threads);
    }

    add(probe_row(arguments, cpu, named("fork-join", {}, cpu, side),
                  ForkJoinProbe{.threads = threads}),
        threads);
  }
  const CopyProbe copy{.direction = Direction::host_to_host,
                       .bytes = triad_values(cpu, 64 * mebibyte) * float_bytes};
  Row row = probe_row(arguments, cpu,
                      named("copy", {{"direction", "h2h"}}, cpu, {{"cpu_threads", "1"}}), copy);
  // The C library's copy writes past the caches, and so reaches more than a plain loop.
  row.raise = [name = cpu.name()](Ceilings& ceilings, const benchmark::UserCounters& counters) {
    const double read_and_written = 2 * counters.at("bytes_per_second").value;
    ceilings.raise(Ceiling::memory_bytes_per_second, name, Precision::f32, 1, read_and_written);
  };
  add(std::move(row), 1);
}

void register_gpu(const Arguments& arguments, Device& gpu, Rows& rows) {
  const auto add = [&](const std::string& quantity, const Configuration& more,
                       const ProbeSpec& spec, auto raise) {
    Row row = probe_row(arguments, gpu, named(quantity, more, gpu, {}), spec);
    row.raise = raise;
    rows.add(std::move(row));
  };
  const decltype(Row::raise) nothing;
  add("fma", {{"precision", "f32"}}, FmaProbe{.values = 32 * mebibyte, .length = 1024},
      raises(Ceiling::flops_per_second, gpu, Precision::f32, 0, "flops_per_second"));
  for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::f16}) {
    if (is_wanted(arguments, gpu, precision)) {
      constexpr std::int64_t size = 8192;
      add("matrix", {{"precision", to_string(precision)}},
          MatrixProbe{.precision = precision, .size = size},
          raises(Ceiling::flops_per_second, gpu, precision, 0, "flops_per_second"));
    }
  }
  add("triad", {}, TriadProbe{.values = gpu_triad_values(gpu)},
      raises(Ceiling::memory_bytes_per_second, gpu, Precision::f32, 0, "bytes_per_second"));
  for (const auto& [name, direction, ceiling] :
       {std::tuple{"h2d", Direction::host_to_device, Ceiling::bytes_per_second_to_device},
        std::tuple{"d2h", Direction::device_to_host, Ceiling::bytes_per_second_from_device}}) {
    add("copy", {{"direction", name}},
        CopyProbe{.direction = direction,
                  .memory = HostMemory::pinned,
                  .asynchronous = true,
                  .bytes = 64 * mebibyte},
        raises(ceiling, gpu, Precision::f32, 0, "bytes_per_second"));
  }
  constexpr int many = 1000;
  add("launch", {}, LaunchProbe{}, nothing);
  add("launches", {}, LaunchProbe{.launches = many},
      raises_by_time(Ceiling::launches_per_second, gpu));
  add("graph-node", {}, GraphNodeProbe{.nodes = many},
      raises_by_time(Ceiling::graph_nodes_per_second, gpu));
  add("synchronization", {}, SynchronizeProbe{}, nothing);
}

}  // namespace

void register_peaks(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_cpu(arguments, devices.cpu, rows);
  if (devices.gpu) {
    register_gpu(arguments, *devices.gpu, rows);
  }
}

}  // namespace crossover::bench
