// SPDX-License-Identifier: Apache-2.0
#include "device_tensors.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "../plan/tensor_places.h"

namespace crossover::cuda {
namespace {

void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, stream));
}

}  // namespace

HostData::HostData(std::int64_t bytes, Placement placement) {
  if (bytes == 0) {
    return;
  }
  if (placement == Placement::pageable) {
    ordinary_.resize(static_cast<std::size_t>(bytes));
    data_ = ordinary_.data();
  } else {
    pinned_ = allocate_pinned(bytes);
    data_ = static_cast<std::byte*>(pinned_.get());
    std::memset(data_, 0, static_cast<std::size_t>(bytes));
  }
}

DeviceTensors::DeviceTensors(const Workload& workload, const LaunchPlan& plan)
    : workload_(workload),
      plan_(plan),
      memory_(allocate_device(std::max<std::int64_t>(plan.bytes, 1))),
      host_(plan.host_bytes, plan.mode.placement) {}

void DeviceTensors::clear(cudaStream_t stream) const {
  CROSSOVER_CUDA_CHECK(cudaMemsetAsync(block(), 0, static_cast<std::size_t>(plan_.bytes), stream));
}

void DeviceTensors::upload(Id id, std::span<const std::byte> from, cudaStream_t stream,
                           std::int64_t network) {
  const TensorPlace& place = require_copyable(id, from.size());
  const Arrangement arrangement = arrangement_of(place.layout, workload_[id].shape);
  const std::int64_t element_bytes = bytes(workload_[id].type);
  wait(stream);  // what runs may still read the old values
  if (place.host_offset >= 0) {
    arrange(from, host_.at(place.host_offset), arrangement, element_bytes);
    return;
  }
  std::vector<std::byte> arranged;
  if (!arrangement.is_plain()) {
    arranged.resize(from.size());
    arrange(from, arranged.data(), arrangement, element_bytes);
    from = arranged;
  }
  copy(block_of(network) + place.offset, from.data(), from.size(), cudaMemcpyHostToDevice, stream);
  wait(stream);  // `from` is the caller's again
}

void DeviceTensors::download(Id id, std::span<std::byte> to, cudaStream_t stream,
                             std::int64_t network) const {
  const TensorPlace& place = require_copyable(id, to.size());
  const Arrangement arrangement = arrangement_of(place.layout, workload_[id].shape);
  const std::int64_t element_bytes = bytes(workload_[id].type);
  wait(stream);
  if (place.host_offset >= 0) {
    restore(host_.at(place.host_offset), to, arrangement, element_bytes);
    return;
  }
  std::vector<std::byte> arranged(arrangement.is_plain() ? 0 : to.size());
  copy(arranged.empty() ? to.data() : arranged.data(), block_of(network) + place.offset, to.size(),
       cudaMemcpyDeviceToHost, stream);
  wait(stream);
  if (!arranged.empty()) {
    restore(arranged.data(), to, arrangement, element_bytes);
  }
}

void DeviceTensors::spread(Id id, cudaStream_t stream) const {
  for (std::int64_t network = 1; network < plan_.networks.count; ++network) {
    const std::int64_t offset = plan_[id].offset;
    copy(block_of(network) + offset, block() + offset,
         static_cast<std::size_t>(bytes(workload_[id])), cudaMemcpyDeviceToDevice, stream);
  }
}

void DeviceTensors::stage(const Run& first, const Run& last, int buffer,
                          cudaStream_t stream) const {
  for_each_copy(
      plan_, first, last,
      [&](Id from, std::int64_t staged, std::int64_t begin, std::int64_t count) {
        const TensorPlace& source = plan_[from];
        const bool on_host = source.host_offset >= 0;
        copy(block() + staged + buffer * plan_.buffer_bytes,
             on_host ? host_.at(source.host_offset + begin) : block() + source.offset + begin,
             static_cast<std::size_t>(count),
             on_host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice, stream);
      });
}

const TensorPlace& DeviceTensors::require_copyable(Id id, std::size_t size) const {
  const TensorPlace& place = plan_.tensors.at(static_cast<std::size_t>(id));
  const bool placed = place.offset >= 0 || place.host_offset >= 0;
  if (!placed || static_cast<std::int64_t>(size) != bytes(workload_[id])) {
    throw std::invalid_argument("tensor '" + workload_[id].name + "' can't be copied in " +
                                std::to_string(size) + " bytes");
  }
  return place;
}

}  // namespace crossover::cuda
