// SPDX-License-Identifier: Apache-2.0
// What a device offers: compile() a Workload and run the Program, and probes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "crossover/probe.h"
#include "crossover/step.h"

namespace crossover {

/// The device or its library can't do what was asked; the row is skipped with this reason.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The device's memory does not hold the Workload; the row is skipped with this reason.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The device can't be used any more by this process: what is left to measure on it is skipped with
/// this reason.
struct DeviceFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How a Program executes, an axis of the benchmarks.
enum class Execution {
  eager,        ///< operation by operation, as frameworks do
  graph,        ///< each step as one CUDA graph
  graph_epoch,  ///< the whole order as one CUDA graph; enqueue() of a part of it, and a Program
                ///< whose data is not resident or that waits for each loss, run as `graph`
};

/// Where the data set lies while a GPU trains, an axis of the benchmarks. The CPU's is always
/// resident.
enum class Placement {
  resident,      ///< all of it on the device, uploaded before
  pageable,      ///< in ordinary host memory, each batch copied before its step
  pinned,        ///< in page-locked host memory, each batch copied before its step
  pinned_async,  ///< page-locked, copied on a stream of its own while the step before computes
};

/// Which of its library's algorithms a GPU's matrix product takes, an axis of the benchmarks.
enum class ProductChoice {
  heuristic,  ///< the one that the library's heuristic takes for the fastest
  autotuned,  ///< the fastest of those that it proposes, timed in compile()
};

struct CompileOptions {
  int threads = 1;  ///< CPU threads: operations too small to gain from them use one
  Precision precision = Precision::f32;  ///< of matrix products; tf32 stores f32 like f32 itself
  Execution execution = Execution::eager;
  Placement placement = Placement::resident;
  ProductChoice products = ProductChoice::heuristic;
  bool loss_every_step =
      false;  ///< wait for each step's loss on the host, as training loops that print it do
};

/// Seconds of one pass over the whole order, by what they were spent on.
using Profile = std::map<OpCategory, double>;

/// A compiled Workload: all memory allocated, nothing left to decide.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;

  /// Copies a whole tensor in its own storage type. Views (Role::input) and tensors that no
  /// operation uses can't be copied: std::invalid_argument, as for a wrong size.
  virtual void upload(Id id, std::span<const std::byte> from) = 0;
  virtual void download(Id id, std::span<std::byte> to) = 0;

  /// Starts positions [first, first + count) of the order, behind what was enqueued before.
  virtual void enqueue(std::int64_t first, std::int64_t count) = 0;

  /// Returns when everything enqueued is done.
  virtual void wait() = 0;

  /// What the device starts one by one in a pass over the whole order: products, passes, copies.
  [[nodiscard]] virtual std::int64_t launches() const = 0;

  /// Runs the whole order once more, taking the time of each piece. The clock between the pieces
  /// costs time as well, so this is never the run that is measured.
  virtual Profile profile() = 0;
};

/// A Workload as a device will run it: everything decided and counted, no memory taken yet.
class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  virtual ~Plan() = default;

  /// Bytes of device memory that the Program takes, scratch space included.
  [[nodiscard]] virtual std::int64_t bytes() const = 0;

  /// What Program::launches() will say.
  [[nodiscard]] virtual std::int64_t launches() const = 0;

  /// Once. Throws OutOfMemory.
  [[nodiscard]] virtual std::unique_ptr<Program> instantiate() = 0;
};

struct Description {
  std::string device;                            ///< "cpu", "cuda": as in the names of rows
  std::int64_t cache_bytes = 0;                  ///< of the last level on a GPU; 0: not told
  std::map<std::string, std::string> libraries;  ///< name -> version
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual Description describe() const = 0;

  /// What is missing for matrix products of that precision, in words; empty where they can be had.
  [[nodiscard]] virtual std::string missing_for(Precision precision) const = 0;

  /// The same computation in the operations that this device runs best: fuse(), and fuse_update()
  /// where that pays. Tensors keep their numbers.
  [[nodiscard]] virtual Workload optimize(Workload workload) const = 0;

  /// Runs the operations as they are. Throws Unsupported; std::invalid_argument on a Workload that
  /// does not check().
  [[nodiscard]] virtual std::unique_ptr<Plan> plan(const Workload& workload,
                                                   const CompileOptions& options) const = 0;

  /// plan() and instantiate() in one.
  [[nodiscard]] std::unique_ptr<Program> compile(const Workload& workload,
                                                 const CompileOptions& options) const {
    return plan(workload, options)->instantiate();
  }

  /// Throws Unsupported where the device has no such thing, OutOfMemory; std::invalid_argument on a
  /// spec that does not check().
  [[nodiscard]] virtual std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const = 0;
};

/// oneDNN. Never absent.
std::unique_ptr<Backend> make_cpu_backend();

/// A GPU, or the reason why there is none: one of the two is set.
struct CudaBackend {
  std::unique_ptr<Backend> backend;
  std::string reason;  ///< "none (built without CUDA)", "none (no NVIDIA driver ...)"
};

/// cuBLASLt and own kernels on the first device. Never throws for want of a GPU.
CudaBackend make_cuda_backend();

}  // namespace crossover
