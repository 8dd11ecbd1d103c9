// SPDX-License-Identifier: Apache-2.0
// The emulator's state that all its parts share: calls, errors, violations, chance.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "cuda_host.h"

namespace cuda_host {

struct State {
  Device device;
  Order order = Order::shuffled;
  std::mt19937_64 random{1};
  std::int64_t calls = 0, executed = 0;
  std::map<std::string, std::int64_t> calls_by_name;
  std::map<std::size_t, std::int64_t> products_by_algorithm;
  std::int64_t failing_call = 0, failing_execution = 0;
  cudaError_t failure = cudaSuccess;
  bool failed = false;
  cudaError_t last = cudaSuccess;    ///< for cudaGetLastError
  cudaError_t sticky = cudaSuccess;  ///< the context's end
  std::vector<std::string> violations;
  Live live;
  std::map<const void*, unsigned> allowed_shared_bytes;  ///< by kernel

  /// A number in [0, count).
  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random() % count); }
};
State& state();

/// Dynamic shared memory that any kernel's launch may ask for.
inline constexpr unsigned shared_bytes_without_consent = 48U << 10U;

/// At the start of every call: counts it, and gives the error that it must return: an injected one,
/// or the one that ended the context.
cudaError_t enter(const char* function);

/// Calls that release something: they do so whatever enter() says, as the owner has no second try.
/// Remembers an error for cudaGetLastError and hands it back.
cudaError_t result(cudaError_t error);

/// A call of that function: what enter() gives, or else `work`.
template <class Work>
cudaError_t call(const char* function, const Work& work) {
  const cudaError_t error = enter(function);
  return result(error != cudaSuccess ? error : work());
}

void violation(const std::string& sentence);

/// Whether it is the turn of Device::forgetful_launch.
bool is_forgetful();

/// Ends the context.
void fail_context(cudaError_t error);

/// Takes the fault, where it is that one.
bool is_due(Fault fault);
/// As a kernel that does not end.
[[noreturn]] void hang();

}  // namespace cuda_host
