// SPDX-License-Identifier: Apache-2.0
// For bench on the emulated GPU: EMULATED_FAILING_CALL=n loses the device at the n-th call of CUDA,
// EMULATED_START_SECONDS=s is what its context takes,
// and what is left over or was not allowed is told at the end, with exit code 70.
// EMULATED_TRUNCATION: factors of tf32 are truncated; EMULATED_NO_ODD_16_BITS: products of 16 bits
// at odd extents are refused.
#include <cstdlib>
#include <iostream>

#include "cuda_host.h"

namespace {

constexpr int exit_code_of_a_violation = 70;

class Watch {
 public:
  Watch() {
    cuda_host::reset(1, cuda_host::Order::eager);
    cuda_host::device().no_odd_16_bits = std::getenv("EMULATED_NO_ODD_16_BITS") != nullptr;
    const char* truncation = std::getenv("EMULATED_TRUNCATION");
    if (truncation != nullptr && *truncation != '\0') {
      cuda_host::device().tf32 = cuda_host::Tf32::truncated;
    }
    if (const char* seconds = std::getenv("EMULATED_START_SECONDS")) {
      cuda_host::device().start_seconds = std::atof(seconds);
    }
    if (const char* call = std::getenv("EMULATED_FAILING_CALL")) {
      cuda_host::fail_call(std::atoll(call), cudaErrorECCUncorrectable);
    }
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    const std::string left = cuda_host::live().text();
    const std::vector<std::string> violations = cuda_host::take_violations();
    for (const std::string& sentence : violations) {
      std::cerr << "emulated GPU: " << sentence << "\n";
    }
    if (!left.empty()) {
      std::cerr << "emulated GPU: left over: " << left << "\n";
    }
    if (!left.empty() || !violations.empty()) {
      std::_Exit(exit_code_of_a_violation);
    }
  }
};

const Watch watch;

}  // namespace
