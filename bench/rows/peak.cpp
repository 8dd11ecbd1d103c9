// SPDX-License-Identifier: Apache-2.0
// Family Peak: the ceilings of each device, from which readers of the file take every other row's
// bound (plots/core/bounds.py knows which row is which ceiling).
#include <algorithm>
#include <string>

#include "rows/device.h"
#include "rows/families.h"
#include "rows/probe_row.h"

namespace crossover::bench {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::int64_t float_bytes = sizeof(float);

/// Whether its products in that precision are measured: where it has them, or where the command
/// line asks, so that the row says what is missing.
bool is_wanted(const Arguments& arguments, const Device& device, Precision precision) {
  const auto& asked = arguments.precisions;
  return device.backend->missing_for(precision).empty() || contains(asked, precision);
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

// ---- what a row measures

ProbeSpec cpu_probe(const Configuration& row, const Arguments& arguments, const Device& cpu) {
  constexpr std::int64_t least = 64 * mebibyte;
  const std::string& quantity = value_of(row, "quantity");
  const auto threads = static_cast<int>(number_of(row, "cpu_threads"));
  if (quantity == "fma") {
    return FmaProbe{.values = std::int64_t{3072} * threads, .length = 1 << 14, .threads = threads};
  }
  if (quantity == "triad") {
    return TriadProbe{.values = triad_values(arguments, cpu, least), .threads = threads};
  }
  if (quantity == "matrix") {
    return MatrixProbe{
        .precision = options_of(row).precision, .size = number_of(row, "size"), .threads = threads};
  }
  if (quantity == "fork-join") {
    return ForkJoinProbe{.threads = threads};
  }
  // The C library's copy writes past the caches, and so reaches more than a plain loop.
  return CopyProbe{.direction = Direction::host_to_host,
                   .bytes = triad_values(arguments, cpu, least) * float_bytes};
}

ProbeSpec gpu_probe(const Configuration& row, const Device& gpu) {
  constexpr int many = 1000;
  const std::string& quantity = value_of(row, "quantity");
  if (quantity == "fma") {
    return FmaProbe{.values = 32 * mebibyte, .length = 1024};
  }
  if (quantity == "triad") {
    return TriadProbe{.values = gpu_triad_values(gpu)};
  }
  if (quantity == "matrix") {
    return MatrixProbe{.precision = options_of(row).precision, .size = 8192};
  }
  if (quantity == "copy") {
    return CopyProbe{.direction = value_of(row, "direction") == "h2d" ? Direction::host_to_device
                                                                      : Direction::device_to_host,
                     .memory = HostMemory::pinned,
                     .asynchronous = true,
                     .bytes = 64 * mebibyte};
  }
  if (quantity == "launch" || quantity == "launches") {
    return LaunchProbe{.launches = quantity == "launch" ? 1 : many};
  }
  if (quantity == "graph-node") {
    return GraphNodeProbe{.nodes = many};
  }
  return SynchronizeProbe{};
}

ProbeSpec ceiling_in(const Configuration& row, const Arguments& arguments, const Device& device) {
  return device.is_host ? cpu_probe(row, arguments, device) : gpu_probe(row, device);
}

// ---- rows

/// Adds rows of one device.
class Adding {
 public:
  Adding(const Arguments& arguments, Device& device, Rows& rows)
      : arguments_(arguments), device_(device), rows_(rows) {}

  void operator()(const std::string& quantity, const Configuration& more = {}, int threads = 0) {
    Configuration row =
        joined({{"family", "Peak"}, {"quantity", quantity}, {"device", device_.name()}}, more);
    if (threads > 0) {
      row.emplace_back("cpu_threads", std::to_string(threads));
    }
    Row added = probe_row(arguments_, device_, row, ceiling_in(row, arguments_, device_));
    if (threads > 0) {
      added.warnings = doubts_about_threads(threads);
    }
    rows_.add(std::move(added));
  }

 private:
  const Arguments& arguments_;
  Device& device_;
  Rows& rows_;
};

void register_cpu(const Arguments& arguments, Device& cpu, Rows& rows) {
  Adding add(arguments, cpu, rows);
  for (const int threads : thread_counts(arguments, arguments.sweep.threads)) {
    add("fma", {{"precision", "f32"}}, threads);
    add("triad", {}, threads);
    // The smaller ones stay in the caches, the larger ones keep many cores busy.
    for (const char* size : {"512", "2048"}) {
      constexpr Precision precision = Precision::bf16;
      if (is_wanted(arguments, cpu, precision)) {
        add("matrix", {{"precision", to_string(precision)}, {"size", size}}, threads);
      }
    }
    add("fork-join", {}, threads);
  }
  add("copy", {{"direction", "h2h"}}, 1);
}

void register_gpu(const Arguments& arguments, Device& gpu, Rows& rows) {
  Adding add(arguments, gpu, rows);
  add("fma", {{"precision", "f32"}});
  for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::f16}) {
    if (is_wanted(arguments, gpu, precision)) {
      add("matrix", {{"precision", to_string(precision)}});
    }
  }
  add("triad");
  add("copy", {{"direction", "h2d"}});
  add("copy", {{"direction", "d2h"}});
  for (const char* quantity : {"launch", "launches", "graph-node", "synchronization"}) {
    add(quantity);
  }
}

}  // namespace

std::unique_ptr<PreparedBenchmark> make_peak(RowContext& context, const Configuration& row,
                                             Result& result) {
  const Device& device = device_of(row, context.devices);
  return make_probe_row(context.arguments, device, ceiling_in(row, context.arguments, device),
                        std::nullopt, result);
}

void register_peaks(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_cpu(arguments, devices.cpu(), rows);
  for (Device& gpu : devices.gpus()) {
    register_gpu(arguments, gpu, rows);
  }
}

}  // namespace crossover::bench
