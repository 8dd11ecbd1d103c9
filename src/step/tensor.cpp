// SPDX-License-Identifier: Apache-2.0
#include "crossover/tensor.h"

#include <stdexcept>

namespace crossover {
namespace {

std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw std::overflow_error("a tensor of more than 2^63 bytes; ask for smaller sizes");
  }
  return product;
}

}  // namespace

std::int64_t elements(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    count = multiply(count, extent);
  }
  return count;
}

std::int64_t bytes(Type type) {
  switch (type) {
    case Type::f32:
    case Type::i32:
      return 4;
    case Type::bf16:
    case Type::f16:
      return 2;
    case Type::u8:
      return 1;
  }
  throw std::logic_error("unknown storage type");
}

bool is_float(Type type) { return type == Type::f32 || is_16_bit(type); }

Type storage_of(Precision precision) {
  switch (precision) {
    case Precision::f32:
    case Precision::tf32:
      return Type::f32;
    case Precision::bf16:
      return Type::bf16;
    case Precision::f16:
      return Type::f16;
  }
  return Type::f32;
}

bool is_16_bit(Type type) { return type == Type::bf16 || type == Type::f16; }

std::int64_t bytes(const Tensor& tensor) {
  return multiply(elements(tensor.shape), bytes(tensor.type));
}

std::int64_t leading(const Shape& shape) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
    count = multiply(count, shape[i]);
  }
  return count;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  }
  return text + "]";
}

std::string to_string(Type type) {
  switch (type) {
    case Type::f32:
      return "f32";
    case Type::i32:
      return "i32";
    case Type::bf16:
      return "bf16";
    case Type::f16:
      return "f16";
    case Type::u8:
      return "u8";
  }
  throw std::logic_error("unknown storage type");
}

std::string to_string(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return "f32";
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::f16:
      return "f16";
  }
  throw std::logic_error("unknown precision");
}

}  // namespace crossover
