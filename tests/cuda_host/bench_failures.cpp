// SPDX-License-Identifier: Apache-2.0
// For bench on the emulated GPU: EMULATED_FAILING_CALL=n loses the device at the n-th call of CUDA,
// EMULATED_START_SECONDS=s is what its context takes, EMULATED_GPUS=n how many there are,
// and what is left over or was not allowed is told at the end, with exit code 70.
// EMULATED_TRUNCATION: factors of tf32 are truncated; EMULATED_NO_ODD_16_BITS: products of 16 bits
// at odd extents are refused.
// EMULATED_FAULTS=FILE.json: an object of what happens in rows, {"ROW": ["abort", "illegal"]}: in
// its first try, in its second. A worker takes what it does from the list; "gone" stays.
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>

#include "cuda_host.h"
#include "worker/protocol.h"

namespace {

using crossover::bench::Json;

constexpr int exit_code_of_a_violation = 70;

/// What goes wrong in rows: it reads the requests before the worker does.
class Faults {
 public:
  explicit Faults(std::string file) : file_(std::move(file)) {
    if (read().contains("gone")) {
      cuda_host::fail_call(1, cudaErrorECCUncorrectable);
    }
    std::array<int, 2> ends{};
    if (!is_worker() || pipe(ends.data()) != 0) {
      return;
    }
    const int requests = dup(STDIN_FILENO);
    dup2(ends[0], STDIN_FILENO);
    std::thread([this, requests, to = ends[1]] {
      crossover::bench::LineReader lines(requests);
      while (const auto line = lines.next()) {
        if (act(Json::parse(*line))) {
          crossover::bench::write_line(to, *line);
        }
      }
      close(to);
    }).detach();
  }

 private:
  static bool is_worker() {
    std::ifstream words("/proc/self/cmdline");
    const std::string all(std::istreambuf_iterator<char>(words), {});
    return all.find("--worker") != std::string::npos;
  }

  [[nodiscard]] Json read() const {
    std::ifstream stream(file_);
    return Json::parse(stream);
  }

  /// At a row's first repetition, or a check; a loop's as soon as the row is made, whose trials
  /// have loops, for they may choose a way without. False where the worker never sees the request.
  [[nodiscard]] bool act(const Json& request) const {
    Json all = read();
    const bool is_check = request["do"] == "check";
    const auto found = all.find(request.value(is_check ? "name" : "row", ""));
    if (found == all.end() || found->empty()) {
      return true;
    }
    const std::string fault = found->front();
    if (!is_check && request["do"] != (fault == "endless loop" ? "prepare" : "repeat")) {
      return true;
    }
    found->erase(0);
    if (fault == "gone") {
      all["gone"] = Json::array();
    }
    std::ofstream(file_) << all;
    if (fault == "illegal" || fault == "gone") {
      cuda_host::set_fault(cuda_host::Fault::illegal_access);
    } else if (fault == "endless kernel") {
      cuda_host::set_fault(cuda_host::Fault::endless_kernel);
    } else if (fault == "endless loop") {
      cuda_host::set_fault(cuda_host::Fault::endless_loop);
    } else if (fault == "abort") {
      std::abort();
    } else if (fault == "segmentation") {
      std::raise(SIGSEGV);
    } else if (fault == "instruction") {
      std::raise(SIGILL);
    }
    return fault != "silence";
  }

  std::string file_;
};

class Watch {
 public:
  Watch() {
    cuda_host::reset(1, cuda_host::Order::eager);
    cuda_host::device().no_odd_16_bits = std::getenv("EMULATED_NO_ODD_16_BITS") != nullptr;
    const char* truncation = std::getenv("EMULATED_TRUNCATION");
    if (truncation != nullptr && *truncation != '\0') {
      cuda_host::device().tf32 = cuda_host::Tf32::truncated;
    }
    if (const char* count = std::getenv("EMULATED_GPUS")) {
      cuda_host::device().count = std::atoi(count);
    }
    if (const char* seconds = std::getenv("EMULATED_START_SECONDS")) {
      cuda_host::device().start_seconds = std::atof(seconds);
    }
    if (const char* call = std::getenv("EMULATED_FAILING_CALL")) {
      cuda_host::fail_call(std::atoll(call), cudaErrorECCUncorrectable);
    }
    if (const char* file = std::getenv("EMULATED_FAULTS")) {
      static const Faults faults(file);
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
