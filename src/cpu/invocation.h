// SPDX-License-Identifier: Apache-2.0
// What a kernel finds when it is called: where its operands lie now, and its threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace crossover::cpu {

/// Which part of the order is running.
struct Position {
  std::int64_t first_row = 0;
  std::int64_t run = 0;
};

/// Where an operand lies; a view moves with the first row of the batch.
class Operand {
 public:
  Operand() = default;
  explicit Operand(std::byte* base, std::int64_t row_bytes = 0)
      : base_(base), row_bytes_(row_bytes) {}

  [[nodiscard]] std::byte* at(const Position& position) const {
    return base_ + position.first_row * row_bytes_;
  }
  [[nodiscard]] bool moves() const { return row_bytes_ != 0; }
  [[nodiscard]] Operand from(std::int64_t bytes) const {
    return Operand(base_ + bytes, row_bytes_);
  }

 private:
  std::byte* base_ = nullptr;
  std::int64_t row_bytes_ = 0;
};

struct Invocation {
  const Operand* operands;  ///< in the order in which the kernel was planned with them
  const Position& now;
  int threads;

  template <class T>
  [[nodiscard]] T* operand(std::size_t index) const {
    return reinterpret_cast<T*>(operands[index].at(now));
  }
};

/// A loop of ours.
using Loop = std::function<void(const Invocation&)>;

}  // namespace crossover::cpu
