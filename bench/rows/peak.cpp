// SPDX-License-Identifier: Apache-2.0
// Family Peak: the ceilings of each device, from which readers of the file take every other row's
// bound (plots/core/bounds.py knows which row is which ceiling).
#include <algorithm>
#include <string>

#include "rows/device.h"
#include "rows/families.h"
#include "rows/operation_rows.h"

namespace crossover::bench {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::int64_t float_bytes = sizeof(float);

/// Far more than the caches hold, three times over.
std::int64_t cpu_triad_values(const Arguments& arguments, const Device& cpu) {
  std::int64_t values = std::max(64 * mebibyte, 2 * cpu.cache_bytes) / float_bytes;
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

/// Ceilings of one device.
class Ceilings {
 public:
  explicit Ceilings(const Device& device) : device_(device) {}

  void add(const std::string& quantity, const ProbeSpec& probe, const Configuration& more = {},
           int threads = 0) {
    Configuration row =
        joined({{"family", "Peak"}, {"quantity", quantity}, {"device", device_.name()}}, more);
    if (threads > 0) {
      row.emplace_back("cpu_threads", std::to_string(threads));
    }
    all.push_back({in_order(row), probe});
  }

  std::vector<ProbeRow> all;

 private:
  const Device& device_;
};

std::vector<ProbeRow> cpu_ceilings(const Arguments& arguments, const Device& cpu,
                                   const std::vector<int>& thread_counts) {
  Ceilings ceilings(cpu);
  const std::int64_t values = cpu_triad_values(arguments, cpu);
  for (const int threads : thread_counts) {
    ceilings.add(
        "fma",
        FmaProbe{.values = std::int64_t{3072} * threads, .length = 1 << 14, .threads = threads},
        {{"precision", "f32"}}, threads);
    ceilings.add("triad", TriadProbe{.values = values, .threads = threads}, {}, threads);
    // The smaller ones stay in the caches, the larger ones keep many cores busy.
    for (const std::int64_t size : {512, 2048}) {
      ceilings.add("matrix",
                   MatrixProbe{.precision = Precision::bf16, .size = size, .threads = threads},
                   {{"precision", "bf16"}, {"size", std::to_string(size)}}, threads);
    }
    ceilings.add("fork-join", ForkJoinProbe{.threads = threads}, {}, threads);
  }
  // The C library's copy writes past the caches, and so reaches more than a plain loop.
  ceilings.add("copy",
               CopyProbe{.direction = Direction::host_to_host, .bytes = values * float_bytes},
               {{"direction", "h2h"}}, 1);
  return ceilings.all;
}

std::vector<ProbeRow> gpu_ceilings(const Device& gpu) {
  constexpr int many = 1000;
  Ceilings ceilings(gpu);
  ceilings.add("fma", FmaProbe{.values = 32 * mebibyte, .length = 1024}, {{"precision", "f32"}});
  for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::f16}) {
    ceilings.add("matrix", MatrixProbe{.precision = precision, .size = 8192},
                 {{"precision", to_string(precision)}});
  }
  ceilings.add("triad", TriadProbe{.values = gpu_triad_values(gpu)});
  for (const auto& [name, direction] :
       {std::pair{"h2d", Direction::host_to_device}, {"d2h", Direction::device_to_host}}) {
    ceilings.add("copy",
                 CopyProbe{.direction = direction,
                           .memory = HostMemory::pinned,
                           .asynchronous = true,
                           .bytes = 64 * mebibyte},
                 {{"direction", name}});
  }
  ceilings.add("launch", LaunchProbe{.launches = 1});
  ceilings.add("launches", LaunchProbe{.launches = many});
  ceilings.add("graph-node", GraphNodeProbe{.nodes = many});
  ceilings.add("synchronization", SynchronizeProbe{});
  return ceilings.all;
}

/// Whether they are measured: products where the device has them in that precision, or where the
/// command line asks, so that the row says what is missing.
bool is_wanted(const Arguments& arguments, const Device& device, const ProbeSpec& probe) {
  const auto* products = std::get_if<MatrixProbe>(&probe);
  return products == nullptr || device.backend->missing_for(products->precision).empty() ||
         contains(arguments.precisions, products->precision);
}

}  // namespace

std::unique_ptr<PreparedBenchmark> make_peak(RowContext& context, const Configuration& row,
                                             Result& result) {
  const Device& device = device_of(row, context.devices);
  const std::vector<ProbeRow> all =
      device.is_host ? cpu_ceilings(context.arguments, device,
                                    {static_cast<int>(number_of(row, "cpu_threads"))})
                     : gpu_ceilings(device);
  return make_probe_row(context.arguments, device, probe_of(row, all, "ceiling"), std::nullopt,
                        result);
}

void register_peaks(const Arguments& arguments, Devices& devices, Rows& rows) {
  for (Device& device : devices.all) {
    for (const auto& [configuration, probe] :
         device.is_host
             ? cpu_ceilings(arguments, device, thread_counts(arguments, arguments.sweep.threads))
             : gpu_ceilings(device)) {
      if (is_wanted(arguments, device, probe)) {
        Row row = probe_row(arguments, device, configuration, probe);
        if (device.is_host) {
          row.warnings =
              doubts_about_threads(static_cast<int>(number_of(configuration, "cpu_threads")));
        }
        rows.add(std::move(row));
      }
    }
  }
}

}  // namespace crossover::bench
