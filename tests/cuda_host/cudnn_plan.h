// SPDX-License-Identifier: Apache-2.0
// A plan of the emulated cuDNN, whatever it computes: when it runs, in which stream, on which
// memory.
#pragma once

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/runtime.h"
#include "libraries/library.h"
#include "memory.h"
#include "ranges.h"
#include "streams.h"

namespace cuda_host {

/// Bytes that each plan works in. All calculate alike; the first is not the fastest.
struct MadeUp {
  std::size_t workspace;
  double microseconds;
};
constexpr std::array<MadeUp, 3> plans{{{8192, 5}, {0, 3}, {std::size_t{1} << 20U, 4}}};

/// What such plans do.
template <class Arguments>
struct Emulated {
  std::string what;  ///< "convolution"
  /// The operands in memory.
  std::vector<Range> (*ranges)(const Arguments&);
  void (*compute)(const Arguments&, bool tf32);
};

template <class Arguments>
class HostPlan : public crossover::cuda::Prepared<Arguments> {
 public:
  HostPlan(Emulated<Arguments> emulated, std::size_t number, bool tf32)
      : emulated_(std::move(emulated)), number_(number), tf32_(tf32) {}

  [[nodiscard]] std::string name() const override { return "eng" + std::to_string(number_); }

  void execute(cudaStream_t handle, const Arguments& of,
               const crossover::cuda::Workspace& workspace) const override {
    CROSSOVER_CUDA_CHECK(enter("cudnnExecute"));
    CUstream_st* stream = find_stream(handle);
    if (stream == nullptr) {
      throw std::runtime_error("cuDNN: no such stream");
    }
    if ((state().device.failing_plans >> number_ & 1U) != 0) {
      throw std::runtime_error("cuDNN: this plan does not run");
    }
    if (stream->capture != nullptr && state().device.cudnn_refuses_capture) {
      static_cast<void>(invalidate(*stream, cudaErrorStreamCaptureUnsupported));
      throw std::runtime_error("cuDNN: not in a capture");
    }
    const MadeUp& made_up = plans.at(number_);
    if (made_up.workspace > 0 && static_cast<std::size_t>(workspace.bytes) < made_up.workspace) {
      throw std::runtime_error("cuDNN: too little workspace");
    }
    std::vector<Range> ranges = emulated_.ranges(of);
    if (made_up.workspace > 0) {
      ranges.push_back({"the workspace", workspace.at, made_up.workspace, true});
    }
    if (const std::string what = fault(ranges); !what.empty()) {
      violation("in a " + emulated_.what + ", " + what);
      fail_context(cudaErrorIllegalAddress);
      return;  // as on a device: a later call tells
    }
    std::vector<const void*> addresses;
    for (const Range& range : ranges) {
      addresses.push_back(range.from);
    }
    Work work{.what = emulated_.what,
              .run = {},
              .blocks = blocks_of(addresses),
              .microseconds = made_up.microseconds};
    work.run = [compute = emulated_.compute, tf32 = tf32_, of, at = workspace.at,
                spoiled = made_up.workspace] {
      if (spoiled > 0) {
        std::memset(at, 0xff, spoiled);
      }
      compute(of, tf32);
    };
    CROSSOVER_CUDA_CHECK(enqueue(*stream, std::move(work)));
  }

 private:
  Emulated<Arguments> emulated_;
  std::size_t number_;
  bool tf32_;
};

}  // namespace cuda_host
