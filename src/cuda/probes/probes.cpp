// SPDX-License-Identifier: Apache-2.0
// A GPU's probes. The wall clock's time of run() includes the wait; device_seconds() is between two
// events around the same work.
#include "probes.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../probe/expected.h"
#include "../../step/overload.h"
#include "../base/runtime.h"
#include "../libraries/algorithms.h"
#include "../libraries/library.h"
#include "../plan/plan.h"
#include "crossover/backend.h"
#include "crossover/float16.h"
#include "crossover/probe.h"

namespace crossover::cuda {
namespace {

/// Memory, and what is done with it in a stream.
class Piece {
 public:
  Piece() = default;
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  virtual ~Piece() = default;

  /// Once, before the first run.
  virtual void prepare(cudaStream_t /*stream*/) {}
  /// Puts one run into the stream.
  virtual void issue(cudaStream_t stream) = 0;
  /// See Probe::check(). Where nothing is computed, errors are all that there is to find, and the
  /// wait behind each run has found them.
  virtual void check(cudaStream_t /*stream*/) {}
};

/// Of a block on the device, what passes through the host at once.
constexpr std::int64_t part_bytes = std::int64_t{4} << 20U;

/// Calls use(first byte, bytes) for each part of a block.
template <class Use>
void for_each_part(std::int64_t bytes, const Use& use) {
  for (std::int64_t first = 0; first < bytes; first += part_bytes) {
    use(first, std::min(part_bytes, bytes - first));
  }
}

/// Bytes on the host or on the device, that can be filled, spoiled and looked at from the host.
class ProbeMemory {
 public:
  enum class Place { pageable, pinned, device };

  ProbeMemory(Place place, std::int64_t bytes) : bytes_(bytes) {
    switch (place) {
      case Place::pageable:
        pageable_.resize(static_cast<std::size_t>(bytes));
        host_ = pageable_.data();
        break;
      case Place::pinned:
        pinned_ = allocate_pinned(bytes);
        host_ = static_cast<std::byte*>(pinned_.get());
        break;
      case Place::device:
        device_ = allocate_device(bytes);
        break;
    }
  }

  [[nodiscard]] void* get() const { return host_ != nullptr ? host_ : device_.get(); }
  [[nodiscard]] float* floats() const { return static_cast<float*>(get()); }

  void spoil(cudaStream_t stream) const {
    const auto size = static_cast<std::size_t>(bytes_);
    if (host_ != nullptr) {
      std::memset(host_, probe::spoiled_byte, size);
      return;
    }
    CROSSOVER_CUDA_CHECK(cudaMemsetAsync(device_.get(), probe::spoiled_byte, size, stream));
    CROSSOVER_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  void fill(std::uint64_t salt, cudaStream_t stream) const {
    if (host_ != nullptr) {
      probe::fill_pattern({host_, static_cast<std::size_t>(bytes_)}, 0, salt);
      return;
    }
    std::vector<std::byte> part(static_cast<std::size_t>(std::min(bytes_, part_bytes)));
    for_each_part(bytes_, [&](std::int64_t first, std::int64_t count) {
      const auto size = static_cast<std::size_t>(count);
      probe::fill_pattern({part.data(), size}, first, salt);
      copy(static_cast<std::byte*>(device_.get()) + first, part.data(), size,
           cudaMemcpyHostToDevice, stream);
    });
  }

  /// Calls look(span of T, position of its first element) for all of it.
  template <class T, class Look>
  void look_at(const Look& look, cudaStream_t stream) const {
    constexpr auto one = static_cast<std::int64_t>(sizeof(T));
    std::vector<T> part(static_cast<std::size_t>((std::min(bytes_, part_bytes) + one - 1) / one));
    for_each_part(bytes_, [&](std::int64_t first, std::int64_t count) {
      const auto size = static_cast<std::size_t>(count);
      const std::byte* from = static_cast<const std::byte*>(get()) + first;
      if (host_ != nullptr) {
        std::memcpy(part.data(), from, size);
      } else {
        copy(part.data(), from, size, cudaMemcpyDeviceToHost, stream);
      }
      look(std::span<const T>(part.data(), size / sizeof(T)), first / one);
    });
  }

 private:
  /// And waits: the host's side is the caller's again.
  static void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                   cudaStream_t stream) {
    CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, stream));
    CROSSOVER_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  std::int64_t bytes_;
  std::vector<std::byte> pageable_;
  PinnedMemory pinned_;
  DeviceMemory device_;
  std::byte* host_ = nullptr;
};

// ---- Copies between the host's memory and the device's, in one direction or in both at once.

/// A block and the copy of it.
struct CopyWay {
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

CopyWay make_way(const CopyProbe& spec, Direction direction, std::uint64_t salt) {
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
  CopyWay way_;
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
  CopyWay up_, down_;
  Event start_ = make_event(), end_ = make_event();
  Stream back_ = make_stream();  // destroyed first: it waits for what uses the members before it
};

std::unique_ptr<Piece> make_piece(const CopyProbe& spec) {
  if (spec.direction == Direction::both) {
    return std::make_unique<CopyBoth>(spec);
  }
  return std::make_unique<Copy>(spec);
}

// ---- What the GPU computes: multiply-adds, the triad, products of matrices.

ProbeMemory floats(std::int64_t count) {
  return {ProbeMemory::Place::device, count * static_cast<std::int64_t>(sizeof(float))};
}

class MultiplyAdd : public Piece {
 public:
  explicit MultiplyAdd(const FmaProbe& spec)
      : spec_(spec), expected_(spec.length), results_(floats(spec.values)) {}

  void prepare(cudaStream_t stream) override { results_.spoil(stream); }
  void issue(cudaStream_t stream) override {
    fma(stream, spec_.values, spec_.length, results_.floats());
  }
  void check(cudaStream_t stream) override {
    results_.look_at<float>(
        [this](std::span<const float> got, std::int64_t first) { expected_.check(got, first); },
        stream);
    results_.spoil(stream);
  }

 private:
  FmaProbe spec_;
  probe::ExpectedFma expected_;
  ProbeMemory results_;
};

class Triad : public Piece {
 public:
  explicit Triad(const TriadProbe& spec)
      : values_(spec.values), a_(floats(values_)), b_(floats(values_)), c_(floats(values_)) {}

  void prepare(cudaStream_t stream) override {
    fill_triad(stream, b_.floats(), c_.floats(), values_);
    a_.spoil(stream);
  }
  void issue(cudaStream_t stream) override {
    triad(stream, b_.floats(), c_.floats(), a_.floats(), values_);
  }
  void check(cudaStream_t stream) override {
    a_.look_at<float>(&probe::check_triad, stream);
    a_.spoil(stream);
  }

 private:
  std::int64_t values_;
  ProbeMemory a_, b_, c_;
};

/// Row-major A B is, in cuBLASLt's column-major terms, B' A'.
class Matrix : public Piece {
 public:
  explicit Matrix(const MatrixProbe& spec)
      : size_(spec.size),
        type_(storage_of(spec.precision)),
        expected_(size_),
        products_(make_cublaslt_library(spec.precision)),
        a_(matrix()),
        b_(matrix()),
        d_(matrix()),
        workspace_(allocate_device(workspace_for_products)) {}

  void prepare(cudaStream_t stream) override {
    fill_matrices(stream, type_, a_.get(), b_.get(), size_);
    const ProductForm form{.m = size_,
                           .n = size_,
                           .k = size_,
                           .alignment_a = alignment,
                           .alignment_b = alignment,
                           .alignment_d = alignment,
                           .factors = type_,
                           .result = type_};
    call_ = {form, {b_.get()}, {a_.get()}, {d_.get()}, {}, {}};
    constexpr bool fastest = false;
    products_.choose(call_, fastest, workspace(), stream);
    product_ = products_.made(call_);
    d_.spoil(stream);
  }
  void issue(cudaStream_t stream) override { product_->execute(stream, call_, workspace()); }
  void check(cudaStream_t stream) override {
    with_float(type_, [&](auto zero) {
      using T = decltype(zero);
      d_.look_at<T>(
          [this](std::span<const T> got, std::int64_t first) { expected_.check(got, first); },
          stream);
    });
    d_.spoil(stream);
  }

 private:
  static constexpr std::int64_t alignment = 256;  ///< cudaMalloc()'s, in bytes

  [[nodiscard]] ProbeMemory matrix() const {
    return {ProbeMemory::Place::device, size_ * size_ * bytes(type_)};
  }
  [[nodiscard]] Workspace workspace() const { return {workspace_.get(), workspace_for_products}; }

  std::int64_t size_;
  Type type_;
  probe::ExpectedProduct expected_;
  Products products_;
  CalledProduct call_;
  std::shared_ptr<const Product> product_;
  ProbeMemory a_, b_, d_;
  DeviceMemory workspace_;
};

std::unique_ptr<Piece> make_piece(const FmaProbe& spec) {
  return std::make_unique<MultiplyAdd>(spec);
}
std::unique_ptr<Piece> make_piece(const TriadProbe& spec) { return std::make_unique<Triad>(spec); }
std::unique_ptr<Piece> make_piece(const MatrixProbe& spec) {
  return std::make_unique<Matrix>(spec);
}

// ---- All probes

/// Issues, waits, and takes the time by events.
class InStream : public Probe {
 public:
  explicit InStream(std::unique_ptr<Piece> piece) : piece_(std::move(piece)) {
    piece_->prepare(stream_.get());
    wait(stream_.get());
  }

  void run() override {
    piece_->issue(stream_.get());
    wait(stream_.get());
  }

  void check() override { piece_->check(stream_.get()); }

  double device_seconds() override {
    CROSSOVER_CUDA_CHECK(cudaEventRecord(start_.get(), stream_.get()));
    piece_->issue(stream_.get());
    CROSSOVER_CUDA_CHECK(cudaEventRecord(end_.get(), stream_.get()));
    wait(stream_.get());
    float milliseconds = 0;
    CROSSOVER_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start_.get(), end_.get()));
    return static_cast<double>(milliseconds) / 1e3;
  }

 private:
  std::unique_ptr<Piece> piece_;
  Event start_ = make_timed_event(), end_ = make_timed_event();
  Stream stream_ = make_stream();  // destroyed first: it waits for what uses the members before it
};

class EmptyLaunches : public Piece {
 public:
  explicit EmptyLaunches(const LaunchProbe& spec) : launches_(spec.launches) {}

  void issue(cudaStream_t stream) override {
    for (int launch = 0; launch < launches_; ++launch) {
      empty(stream);
    }
  }

 private:
  int launches_;
};

class GraphNodes : public Piece {
 public:
  explicit GraphNodes(const GraphNodeProbe& spec) : nodes_(spec.nodes) {}

  void prepare(cudaStream_t stream) override {
    graph_ = capture(stream, [&] {
      for (int node = 0; node < nodes_; ++node) {
        empty(stream);
      }
    });
  }
  void issue(cudaStream_t stream) override {
    CROSSOVER_CUDA_CHECK(cudaGraphLaunch(graph_.get(), stream));
  }

 private:
  int nodes_;
  GraphExec graph_;
};

class Synchronize : public Probe {
 public:
  void run() override { wait(stream_.get()); }
  void check() override {}

 private:
  Stream stream_ = make_stream();
};

std::unique_ptr<Probe> in_stream(std::unique_ptr<Piece> piece) {
  return std::make_unique<InStream>(std::move(piece));
}

}  // namespace

std::unique_ptr<Probe> make_probe(const ProbeSpec& spec, const cudaDeviceProp& device) {
  crossover::check(spec);
  return std::visit(
      Overload{[](const CopyProbe& probe) -> std::unique_ptr<Probe> {
                 if (probe.direction == Direction::host_to_host) {
                   throw Unsupported("copies within the host's memory are the CPU's");
                 }
                 return in_stream(make_piece(probe));
               },
               [](const FmaProbe& probe) -> std::unique_ptr<Probe> {
                 if (probe.precision != Precision::f32) {
                   throw Unsupported(
                       "multiply-adds outside of the matrix units are measured in "
                       "f32, not in " +
                       to_string(probe.precision));
                 }
                 return in_stream(make_piece(probe));
               },
               [&](const MatrixProbe& probe) -> std::unique_ptr<Probe> {
                 if (const std::string missing = missing_for_products(device, probe.precision);
                     !missing.empty()) {
                   throw Unsupported(missing);
                 }
                 return in_stream(make_piece(probe));
               },
               [](const TriadProbe& probe) -> std::unique_ptr<Probe> {
                 return in_stream(make_piece(probe));
               },
               [](const LaunchProbe& probe) -> std::unique_ptr<Probe> {
                 return in_stream(std::make_unique<EmptyLaunches>(probe));
               },
               [](const GraphNodeProbe& probe) -> std::unique_ptr<Probe> {
                 return in_stream(std::make_unique<GraphNodes>(probe));
               },
               [](const SynchronizeProbe& /*probe*/) -> std::unique_ptr<Probe> {
                 return std::make_unique<Synchronize>();
               },
               [](const ForkJoinProbe& /*probe*/) -> std::unique_ptr<Probe> {
                 throw Unsupported("threads of the host are the CPU's");
               }},
      spec);
}

}  // namespace crossover::cuda
