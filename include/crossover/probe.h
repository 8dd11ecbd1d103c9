// SPDX-License-Identifier: Apache-2.0
// Measurements of a machine that are not Workloads: copies, and the ceilings that limit training.
// Plain data describes a probe, Backend::make_probe() makes it, and work() counts it.
#pragma once

#include <cstdint>
#include <variant>

#include "crossover/tensor.h"

namespace crossover {

enum class Direction {
  host_to_device,
  device_to_host,
  both,  ///< one copy in each direction at once, on two streams
  device_to_device,
  host_to_host,
};

enum class HostMemory { pageable, pinned };

/// Copies `bytes` from one block to another. One run is one copy, for which the host waits; or,
/// asynchronously, `copies_in_flight` copies enqueued one after the other, with one wait for all.
/// `both` does this in each direction. Between two blocks on the same device `memory` is ignored.
struct CopyProbe {
  static constexpr int copies_in_flight = 8;
  Direction direction = Direction::host_to_device;
  HostMemory memory = HostMemory::pageable;
  bool asynchronous = false;
  std::int64_t bytes = 0;
};

/// Fused multiply-adds on registers: each of `values` numbers goes `length` times through
/// x = x * (1 - 2^-12) + 2^-12, rounded once. Multiples of 384 values for each of the CPU's threads
/// keep its arithmetic units busy.
struct FmaProbe {
  Precision precision = Precision::f32;
  std::int64_t values = 0, length = 0;
  int threads = 1;  ///< of the CPU
};

/// A product of two square matrices by the vendor's library, all of them stored as the precision
/// says: what the matrix units give in practice.
struct MatrixProbe {
  Precision precision = Precision::tf32;
  std::int64_t size = 0;  ///< rows and columns; in 16 bits a power of two from 128 to 8192
  int threads = 1;        ///< of the CPU
};

/// a = b + 3 c over three arrays of `values` f32 each.
struct TriadProbe {
  std::int64_t values = 0;
  int threads = 1;  ///< of the CPU
};

/// Empty kernels, launched one after the other without a wait, until the host sees the last one
/// end: one kernel gives the latency of a launch, many give the launch rate.
struct LaunchProbe {
  int launches = 1;
};

/// One graph of `nodes` empty kernels in sequence, until the host sees it end.
struct GraphNodeProbe {
  int nodes = 0;
};

/// The host waits for an idle stream.
struct SynchronizeProbe {};

/// An OpenMP parallel region in which each thread only increments a counter of its own.
struct ForkJoinProbe {
  int threads = 1;
};

using ProbeSpec = std::variant<CopyProbe, FmaProbe, MatrixProbe, TriadProbe, LaunchProbe,
                               GraphNodeProbe, SynchronizeProbe, ForkJoinProbe>;

/// What one run does.
struct Work {
  double flops = 0;         ///< additions and multiplications
  double bytes = 0;         ///< copied (once, not as read and written), or read and written (triad)
  std::int64_t pieces = 1;  ///< done in sequence: copies, launches, nodes, regions
};
Work work(const ProbeSpec& spec);

/// Bytes of memory that a probe holds, without what check() takes for a moment (below 8 MiB). A CPU
/// probe takes both from the same memory.
struct ProbeMemory {
  std::int64_t host = 0, device = 0;
};
ProbeMemory memory_needed(const ProbeSpec& spec);

/// Throws std::invalid_argument where a number is out of range.
void check(const ProbeSpec& spec);

/// A probe with all its memory, ready to run.
class Probe {
 public:
  Probe() = default;
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  virtual ~Probe() = default;

  /// Runs once; returns when the host knows that it is done.
  virtual void run() = 0;

  /// Throws Mismatch (verify.h) unless the result of the last run is right to the last byte; then
  /// overwrites it, so that the next check covers later runs.
  virtual void check() = 0;

  /// Runs once more, and returns the seconds by the device's own clock; 0 where it has none.
  virtual double device_seconds() { return 0; }
};

}  // namespace crossover
