// SPDX-License-Identifier: Apache-2.0
// Copies between the host's memory and the device's, in one direction or in both at once.
#include "probes.h"

namespace crossover::cuda {
namespace {

/// A block and the copy of it.
struct Way {
  ProbeMemory from, to;
  cudaMemcpyKind kind;
  std::uint64_t salt;

  void prepare(cudaStream_t stream) const {
    from.fill(salt, stream);
    to.spoil(stream);
  }
  void issue(std::size_t bytes, int copies, cudaStream_t stream) const {
    for (int i = 0; i < copies; ++i) {
      CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(to.get(), from.get(), bytes, kind, stream));
    }
  }
  void check(cudaStream_t stream) const {
    to.look_at<std::byte>([&](std::span<const std::byte> got,
                              std::int64_t first) { probe::check_pattern(got, first, salt); },
                          stream);
    to.spoil(stream);
  }
};

Way make_way(const CopyProbe& spec, Direction direction, std::uint64_t salt) {
  const ProbeMemory::Place host =
      spec.memory == HostMemory::pinned ? ProbeMemory::Place::pinned : ProbeMemory::Place::pageable;
  constexpr auto device = ProbeMemory::Place::device;
  switch (direction) {
    case Direction::device_to_host:
      return {ProbeMemory(device, spec.bytes), ProbeMemory(host, spec.bytes),
              cudaMemcpyDeviceToHost, salt};
    case Direction::device_to_device:
      return {ProbeMemory(device, spec.bytes), ProbeMemory(device, spec.bytes),
              cudaMemcpyDeviceToDevice, salt};
    default:
      return {ProbeMemory(host, spec.bytes), ProbeMemory(device, spec.bytes),
              cudaMemcpyHostToDevice, salt};
  }
}

class Copy : public Piece {
 public:
  explicit Copy(const CopyProbe& spec)
      : bytes_(static_cast<std::size_t>(spec.bytes)),
        copies_(static_cast<int>(work(spec).pieces)),
        way_(make_way(spec, spec.direction, 0)) {}

  void prepare(cudaStream_t stream) override { way_.prepare(stream); }
  void issue(cudaStream_t stream) override { way_.issue(bytes_, copies_, stream); }
  void check(cudaStream_t stream) override { way_.check(stream); }

 private:
  std::size_t bytes_;
  int copies_;
  Way way_;
};

/// Both directions at once, the second on a stream of its own that events tie to the first.
class CopyBoth : public Piece {
 public:
  explicit CopyBoth(const CopyProbe& spec)
      : bytes_(static_cast<std::size_t>(spec.bytes)),
        copies_(static_cast<int>(work(spec).pieces)),
        up_(make_way(spec, Direction::host_to_device, 0)),
        down_(make_way(spec, Direction::device_to_host, 1)) {}

  void prepare(cudaStream_t stream) override {
    up_.prepare(stream);
    down_.prepare(stream);
  }

  void issue(cudaStream_t stream) override {
    CROSSOVER_CUDA_CHECK(cudaEventRecord(start_.get(), stream));
    CROSSOVER_CUDA_CHECK(cudaStreamWaitEvent(back_.get(), start_.get(), 0));
    up_.issue(bytes_, copies_, stream);
    down_.issue(bytes_, copies_, back_.get());
    CROSSOVER_CUDA_CHECK(cudaEventRecord(end_.get(), back_.get()));
    CROSSOVER_CUDA_CHECK(cudaStreamWaitEvent(stream, end_.get(), 0));
  }

  void check(cudaStream_t stream) override {
    up_.check(stream);
    down_.check(stream);
  }

 private:
  std::size_t bytes_;
  int copies_;
  Way up_, down_;
  Event start_ = make_event(), end_ = make_event();
  Stream back_ = make_stream();  // destroyed first: it waits for what uses the members before it
};

}  // namespace

std::unique_ptr<Piece> make_piece(const CopyProbe& spec) {
  if (spec.direction == Direction::both) {
    return std::make_unique<CopyBoth>(spec);
  }
  return std::make_unique<Copy>(spec);
}

}  // namespace crossover::cuda
