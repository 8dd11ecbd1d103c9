// SPDX-License-Identifier: Apache-2.0
// Rows that time a probe: the families Copy and Peak.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "crossover/probe.h"
#include "families/device.h"
#include "families/families.h"
#include "families/operation_rows.h"
#include "families/work.h"

namespace crossover::bench {
namespace {

/// One that a family has.
struct ProbeRow {
  RowSpec row;
  ProbeSpec probe;
};

class PreparedProbe : public PreparedBenchmark {
 public:
  explicit PreparedProbe(std::unique_ptr<Probe> probe) : probe_(std::move(probe)) {}

  void run() override { probe_->run(); }
  void check() override { probe_->check(); }
  [[nodiscard]] Probe& probe() { return *probe_; }

 private:
  std::unique_ptr<Probe> probe_;
};

/// The median of up to 21 runs within 0.2 s, by the device's clock; 0 where it has none.
double median_device_seconds(Probe& probe) {
  constexpr std::size_t most = 21;
  constexpr std::chrono::duration<double> enough(0.2);
  std::vector<double> seconds;
  const auto start = std::chrono::steady_clock::now();
  do {
    seconds.push_back(probe.device_seconds());
  } while (seconds.back() > 0 && seconds.size() < most &&
           std::chrono::steady_clock::now() - start < enough);
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

/// On the host; a device's own memory tells by itself whether it is enough.
double host_bytes(const ProbeSpec& spec, bool has_own_memory) {
  const ProbeMemory needed = memory_needed(spec);
  return static_cast<double>(needed.host + (has_own_memory ? 0 : needed.device));
}

int threads_of(const ProbeSpec& spec) {
  return std::visit(
      [](const auto& probe) {
        if constexpr (requires { probe.threads; }) {
          return probe.threads;
        } else {
          return 1;
        }
      },
      spec);
}

/// All results are compared after each loop: of a copy one of two blocks, else one of three arrays.
ExpectedWork expected_work(const ProbeSpec& spec, const Device& device) {
  const Work counted = work(spec);
  const ProbeMemory memory = memory_needed(spec);
  const auto held = static_cast<double>(std::max(memory.host, memory.device));
  const bool is_copy = std::holds_alternative<CopyProbe>(spec);
  ExpectedWork work{.flops = counted.flops,
                    .launches = static_cast<double>(counted.pieces),
                    .bytes_checked = held / (is_copy ? 2 : 3),
                    .bytes_prepared = is_copy || !device.has_own_memory() ? held : 0};
  if (is_copy || !device.has_own_memory()) {
    work.bytes_copied = counted.bytes;
  }
  return work;
}

/// Of the row. std::out_of_range where it is none of these; `what`: "copy".
ProbeSpec probe_of(const RowSpec& row, const std::vector<ProbeRow>& all, const std::string& what) {
  const auto at = std::ranges::find(all, row, &ProbeRow::row);
  if (at == all.end()) {
    throw std::out_of_range("this worker has no such " + what);
  }
  return at->probe;
}

/// Whether a probe takes at most a quarter of planned_memory_bytes(): a larger one is not planned.
bool is_modest(const Arguments& arguments, const ProbeSpec& spec) {
  return host_bytes(spec, false) <= static_cast<double>(planned_memory_bytes(arguments)) / 4;
}

Row probe_row(const Arguments& arguments, Device& device, const ProbeRow& planned) {
  Row row{.spec = planned.row, .device = &device};
  const ProbeSpec& probe = planned.probe;
  set_effort(row, arguments, expected_work(probe, device), threads_of(probe));
  return row;
}

/// Counters: docs/method/timed.md and docs/method/bounds.md. `minimum_work`: of one run; none
/// where no ceiling bounds it.
std::unique_ptr<PreparedBenchmark> make_probe_row(const Arguments& arguments, const Device& device,
                                                  const ProbeSpec& spec,
                                                  const std::optional<MinimumWork>& minimum_work,
                                                  Result& result) {
  require_memory(arguments, host_bytes(spec, device.has_own_memory()), "for what is measured");
  auto made = std::make_unique<PreparedProbe>(device.backend->make_probe(spec));
  made->run();
  verify_or_note(result, [&] { made->check(); });
  const Work counted = work(spec);
  if (counted.flops > 0 || counted.bytes > 0) {
    result.verification.reference = "every result, bit for bit, here and behind each sample";
  }
  result.minimum_work = minimum_work;
  const auto count = static_cast<double>(counted.pieces);
  result.counters["count"] = count;
  if (counted.bytes > 0) {
    result.counters["bytes"] = counted.bytes;
  } else if (counted.flops > 0) {
    result.counters["flops"] = counted.flops;
  }
  if (result.not_verified) {
    return made;
  }
  if (const double seconds = median_device_seconds(made->probe()); seconds > 0) {
    result.counters["device_seconds"] = seconds / count;
    made->check();
  }
  return made;
}

}  // namespace

// ---- Family Copy: bytes between the host and a GPU, and within each.

namespace {

/// Samples and labels, as a step reads them.
std::int64_t batch_bytes(const Task& task, std::int64_t batch) {
  return batch * (elements(task.model.sample) * bytes(Type::f32) + bytes(Type::i32));
}

/// Of one run; none where no ceiling bounds it.
std::optional<MinimumWork> minimum_work_of(const CopyProbe& probe, const Device& device) {
  const Work counted = work(probe);
  MinimumWork least;
  switch (probe.direction) {
    case Direction::host_to_device:
      least.bytes_to_device = counted.bytes;
      break;
    case Direction::device_to_host:
      least.bytes_from_device = counted.bytes;
      break;
    case Direction::both:
      return std::nullopt;  // at once: neither sum nor maximum is a bound that was measured
    case Direction::device_to_device:
    case Direction::host_to_host:
      if (2 * probe.bytes <= device.cache_bytes) {
        return std::nullopt;  // caches have no ceiling here
      }
      least.memory_bytes =
          static_cast<double>((2 * probe.bytes - device.cache_bytes) * counted.pieces);
      break;
  }
  return least;
}

/// Bytes, by what a row's name says of them.
using Sizes = std::vector<std::pair<RowSpec, std::int64_t>>;

Sizes sizes_of(const Sweep& sweep) {
  Sizes sizes;
  for (const std::int64_t size : sweep.copy_bytes) {
    sizes.push_back({{.bytes = size}, size});
  }
  return sizes;
}

/// As training's mini-batches go.
Sizes batches_in(const Arguments& arguments) {
  Sizes sizes;
  for (const Task& task : arguments.tasks) {
    for (const std::int64_t batch : batches_of(arguments, task.batch)) {
      const std::int64_t samples = std::min(batch, task.rows);
      constexpr double beyond_any_memory = 1e17;  // bytes, and far from an overflow
      if (static_cast<double>(samples) * static_cast<double>(elements(task.model.sample)) * 8 <=
          beyond_any_memory) {
        sizes.push_back({{.model = task.model.name, .batch = samples}, batch_bytes(task, samples)});
      }
    }
  }
  return sizes;
}

/// In all ways that the device has; those of batches in those that carry them.
std::vector<ProbeRow> copies_of(const Device& device, const Sizes& sizes, const Sizes& batches) {
  struct Way {
    Direction direction;
    std::vector<std::pair<HostMemory, bool>> modes;  ///< how the host's side is held; asynchronous
    bool carries_batches = false;
  };
  const std::pair plain{HostMemory::pageable, false};
  const std::pair pinned{HostMemory::pinned, false};
  const std::pair pinned_async{HostMemory::pinned, true};
  const std::vector<Way> of_host{{Direction::host_to_host, {plain}, true}};
  const std::vector<Way> of_gpu{{Direction::host_to_device, {plain, pinned, pinned_async}, true},
                                {Direction::device_to_host, {plain, pinned, pinned_async}},
                                {Direction::both, {pinned, pinned_async}},
                                {Direction::device_to_device, {plain, pinned_async}}};
  std::vector<ProbeRow> all;
  for (const Way& way : device.has_own_memory() ? of_gpu : of_host) {
    for (const auto& [memory, asynchronous] : way.modes) {
      Sizes all_sizes = sizes;
      all_sizes.insert(all_sizes.end(), batches.begin(),
                       way.carries_batches ? batches.end() : batches.begin());
      for (const auto& [what, size] : all_sizes) {
        RowSpec row = what;
        row.family = RowFamily::copy;
        row.direction = way.direction;
        row.device = device.name();
        if (way.direction != Direction::device_to_device) {
          row.memory = memory;
        }
        row.mode = asynchronous ? CopyMode::async : CopyMode::sync;
        if (device.has_threads()) {
          row.threads = 1;
        }
        all.push_back({row, CopyProbe{.direction = way.direction,
                                      .memory = memory,
                                      .asynchronous = asynchronous,
                                      .bytes = size}});
      }
    }
  }
  return all;
}

}  // namespace

/// Batches lie between two of the sizes.
bool is_copy_worth_minutes(const Row& row, int /*most_threads*/) { return !row.spec.model; }

std::unique_ptr<PreparedBenchmark> make_copy(RowContext& context, const RowSpec& row,
                                             Result& result) {
  const Device& device = device_of(row, context.devices);
  Sizes own;
  if (!row.model) {
    own.push_back({{.bytes = value_of(row, &RowSpec::bytes)}, *row.bytes});
  } else if (const auto task = find_task(context.arguments, *row.model)) {
    const std::int64_t batch = value_of(row, &RowSpec::batch);
    own.push_back({{.model = row.model, .batch = batch}, batch_bytes(*task, batch)});
  } else {
    throw std::out_of_range("this worker knows no network '" + *row.model + "'");
  }
  const auto probe = std::get<CopyProbe>(probe_of(row, copies_of(device, own, {}), "copy"));
  return make_probe_row(context.arguments, device, probe, minimum_work_of(probe, device), result);
}

void register_copies(const Arguments& arguments, Devices& devices, Rows& rows) {
  for (Device& device : devices.all) {
    for (const ProbeRow& planned :
         copies_of(device, sizes_of(arguments.sweep), batches_in(arguments))) {
      if (is_modest(arguments, planned.probe)) {
        rows.add(probe_row(arguments, device, planned));
      }
    }
  }
}

// ---- Family Peak: the ceilings of each device, from which readers of the file take every other
// row's bound (plots/crossover_bench/counts/bounds.py knows which row is which ceiling).

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

  void add(const std::string& quantity, const ProbeSpec& probe, RowSpec row = {}) {
    row.family = RowFamily::peak;
    row.quantity = quantity;
    row.device = device_.name();
    all.push_back({row, probe});
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
        {.precision = Precision::f32, .threads = threads});
    ceilings.add("triad", TriadProbe{.values = values, .threads = threads}, {.threads = threads});
    // The smaller ones stay in the caches, the larger ones keep many cores busy.
    for (const std::int64_t size : {512, 2048}) {
      ceilings.add("matrix",
                   MatrixProbe{.precision = Precision::bf16, .size = size, .threads = threads},
                   {.precision = Precision::bf16, .size = size, .threads = threads});
    }
    ceilings.add("fork-join", ForkJoinProbe{.threads = threads}, {.threads = threads});
  }
  // The C library's copy writes past the caches, and so reaches more than a plain loop.
  ceilings.add("copy",
               CopyProbe{.direction = Direction::host_to_host, .bytes = values * float_bytes},
               {.direction = Direction::host_to_host, .threads = 1});
  return ceilings.all;
}

std::vector<ProbeRow> gpu_ceilings(const Device& gpu) {
  constexpr int many = 1000;
  Ceilings ceilings(gpu);
  ceilings.add("fma", FmaProbe{.values = 32 * mebibyte, .length = 1024},
               {.precision = Precision::f32});
  for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::f16}) {
    ceilings.add("matrix", MatrixProbe{.precision = precision, .size = 8192},
                 {.precision = precision});
  }
  ceilings.add("triad", TriadProbe{.values = gpu_triad_values(gpu)});
  for (const Direction direction : {Direction::host_to_device, Direction::device_to_host}) {
    ceilings.add("copy",
                 CopyProbe{.direction = direction,
                           .memory = HostMemory::pinned,
                           .asynchronous = true,
                           .bytes = 64 * mebibyte},
                 {.direction = direction});
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

std::unique_ptr<PreparedBenchmark> make_peak(RowContext& context, const RowSpec& row,
                                             Result& result) {
  const Device& device = device_of(row, context.devices);
  const std::vector<ProbeRow> all =
      device.has_threads()
          ? cpu_ceilings(context.arguments, device, {value_of(row, &RowSpec::threads)})
          : gpu_ceilings(device);
  return make_probe_row(context.arguments, device, probe_of(row, all, "ceiling"), std::nullopt,
                        result);
}

void register_peaks(const Arguments& arguments, Devices& devices, Rows& rows) {
  for (Device& device : devices.all) {
    for (const ProbeRow& planned :
         device.has_threads()
             ? cpu_ceilings(arguments, device, thread_counts(arguments, arguments.sweep.threads))
             : gpu_ceilings(device)) {
      if (is_wanted(arguments, device, planned.probe)) {
        Row row = probe_row(arguments, device, planned);
        if (device.has_threads()) {
          row.warnings = doubts_about_threads(value_of(row.spec, &RowSpec::threads));
        }
        rows.add(std::move(row));
      }
    }
  }
}

}  // namespace crossover::bench
