// SPDX-License-Identifier: Apache-2.0
// A Workload's tensors where a plan puts them: the device block, and the host's copy of a data set
// that is streamed. What comes in and goes out is in the plain layout, whatever the device's is.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../base/runtime.h"
#include "../plan/plan.h"

namespace crossover::cuda {

/// The data set where it lies on the host.
class HostData {
 public:
  HostData(std::int64_t bytes, Placement placement);
  [[nodiscard]] std::byte* at(std::int64_t offset) const { return data_ + offset; }

 private:
  std::vector<std::byte> ordinary_;
  PinnedMemory pinned_;
  std::byte* data_ = nullptr;
};

class DeviceTensors {
 public:
  /// Both must outlive this. The device block holds garbage until clear(). Throws OutOfMemory.
  DeviceTensors(const Workload& workload, const LaunchPlan& plan);

  [[nodiscard]] std::byte* block() const { return static_cast<std::byte*>(memory_.get()); }
  /// Where that of one of the plan's networks begins.
  [[nodiscard]] std::byte* block_of(std::int64_t network) const {
    return block() + network * plan_.networks.stride;
  }

  /// Puts zeros everywhere in the device block, in the stream.
  void clear(cudaStream_t stream) const;

  /// After what the stream has been given; they return when all is done. See Program.
  void upload(Id id, std::span<const std::byte> from, cudaStream_t stream,
              std::int64_t network = 0);
  void download(Id id, std::span<std::byte> to, cudaStream_t stream,
                std::int64_t network = 0) const;
  /// The first network's tensor becomes that of all.
  void spread(Id id, cudaStream_t stream) const;

  /// Copies the rows of runs from the first to the last, which lie together in the data set,
  /// wherever that lies, into a staging buffer.
  void stage(const Run& first, const Run& last, int buffer, cudaStream_t stream) const;

 private:
  [[nodiscard]] const TensorPlace& require_copyable(Id id, std::size_t size) const;

  const Workload& workload_;
  const LaunchPlan& plan_;
  DeviceMemory memory_;
  HostData host_;
};

}  // namespace crossover::cuda
