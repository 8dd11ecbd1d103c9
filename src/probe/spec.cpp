// SPDX-License-Identifier: Apache-2.0
// What probes do, counted from their description.
#include <bit>
#include <stdexcept>
#include <string>

#include "../step/overload.h"
#include "crossover/probe.h"

namespace crossover {
namespace {

constexpr std::int64_t float_bytes = sizeof(float);

void require(std::int64_t number, std::int64_t most, const char* what) {
  if (number < 1 || number > most) {
    throw std::invalid_argument(std::string("a probe needs ") + what + " from 1 to " +
                                std::to_string(most) + ", not " + std::to_string(number));
  }
}

/// Whole numbers that the type holds come out of these sizes only: expected.h.
void require_exact(const MatrixProbe& probe) {
  constexpr std::int64_t least = 128;
  constexpr std::int64_t most = 8192;
  const bool is_exact = probe.size >= least && probe.size <= most &&
                        std::has_single_bit(static_cast<std::uint64_t>(probe.size));
  if (storage_of(probe.precision) != Type::f32 && !is_exact) {
    throw std::invalid_argument("a matrix probe in " + to_string(probe.precision) +
                                " needs a power of two from 128 to 8192 as its rows, not " +
                                std::to_string(probe.size));
  }
}

}  // namespace

Work work(const ProbeSpec& spec) {
  return std::visit(
      Overload{[](const CopyProbe& probe) {
                 const int copies = probe.asynchronous ? CopyProbe::copies_in_flight : 1;
                 const int directions = probe.direction == Direction::both ? 2 : 1;
                 return Work{.bytes = static_cast<double>(probe.bytes) * copies * directions,
                             .pieces = copies};
               },
               [](const FmaProbe& probe) {
                 return Work{.flops = 2.0 * static_cast<double>(probe.values) *
                                      static_cast<double>(probe.length)};
               },
               [](const MatrixProbe& probe) {
                 const auto size = static_cast<double>(probe.size);
                 return Work{.flops = 2 * size * size * size};
               },
               [](const TriadProbe& probe) {
                 return Work{.flops = 2.0 * static_cast<double>(probe.values),
                             .bytes = 3.0 * float_bytes * static_cast<double>(probe.values)};
               },
               [](const LaunchProbe& probe) { return Work{.pieces = probe.launches}; },
               [](const GraphNodeProbe& probe) { return Work{.pieces = probe.nodes}; },
               [](const auto&) { return Work{}; }},
      spec);
}

ProbeMemory memory_needed(const ProbeSpec& spec) {
  return std::visit(
      Overload{
          [](const CopyProbe& probe) {
            switch (probe.direction) {
              case Direction::both:
                return ProbeMemory{.host = 2 * probe.bytes, .device = 2 * probe.bytes};
              case Direction::device_to_device:
                return ProbeMemory{.device = 2 * probe.bytes};
              case Direction::host_to_host:
                return ProbeMemory{.host = 2 * probe.bytes};
              case Direction::host_to_device:
              case Direction::device_to_host:
                break;
            }
            return ProbeMemory{.host = probe.bytes, .device = probe.bytes};
          },
          [](const FmaProbe& probe) { return ProbeMemory{.device = probe.values * float_bytes}; },
          [](const MatrixProbe& probe) {
            constexpr std::int64_t workspace = 32 << 20;
            const std::int64_t matrix =
                probe.size * probe.size * bytes(storage_of(probe.precision));
            return ProbeMemory{.device = 3 * matrix + workspace};
          },
          [](const TriadProbe& probe) {
            return ProbeMemory{.device = 3 * probe.values * float_bytes};
          },
          [](const auto&) { return ProbeMemory{}; }},
      spec);
}

void check(const ProbeSpec& spec) {
  constexpr std::int64_t most_values = std::int64_t{1} << 40;
  constexpr std::int64_t most_rows = 1 << 20;
  constexpr std::int64_t most_nodes = 100'000;
  constexpr std::int64_t most_threads = 1 << 16;
  std::visit(
      Overload{[](const CopyProbe& probe) { require(probe.bytes, most_values, "bytes"); },
               [](const FmaProbe& probe) {
                 require(probe.values, most_values, "values");
                 require(probe.length, most_values, "multiply-adds of each value");
                 require(probe.threads, most_threads, "threads");
               },
               [](const MatrixProbe& probe) {
                 require(probe.size, most_rows, "rows");
                 require(probe.threads, most_threads, "threads");
                 require_exact(probe);
               },
               [](const TriadProbe& probe) {
                 require(probe.values, most_values, "values");
                 require(probe.threads, most_threads, "threads");
               },
               [](const LaunchProbe& probe) { require(probe.launches, most_nodes, "launches"); },
               [](const GraphNodeProbe& probe) { require(probe.nodes, most_nodes, "nodes"); },
               [](const ForkJoinProbe& probe) { require(probe.threads, most_threads, "threads"); },
               [](const auto&) {}},
      spec);
}

}  // namespace crossover
