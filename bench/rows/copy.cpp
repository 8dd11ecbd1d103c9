// SPDX-License-Identifier: Apache-2.0
// Family Copy: bytes between the host and a GPU, and within each.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "rows/device.h"
#include "rows/families.h"
#include "rows/operation_rows.h"

namespace crossover::bench {
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
using Sizes = std::vector<std::pair<Configuration, std::int64_t>>;

Sizes sizes_of(const Sweep& sweep) {
  Sizes sizes;
  for (const std::int64_t size : sweep.copy_bytes) {
    sizes.push_back({{{"bytes", std::to_string(size)}}, size});
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
        sizes.push_back({{{"model", task.model.name}, {"batch", std::to_string(samples)}},
                         batch_bytes(task, samples)});
      }
    }
  }
  return sizes;
}

/// In all ways that the device has; those of batches in those that carry them.
std::vector<ProbeRow> copies_of(const Device& device, const Sizes& sizes, const Sizes& batches) {
  struct Way {
    const char* name;
    Direction direction;
    std::vector<std::pair<HostMemory, bool>> modes;  ///< how the host's side is held; asynchronous
    bool carries_batches = false;
  };
  const std::pair plain{HostMemory::pageable, false};
  const std::pair pinned{HostMemory::pinned, false};
  const std::pair pinned_async{HostMemory::pinned, true};
  const std::vector<Way> of_host{{"h2h", Direction::host_to_host, {plain}, true}};
  const std::vector<Way> of_gpu{
      {"h2d", Direction::host_to_device, {plain, pinned, pinned_async}, true},
      {"d2h", Direction::device_to_host, {plain, pinned, pinned_async}},
      {"both", Direction::both, {pinned, pinned_async}},
      {"d2d", Direction::device_to_device, {plain, pinned_async}}};
  std::vector<ProbeRow> all;
  for (const Way& way : device.is_host ? of_host : of_gpu) {
    for (const auto& [memory, asynchronous] : way.modes) {
      Sizes all_sizes = sizes;
      all_sizes.insert(all_sizes.end(), batches.begin(),
                       way.carries_batches ? batches.end() : batches.begin());
      for (const auto& [what, size] : all_sizes) {
        Configuration row =
            joined({{"family", "Copy"}, {"direction", way.name}, {"device", device.name()}}, what);
        if (way.direction != Direction::device_to_device) {
          row.emplace_back("memory", memory == HostMemory::pinned ? "pinned" : "pageable");
        }
        row.emplace_back("mode", asynchronous ? "async" : "sync");
        if (device.is_host) {
          row.emplace_back("cpu_threads", "1");
        }
        all.push_back({in_order(row), CopyProbe{.direction = way.direction,
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
bool is_copy_worth_minutes(const Row& row, const std::string& /*most_threads*/) {
  return value_or_unsaid(row.configuration, "model").empty();
}

std::unique_ptr<PreparedBenchmark> make_copy(RowContext& context, const Configuration& row,
                                             Result& result) {
  const Device& device = device_of(row, context.devices);
  Sizes own;
  if (const std::string model = value_or_unsaid(row, "model"); model.empty()) {
    own.push_back({{{"bytes", value_of(row, "bytes")}}, number_of(row, "bytes")});
  } else if (const auto task = find_task(context.arguments, model)) {
    own.push_back({{{"model", model}, {"batch", value_of(row, "batch")}},
                   batch_bytes(*task, number_of(row, "batch"))});
  } else {
    throw std::out_of_range("this worker knows no network '" + model + "'");
  }
  const auto probe = std::get<CopyProbe>(probe_of(row, copies_of(device, own, {}), "copy"));
  return make_probe_row(context.arguments, device, probe, minimum_work_of(probe, device), result);
}

void register_copies(const Arguments& arguments, Devices& devices, Rows& rows) {
  for (Device& device : devices.all) {
    for (const auto& [configuration, probe] :
         copies_of(device, sizes_of(arguments.sweep), batches_in(arguments))) {
      if (is_modest(arguments, probe)) {
        rows.add(probe_row(arguments, device, configuration, probe));
      }
    }
  }
}

}  // namespace crossover::bench
