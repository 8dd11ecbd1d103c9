// SPDX-License-Identifier: Apache-2.0
// The machine that a result file was measured on, what a process may use of it, and how its threads
// run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

namespace crossover {

struct Machine {
  std::string
      id;  ///< folder name made of processor and core count, never of a frequency or host name
  std::string cpu_model;
  int sockets = 1;
  int cores = 1;                ///< physical cores that this process may use
  int threads = 1;              ///< logical processors that this process may use
  std::optional<double> quota;  ///< processors' time per time that a container has; none: all
  int numa_nodes = 1;
  std::optional<std::string>
      governor;  ///< of the first processor; absent where the kernel has none
  std::optional<bool>
      turbo;  ///< whether clocks may rise above the base; absent where that is not told
  /// Whether a hypervisor says that it is one of its machines, whose cores may be another's
  /// hardware threads; absent where that is not told.
  std::optional<bool> is_virtual;
  std::optional<bool> wsl_gpu;  ///< in WSL, whether Windows lends it a GPU; absent elsewhere
  std::string simd;  ///< widest vector instructions: "sse2", "avx2", "avx512", "amx", "neon"
  std::int64_t memory_bytes = 0;
  std::string os, kernel;
};

/// Whether the processor's clocks may rise above the base, by cpufreq, or by intel_pstate, which
/// has a switch of its own (Linux, admin-guide/pm). `root`: below which /sys is, for tests.
std::optional<bool> turbo(const std::filesystem::path& root = "/");

/// Whether the text of /proc/cpuinfo has the flag of a hypervisor's machine; absent without flags.
std::optional<bool> is_virtual(const std::string& cpuinfo);

/// Whether Windows lends its Linux (WSL) a GPU, by /dev/dxg; absent where the kernel is not WSL's.
/// `root`: below which /proc and /dev are, for tests.
std::optional<bool> wsl_gpu(const std::filesystem::path& root = "/");

/// Read from /proc and /sys; what can't be read keeps its default.
Machine this_machine();

/// Lets the calling thread run on all processors that the process began with. OpenMP's library
/// binds the first thread to one of them where the environment asks it to bind threads, and
/// children would inherit that.
void unbind_processors();

/// What the text of /proc/cpuinfo calls the processor: "AMD EPYC 7763 64-Core Processor". On ARM,
/// where that has numbers alone, its core, as "Neoverse-N1", or if unknown "ARM 0x41 0xd99"; of
/// several kinds how many there are, "4 Cortex-A55 + 4 Cortex-A76". "" where it has neither.
std::string processor_name(const std::string& cpuinfo);

/// "AMD EPYC 7763 64-Core Processor" -> "amd-epyc-7763": letters, digits and single hyphens,
/// without trademark signs, frequencies, core counts and filler words.
std::string processor_slug(const std::string& model);

/// "AMD EPYC 7763 64-Core Processor", 64 cores -> "amd-epyc-7763-64c". Virtual machines often hide
/// the model number; CPUID's family and model then replace it, which tells generations apart:
/// "AMD EPYC", "25", "17", 2 cores -> "amd-epyc-25-17-2c".
std::string machine_id(const std::string& model, const std::string& family,
                       const std::string& number, int cores);

// ---- What a container, or a slice of systemd's, may use of the machine: Linux control groups, v1
// and v2.

struct ControlGroup {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  std::int64_t memory_bytes = unlimited;  ///< the limit
  /// Of that what nobody has. Pages of files that were read once count as left: the kernel takes
  /// them back first.
  std::int64_t memory_left_bytes = unlimited;
  std::optional<double> quota;  ///< processors' time per time; none: no limit
};

/// The tightest limits of the group that this process is in, and of all around it. `root`: below
/// which /proc and /sys are, for tests.
ControlGroup control_group(const std::filesystem::path& root = "/");

/// Bytes of memory available now without swapping: the least of what the system, the control groups
/// and the address-space limit allow.
std::int64_t available_memory_bytes();

/// The same of all that there is, whoever has it now.
std::int64_t total_memory_bytes();

// ---- How threads of the CPU run, and the size from which a kernel uses several CPU threads: below
// it a second thread costs more than it gains (measured at batch 100: docs/evidence/cpu_limits.md).

/// Of this process.
struct ThreadSettings {
  std::string wait_policy;  ///< "active" or "passive" where variables of the environment say so,
                            ///< else "default": what the OpenMP library does
  std::string binding;      ///< "false", "true", "primary", "close", "spread": OMP_PROC_BIND
  int places = 0;           ///< that threads may be bound to: OMP_PLACES; 0: all of the machine
  int processors = 0;       ///< in these places; 0: all of the machine
  bool flush_denormals = false;  ///< they count as zero in Programs: the processor can (FTZ, DAZ)
};

ThreadSettings thread_settings();

inline constexpr double flops_worth_threads = 1e6;           ///< of a matrix product
inline constexpr double bytes_worth_threads = 256.0 * 1024;  ///< of a pass over memory

}  // namespace crossover
