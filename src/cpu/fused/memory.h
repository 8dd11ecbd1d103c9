// SPDX-License-Identifier: Apache-2.0
// Where the tensors of a fused program lie: matrices with their samples along a line of memory, as
// kernels.h wants them, and the way in and out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "crossover/step.h"

namespace crossover::cpu::fused {

/// Hands out parts of one block, each at the start of a cache line; without a block it only counts.
class Arena {
 public:
  explicit Arena(std::byte* base = nullptr) : base_(base) {}

  template <class T>
  T* take(std::int64_t count) {
    const std::int64_t offset = bytes_;
    constexpr std::int64_t line = 64;
    bytes_ += (count * static_cast<std::int64_t>(sizeof(T)) + line - 1) / line * line;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + offset);
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* base_;
  std::int64_t bytes_ = 0;
};

/// A tensor in memory.
struct Stored {
  std::byte* at = nullptr;
  /// Of a matrix [rows, columns] whose elements lie so far apart; zero where it lies as it is.
  std::int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;
};

class Memory {
 public:
  explicit Memory(const std::vector<Tensor>& tensors)
      : tensors_(tensors), stored_(tensors.size()) {}

  /// The matrix, or a vector of that many elements as a matrix of one column; with `ld` floats for
  /// each column, and room for whole tiles of them.
  float* matrix(Arena& arena, Id id, std::int64_t ld);
  /// The matrix with `ld` floats for each row.
  float* rows(Arena& arena, Id id, std::int64_t ld);
  /// As it is, and a line more, which kernels may read.
  template <class T>
  T* plain(Arena& arena, Id id) {
    constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
    T* at = arena.take<T>(elements(tensors_[static_cast<std::size_t>(id)].shape) + line);
    stored_[static_cast<std::size_t>(id)] = {.at = reinterpret_cast<std::byte*>(at)};
    return at;
  }

  /// See Program.
  void upload(Id id, std::span<const std::byte> from) const;
  void download(Id id, std::span<std::byte> to) const;
  void upload_row(Id id, std::int64_t row, std::span<const std::byte> from) const;

 private:
  [[nodiscard]] const Stored& place(Id id, std::size_t size) const;

  std::vector<Tensor> tensors_;
  std::vector<Stored> stored_;
};

}  // namespace crossover::cpu::fused
