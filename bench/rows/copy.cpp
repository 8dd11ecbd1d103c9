// SPDX-License-Identifier: Apache-2.0
// Family Copy: bytes between the host and a GPU, and within each.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "rows/device.h"
#include "rows/families.h"
#include "rows/probe_row.h"

namespace crossover::bench {
namespace {

/// How the host's side of a copy is held.
struct Mode {
  HostMemory memory;
  bool asynchronous;
};

struct Way {
  const char* name;
  Direction direction;
  std::vector<Mode> modes;
  bool carries_batches;  ///< as training's mini-batches go
};

constexpr Mode plain{HostMemory::pageable, false};
constexpr Mode pinned{HostMemory::pinned, false};
constexpr Mode pinned_async{HostMemory::pinned, true};

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

CopyProbe probe_of(const Way& way, const Mode& mode, std::int64_t size) {
  return {.direction = way.direction,
          .memory = mode.memory,
          .asynchronous = mode.asynchronous,
          .bytes = size};
}

Configuration configuration_of(const Device& device, const Way& way, const Mode& mode,
                               const Configuration& what) {
  Configuration row =
      joined({{"family", "Copy"}, {"direction", way.name}, {"device", device.name()}}, what);
  if (way.direction != Direction::device_to_device) {
    row.emplace_back("memory", mode.memory == HostMemory::pinned ? "pinned" : "pageable");
  }
  row.emplace_back("mode", mode.asynchronous ? "async" : "sync");
  if (device.is_host) {
    row.emplace_back("cpu_threads", "1");
  }
  return in_order(row);
}

void add(const Arguments& arguments, Device& device, Rows& rows, const Way& way, const Mode& mode,
         const Configuration& what, std::int64_t size) {
  if (const CopyProbe probe = probe_of(way, mode, size); is_modest(arguments, probe)) {
    rows.add(probe_row(arguments, device, configuration_of(device, way, mode, what), probe));
  }
}

void register_way(const Arguments& arguments, Device& device, Rows& rows, const Way& way) {
  for (const Mode& mode : way.modes) {
    for (const std::int64_t size : arguments.sweep.copy_bytes) {
      add(arguments, device, rows, way, mode, {{"bytes", std::to_string(size)}}, size);
    }
    if (!way.carries_batches) {
      continue;
    }
    for (const Task& task : arguments.tasks) {
      for (const std::int64_t batch : batches_of(arguments, task.batch)) {
        const std::int64_t samples = std::min(batch, task.rows);
        constexpr double beyond_any_memory = 1e17;  // bytes, and far from an overflow
        if (static_cast<double>(samples) * static_cast<double>(elements(task.model.sample)) * 8 >
            beyond_any_memory) {
          continue;
        }
        add(arguments, device, rows, way, mode,
            {{"model", task.model.name}, {"batch", std::to_string(samples)}},
            batch_bytes(task, samples));
      }
    }
  }
}

std::vector<Way> ways_of(const Device& device) {
  if (device.is_host) {
    return {{"h2h", Direction::host_to_host, {plain}, true}};
  }
  const std::vector<Mode> all{plain, pinned, pinned_async};
  return {{"h2d", Direction::host_to_device, all, true},
          {"d2h", Direction::device_to_host, all, false},
          {"both", Direction::both, {pinned, pinned_async}, false},
          {"d2d", Direction::device_to_device, {plain, pinned_async}, false}};
}

/// std::out_of_range where the device has no such way.
CopyProbe copy_in(const Configuration& row, const Device& device, const Arguments& arguments) {
  std::int64_t size = 0;
  if (const std::string model = value_or_unsaid(row, "model"); model.empty()) {
    size = number_of(row, "bytes");
  } else if (const auto task = find_task(arguments, model)) {
    size = batch_bytes(*task, number_of(row, "batch"));
  } else {
    throw std::out_of_range("this worker knows no network '" + model + "'");
  }
  Configuration what = row;
  std::erase_if(what, [](const auto& pair) {
    return pair.first != "bytes" && pair.first != "model" && pair.first != "batch";
  });
  for (const Way& way : ways_of(device)) {
    for (const Mode& mode : way.modes) {
      if (configuration_of(device, way, mode, what) == row) {
        return probe_of(way, mode, size);
      }
    }
  }
  throw std::out_of_range("this worker has no such copy");
}

}  // namespace

/// Batches lie between two of the sizes.
bool is_copy_worth_minutes(const Row& row, const std::string& /*most_threads*/) {
  return value_or_unsaid(row.configuration, "model").empty();
}

std::unique_ptr<PreparedBenchmark> make_copy(RowContext& context, const Configuration& row,
                                             Result& result) {
  const Device& device = device_of(row, context.devices);
  const CopyProbe probe = copy_in(row, device, context.arguments);
  return make_probe_row(context.arguments, device, probe, minimum_work_of(probe, device), result);
}

void register_copies(const Arguments& arguments, Devices& devices, Rows& rows) {
  for (Device& device : devices.all) {
    for (const Way& way : ways_of(device)) {
      register_way(arguments, device, rows, way);
    }
  }
}

}  // namespace crossover::bench
