// SPDX-License-Identifier: Apache-2.0
// What a device offers: it compiles Workloads into Programs that run, and makes probes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "crossover/probe.h"
#include "crossover/ranks.h"
#include "crossover/step.h"

namespace crossover {

// ---- How a library's kernels round where its manual does not say, as far as it affects results.

/// How a factor with more bits than tf32 is handled. In order of increasing error.
enum class Tf32Factors {
  exact,      ///< unchanged: the kernel multiplies in f32
  rounded,    ///< to nearest
  truncated,  ///< towards zero: up to a whole unit in the last place is lost
};
std::string to_string(Tf32Factors factors);

struct Arithmetic {
  Tf32Factors tf32 = Tf32Factors::rounded;  ///< the coarsest over all products
  /// Some kernel takes ReLU's derivative at exactly 0 as 1, not as 0 like the reference. Both are
  /// subgradients.
  bool relu_passes_zero = false;
};

// ---- What a GPU's driver reports in addition to CUDA: facts that are constant while a program
// runs, and the current state. Values that the driver does not report are absent.

struct GpuFacts {
  std::optional<std::string> driver;         ///< its version: "580.65.06"
  std::optional<std::int64_t> memory_bytes;  ///< all of it
  std::optional<int> sm_clock_max_mhz, memory_clock_max_mhz;
  std::optional<double> power_limit_watts;
  std::optional<bool> persistence_mode, ecc;
};

struct GpuState {
  std::optional<int> sm_clock_mhz, memory_clock_mhz, temperature_celsius;
  std::optional<double> joules;               ///< that it took since its driver was loaded
  std::vector<std::string> throttle_reasons;  ///< in words; an idle GPU is not a reason
};

// ---- What a device offers.

/// The device or its library does not support what was asked; the row is skipped with this reason.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The Workload does not fit in the device's memory; the row is skipped with this reason.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// This process can no longer use the device; its remaining rows are skipped with this reason.
struct DeviceFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How a Program is executed; an axis of the benchmarks. No device has all of them: it throws
/// Unsupported for the others.
enum class Execution {
  eager,        ///< operation by operation, as frameworks do
  winograd,     ///< CPU: eager, but convolutions of 3x3 by Winograd's products, which are fewer
  fused,        ///< CPU: each step of a network of linear layers without a call per operation
  automatic,    ///< the fastest of the device's, as measured before the Program is made: on the
                ///< CPU, networks of linear layers also on one thread; on a GPU with the choices of
                ///< products and convolutions that are asked for, or those that are timed
  graph,        ///< GPU: each step as one CUDA graph
  graph_epoch,  ///< GPU: the whole order as one CUDA graph. Falls back to `graph` where enqueue()
                ///< gets a part of the order, data is not resident, or the host waits for each loss
  overlapped,   ///< several ranks: eager, gradients are summed over the ranks while the backward
                ///< pass goes on; so are those of ranks in a GPU's graphs
  persistent,   ///< GPU: one kernel trains the whole order, the weights stay on the chip
  tailored,     ///< GPU: the same by a kernel that is compiled for the network; not of `automatic`
};

/// Where the data set is kept while a GPU trains; an axis of the benchmarks. On the CPU it is
/// always resident. Where one kernel trains the order, batches are copied together before it.
enum class Placement {
  resident,      ///< all of it on the device, uploaded beforehand
  pageable,      ///< in ordinary host memory, each batch copied before its step
  pinned,        ///< in page-locked host memory, each batch copied before its step
  pinned_async,  ///< page-locked, copied on a separate stream while the previous step computes
};

/// How a GPU's matrix products choose their algorithm; an axis of the benchmarks.
enum class ProductChoice {
  heuristic,  ///< the first choice of the library's heuristic
  autotuned,  ///< the fastest of the heuristic's proposals, timed in compile()
};

/// How a GPU's convolutions, and its attention in 16 bits, choose their algorithm; an axis of the
/// benchmarks.
enum class ConvolutionChoice {
  heuristic,  ///< the first choice of cuDNN's heuristic that runs
  benchmark,  ///< the fastest of the heuristic's proposals, timed in compile(): what frameworks
              ///< call cudnn.benchmark
};

/// What Execution::automatic came to: compiled with these, a Workload runs in the same way.
struct Choice {
  Execution execution = Execution::eager;
  int threads = 1;
  ProductChoice products = ProductChoice::heuristic;
  ConvolutionChoice convolutions = ConvolutionChoice::heuristic;

  friend bool operator==(const Choice&, const Choice&) = default;
};

/// How a GPU's graphs are made, where there is more than one way. It decides nothing but speed.
struct GraphForm {
  bool loops = true;  ///< graph_epoch: runs whose steps repeat are the body of a loop, where the
                      ///< driver has loops; else the graph holds each run by itself
  int streams = 1;    ///< 2: a layer's gradients of input and of parameters run at once

  friend bool operator==(const GraphForm&, const GraphForm&) = default;
};

struct CompileOptions {
  int threads = 1;  ///< CPU threads at most; operations too small to gain from more use one
  Precision precision = Precision::f32;  ///< of matrix products; tf32 stores f32 like f32 itself
  Execution execution = Execution::eager;
  Placement placement = Placement::resident;
  ProductChoice products = ProductChoice::heuristic;
  ConvolutionChoice convolutions = ConvolutionChoice::heuristic;
  /// None: the one in which a pass over the whole order takes the least time, as timed in compile()
  std::optional<GraphForm> graph_form = GraphForm{};
  bool loss_every_step =
      false;  ///< wait for each step's loss on the host, as training loops that print it do
  bool keep_activations =
      false;  ///< they share no memory: after a step each can be downloaded (verify_operations())
  /// That train at once: a Program for each, which share the device, or one for all of them, where
  /// the device has launches that do the same for each (ProgramFacts::copies).
  std::int64_t copies = 1;
  Ranks* ranks = nullptr;  ///< over which an AllReduce sums; it outlives the Program
};

/// Seconds of one pass over the whole order, by category.
using Profile = std::map<OpCategory, double>;

/// Copies into another layout of memory than the one in which a tensor lies.
struct Reorders {
  std::int64_t count = 0;
  std::int64_t bytes = 0;  ///< read and written
};

/// What a Program turned out to be, fixed when it is made.
struct ProgramFacts {
  std::int64_t copies = 1;       ///< of its Workload that it trains, each of them in every launch
  std::int64_t bytes = 0;        ///< of device memory, including scratch space
  std::int64_t launches = 0;     ///< in one pass over the whole order: products, elementwise
                                 ///< passes, copies
  Reorders reorders;             ///< in such a pass
  Arithmetic arithmetic;         ///< how its kernels round
  std::optional<int> threads;    ///< of a CPU that have any work; none where nobody counted
  std::optional<Choice> chosen;  ///< what Execution::automatic came to; none of any other
  /// Loops in the one graph of the whole order: 0 where that holds each run by itself; none where
  /// there is no such graph.
  std::optional<std::int64_t> graph_loops;
  std::optional<GraphForm> graph_form;  ///< of a GPU's graphs; none where there are none
  /// How many convolutions and attentions of the order's first step run by which of the library's
  /// engines: "forward eng41 fused" -> 20, "attention forward eng2" -> 3. Empty where there are
  /// none, or the library does not tell.
  std::map<std::string, std::int64_t> library_engines;
};

/// A compiled Workload, ready to run: all memory allocated, all decisions made.
class Program {
 public:
  explicit Program(ProgramFacts facts = {}) : facts_(std::move(facts)) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;

  /// Copies a whole tensor in its own storage type. Views (Role::input) and tensors that no
  /// operation uses can't be copied: throws std::invalid_argument, as for a wrong size.
  virtual void upload(Id id, std::span<const std::byte> from) = 0;
  virtual void download(Id id, std::span<std::byte> to) = 0;

  /// Enqueues positions [first, first + count) of the order after everything enqueued before.
  virtual void enqueue(std::int64_t first, std::int64_t count) = 0;

  /// Blocks until all enqueued work is done.
  virtual void wait() = 0;

  /// Runs the whole order once more and times each piece. Reading the clock between pieces takes
  /// time too, so this is never the measured run.
  virtual Profile profile() = 0;

  [[nodiscard]] const ProgramFacts& facts() const { return facts_; }

  /// What only some Programs can do (extensions.h); null where this one can't.
  template <class T>
  [[nodiscard]] T* extension() {
    return dynamic_cast<T*>(this);
  }

  /// Says that Execution::automatic came to it, on the threads that have any work.
  void set_chosen(const Choice& choice) {
    facts_.chosen = choice;
    facts_.chosen->threads = facts_.threads.value_or(choice.threads);
  }

 protected:
  ProgramFacts facts_;
};

/// A Workload planned for a device: all decisions made and counted, no memory allocated yet.
class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  virtual ~Plan() = default;

  /// Bytes of device memory that the Program will use, including scratch space. Where
  /// instantiate() chooses between several, of the largest until it has done so; launches() are of
  /// the first.
  [[nodiscard]] virtual std::int64_t bytes() const = 0;

  /// What bytes() would be with CompileOptions::keep_activations.
  [[nodiscard]] virtual std::int64_t bytes_keeping_activations() const = 0;

  /// What the Program's facts will say.
  [[nodiscard]] virtual std::int64_t launches() const = 0;

  /// Whether Programs of it join (TrainsCopies::join()).
  [[nodiscard]] virtual bool joins() const { return false; }

  /// See ProgramFacts.
  [[nodiscard]] virtual std::int64_t copies() const { return 1; }

  /// Call once. Throws OutOfMemory.
  [[nodiscard]] virtual std::unique_ptr<Program> instantiate() = 0;
};

struct Description {
  std::int64_t cache_bytes = 0;                  ///< a GPU's last-level cache; 0: unknown
  std::int64_t memory_bytes = 0;                 ///< a GPU's own; 0: none
  int multiprocessors = 0;                       ///< of a GPU
  double start_seconds = 0;                      ///< initialization, once per process
  GpuFacts gpu;                                  ///< what a GPU's driver reports
  std::map<std::string, std::string> libraries;  ///< name -> version
};

/// What one pass over a Workload's whole order asks of a device, told before it is compiled.
struct Estimate {
  std::int64_t launches = 0;  ///< what the Program's facts say
  int multiprocessors = 0;    ///< of a GPU that one kernel keeps busy; else, and where it is all of
                              ///< them, 0
  std::int64_t bytes = 0;  ///< of a GPU's memory, as Plan::bytes(); 0 of a CPU, which plan() tells
  std::int64_t workspace_bytes = 0;  ///< of these the most that the libraries may use
  bool joins = false;                ///< see Plan::joins()
  std::int64_t copies = 1;           ///< see ProgramFacts
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual Description describe() const = 0;

  /// The device's current state; empty unless it is a GPU whose driver reports it.
  [[nodiscard]] virtual GpuState state() const { return {}; }

  /// Why matrix products of that precision are unavailable, in words; empty if they are available.
  [[nodiscard]] virtual std::string missing_for(Precision precision) const = 0;

  /// The same computation in the operations that this device runs fastest: fuse(), and
  /// fuse_update() where it helps a Program with such options. Tensors keep their numbers.
  [[nodiscard]] virtual Workload optimize(Workload workload,
                                          const CompileOptions& options = {}) const = 0;

  /// How a network can be executed here, eager first. The Workload need not be optimize()d, and any
  /// of the network's will do that has a full batch and adds up gradients where the network does.
  [[nodiscard]] virtual std::vector<Execution> executions(const Workload& workload,
                                                          Precision precision) const = 0;

  /// Takes the operations as given. Throws Unsupported where plan() does for any device of the
  /// kind, and std::overflow_error as plan_memory() does.
  [[nodiscard]] virtual Estimate estimate(const Workload& workload,
                                          const CompileOptions& options) const = 0;

  /// Takes the operations as given. Throws Unsupported; std::invalid_argument on a Workload that
  /// does not check().
  [[nodiscard]] virtual std::unique_ptr<Plan> plan(const Workload& workload,
                                                   const CompileOptions& options) const = 0;

  /// plan(), then instantiate().
  [[nodiscard]] std::unique_ptr<Program> compile(const Workload& workload,
                                                 const CompileOptions& options) const {
    return plan(workload, options)->instantiate();
  }

  /// Throws Unsupported where the device has nothing to probe, OutOfMemory, and
  /// std::invalid_argument on a spec that does not check().
  [[nodiscard]] virtual std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const = 0;
};

/// oneDNN; always available.
std::unique_ptr<Backend> make_cpu_backend();

/// A device, or the reason why there is none; exactly one of the two is set.
struct FoundBackend {
  std::unique_ptr<Backend> backend;
  std::string reason;  ///< "none (built without CUDA)", "none (no NVIDIA driver ...)"
};

/// cuBLASLt, cuDNN where it was found, and our own kernels, on the first device. A missing GPU is
/// not an error. With `ranks`, which outlive it: on a GPU of this rank's own, with NCCL's sums over
/// them: what compiles for them. All ranks call it at once. Throws Unsupported, on all of them
/// alike, where there are GPUs but not one for each rank, or NCCL does not do it.
FoundBackend make_cuda_backend(Ranks* ranks = nullptr);

/// A GPU that is not here, with every precision, and the memory and cache of one for data centres:
/// tells what a row would be, and throws Unsupported with the reason where it would run.
std::unique_ptr<Backend> make_planned_gpu(
    const std::string& reason = "this GPU is planned, not here");

}  // namespace crossover
