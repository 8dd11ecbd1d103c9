// SPDX-License-Identifier: Apache-2.0
// What tests do with the emulated GPU beside calling it: make up its properties, let calls fail,
// ask what broke its rules and what is still alive.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cuda_host {

/// What a product in tf32 makes of a factor that has more bits.
enum class Tf32 { exact, rounded, truncated };

/// The made-up device and its driver; a test changes what it needs, reset() makes it new.
struct Device {
  int count = 1;
  int driver_version = 13000;  ///< 0: no driver
  int runtime_version = 13000;
  int major = 9;             ///< of the compute capability
  bool has_code = true;      ///< the program holds kernels for it
  int code = 90;             ///< ten times the compute capability that these were made for
  bool has_display = false;  ///< whose driver ends kernels that take seconds
  bool launches_cooperative = true;
  int threads = 1024;  ///< of a block
  int multiprocessors = 4;
  unsigned cluster_blocks = 8;  ///< of the largest that there is room for; not before major 9
  int cache_bytes = 1 << 20U;
  std::size_t shared_bytes = std::size_t{227} << 10U;  ///< of a block, with the kernel's consent
  std::size_t bytes = std::size_t{1} << 30U;
  std::size_t bytes_of_others = 0;  ///< taken by other processes
  std::size_t library_bytes = 0;    ///< that cublasLtCreate must find free
  cudaError_t busy = cudaSuccess;   ///< what making a context gives
  double start_seconds = 0;         ///< what making a context takes
  unsigned refused_epilogues = 0;   ///< bits of cublasLtEpilogue_t without an algorithm
  Tf32 tf32 = Tf32::rounded;
  bool no_odd_16_bits = false;      ///< no product of 16 bits at an odd leading dimension
  bool mask_at_zero = false;        ///< relu's mask has its bit set where the input is 0
  bool rounds_before_bias = false;  ///< a product in bf16 rounds its sum, and then adds the bias
  unsigned failing_algorithms = 0;  ///< bits by number: proposed, and not supported when run
  std::string no_cudnn;             ///< why there is none, as in a build without it
  bool refuses_fused_convolutions = false;  ///< no plan with a bias or a ReLU
  bool refuses_sdpa = false;                ///< no plan for attention
  bool refuses_repeating_sdpa = false;      ///< none for a gradient that repeats to the bit
  bool cudnn_refuses_capture = false;
  unsigned failing_plans = 0;  ///< bits by number: proposed by cuDNN, and refused when run
  std::string failing_nccl;    ///< its function that fails
  bool nccl_refuses_capture = false;
  float astray_sums = 0;       ///< what this rank has too much in the first value of each
  bool refuses_loops = false;  ///< no graph with a conditional node is made ready to be launched
  bool blocks_apart = false;   ///< whether kernels' blocks get in each other's way is looked at
  /// Which of the next launches of several rows of blocks, or of products in a batch, counted from
  /// 1, works on what the first of them has, as if it forgot how far they lie apart.
  std::int64_t forgetful_launch = 0;
  /// How long a product takes, in microseconds of the made-up clock, by its algorithm's number in
  /// the order of the heuristic: not the fastest first. The last one needs 1 GiB of workspace.
  std::array<double, 4> product_microseconds{3, 2, 4, 1};
  double split_microseconds = 5;  ///< of a product by one of them with its sum in parts
};
Device& device();

/// How much freedom the executor takes.
enum class Order {
  shuffled,  ///< anything that CUDA allows, at any time
  eager,     ///< at once, in the order of the calls
  lazy,      ///< only what is waited for, and only then
};

/// A new device, as after the start of a process. The same seed makes the same choices. Objects
/// that are still alive are forgotten, and their memory is gone.
void reset(std::uint64_t seed = 1, Order order = Order::shuffled);

/// Calls of the runtime and of cuBLASLt since reset().
std::int64_t calls();
/// Calls of cublasLtMatmul with the algorithm of that number; 4: with any that splits its sum.
std::int64_t products_by(std::size_t algorithm);
/// Operations that the device has executed since reset().
std::int64_t executed();

/// The n-th call (from 1) fails with this error. Errors that end a CUDA context (launch failure,
/// illegal address, ECC, ...) are returned by every call after it, too.
void fail_call(std::int64_t n, cudaError_t error);
/// The n-th operation that the device executes (from 1) fails: later calls tell.
void fail_execution(std::int64_t n, cudaError_t error);
bool is_sticky(cudaError_t error);
/// What the next operation that the device executes does instead.
enum class Fault {
  none,
  illegal_access,
  endless_kernel,
  endless_loop,  ///< the next loop in a graph
};
void set_fault(Fault fault);

/// Whether a failure that was asked for has happened.
bool has_failed();

/// Sentences on what was done that CUDA does not allow and that it may not report. A test that
/// does not take them fails (see environment.cpp).
std::vector<std::string> take_violations();

struct Live {
  std::int64_t device_blocks = 0, pinned_blocks = 0, streams = 0, events = 0, graphs = 0,
               graph_execs = 0, handles = 0, descriptors = 0, layouts = 0, preferences = 0,
               communicators = 0;

  friend bool operator==(const Live&, const Live&) = default;
  [[nodiscard]] std::string text() const;  ///< what is not zero: "2 streams, 1 event"
};
Live live();
std::size_t live_device_bytes();

/// Number of calls of that function since reset(): "cudaGraphLaunch".
std::int64_t calls_of(const std::string& function);

}  // namespace cuda_host
