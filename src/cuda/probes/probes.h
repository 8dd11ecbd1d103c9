// SPDX-License-Identifier: Apache-2.0
// A GPU's probes. Each is a piece of work that probes.cpp puts into a stream and times.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "../../probe/expected.h"
#include "../backend/runtime.h"
#include "crossover/probe.h"

namespace crossover::cuda {

/// See Backend::make_probe().
std::unique_ptr<Probe> make_probe(const ProbeSpec& spec, const cudaDeviceProp& device);

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

std::unique_ptr<Piece> make_piece(const CopyProbe& spec);
std::unique_ptr<Piece> make_piece(const FmaProbe& spec);
std::unique_ptr<Piece> make_piece(const TriadProbe& spec);
std::unique_ptr<Piece> make_piece(const MatrixProbe& spec);

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

}  // namespace crossover::cuda
