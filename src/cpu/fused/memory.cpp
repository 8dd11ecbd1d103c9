// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels.h"

namespace crossover::cpu::fused {
namespace {

std::int64_t round_up(std::int64_t count, std::int64_t to) { return (count + to - 1) / to * to; }

}  // namespace

float* Memory::matrix(Arena& arena, Id id, std::int64_t ld) {
  const Shape& shape = tensors_[static_cast<std::size_t>(id)].shape;
  const std::int64_t columns = shape.back();
  auto* at = arena.take<float>(round_up(columns, tile) * ld + floats_of_line);
  stored_[static_cast<std::size_t>(id)] = {.at = reinterpret_cast<std::byte*>(at),
                                           .rows = leading(shape),
                                           .columns = columns,
                                           .row_stride = 1,
                                           .column_stride = ld};
  return at;
}

float* Memory::rows(Arena& arena, Id id, std::int64_t ld) {
  const Shape& shape = tensors_[static_cast<std::size_t>(id)].shape;
  auto* at = arena.take<float>(leading(shape) * ld);
  stored_[static_cast<std::size_t>(id)] = {.at = reinterpret_cast<std::byte*>(at),
                                           .rows = leading(shape),
                                           .columns = shape.back(),
                                           .row_stride = ld,
                                           .column_stride = 1};
  return at;
}

void Memory::upload(Id id, std::span<const std::byte> from) const {
  const Tensor& tensor = tensors_.at(static_cast<std::size_t>(id));
  if (tensor.role == Role::gradient && stored_[static_cast<std::size_t>(id)].at == nullptr) {
    return;  // it lives in registers, and each step computes it anew
  }
  const Stored& to = place(id, from.size());
  if (to.rows == 0) {
    std::memcpy(to.at, from.data(), from.size());
    return;
  }
  const auto* plain = reinterpret_cast<const float*>(from.data());
  auto* stored = reinterpret_cast<float*>(to.at);
  for (std::int64_t row = 0; row < to.rows; ++row) {
    for (std::int64_t column = 0; column < to.columns; ++column) {
      stored[row * to.row_stride + column * to.column_stride] = plain[row * to.columns + column];
    }
  }
}

void Memory::upload_row(Id id, std::int64_t row, std::span<const std::byte> from) const {
  const Stored& to = stored_[static_cast<std::size_t>(id)];
  if (to.rows == 0) {
    std::memcpy(to.at + row * std::ssize(from), from.data(), from.size());
    return;
  }
  const auto* plain = reinterpret_cast<const float*>(from.data());
  auto* stored = reinterpret_cast<float*>(to.at) + row * to.row_stride;
  for (std::int64_t column = 0; column < to.columns; ++column) {
    stored[column * to.column_stride] = plain[column];
  }
}

void Memory::download(Id id, std::span<std::byte> to) const {
  const Stored& from = place(id, to.size());
  if (from.rows == 0) {
    std::memcpy(to.data(), from.at, to.size());
    return;
  }
  const auto* stored = reinterpret_cast<const float*>(from.at);
  auto* plain = reinterpret_cast<float*>(to.data());
  for (std::int64_t row = 0; row < from.rows; ++row) {
    for (std::int64_t column = 0; column < from.columns; ++column) {
      plain[row * from.columns + column] =
          stored[row * from.row_stride + column * from.column_stride];
    }
  }
}

const Stored& Memory::place(Id id, std::size_t size) const {
  const Tensor& tensor = tensors_.at(static_cast<std::size_t>(id));
  const Stored& stored = stored_[static_cast<std::size_t>(id)];
  if (stored.at == nullptr || static_cast<std::int64_t>(size) != bytes(tensor)) {
    throw std::invalid_argument("tensor '" + tensor.name + "' can't be copied in " +
                                std::to_string(size) + " bytes");
  }
  return stored;
}

}  // namespace crossover::cpu::fused
