// SPDX-License-Identifier: Apache-2.0
#include "crossover/tensor.h"

#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "crossover/names.h"

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
  return precision == Precision::bf16  ? Type::bf16
         : precision == Precision::f16 ? Type::f16
                                       : Type::f32;
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
  static constexpr std::initializer_list<std::pair<const char*, Type>> names{{"f32", Type::f32},
                                                                             {"i32", Type::i32},
                                                                             {"bf16", Type::bf16},
                                                                             {"f16", Type::f16},
                                                                             {"u8", Type::u8}};
  return name_in(names, type);
}

std::string to_string(Precision precision) {
  return precision == Precision::tf32 ? "tf32" : to_string(storage_of(precision));
}

}  // namespace crossover
