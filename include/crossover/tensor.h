// SPDX-License-Identifier: Apache-2.0
// A tensor as a Workload knows it: shape, storage type and role. No memory, no device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crossover {

/// Extents from the slowest dimension to the fastest; storage is always row-major and dense.
using Shape = std::vector<std::int64_t>;

/// How an element is stored. float16.h defines the types of 16 bits.
enum class Type { f32, i32, bf16, f16, u8 };

/// The arithmetic of a row, an axis of the benchmarks. bf16 and f16 decide the storage types of a
/// Workload; tf32 stores f32, and rounds what enters a matrix product to 11 bits.
enum class Precision { f32, tf32, bf16, f16 };

/// How a Workload of that precision stores what its products read: f32, bf16 or f16.
Type storage_of(Precision precision);

/// What a tensor is for: this decides where it is stored, its initial values, and how long they
/// are needed.
enum class Role {
  data,        ///< the whole data set, [rows, ...]; uploaded once
  input,       ///< a batch of rows of a data tensor: a view that each Run places
  parameter,   ///< trained; starts from the deterministic generator
  gradient,    ///< of a parameter; lives from one step to the next, for accumulation
  state,       ///< of an optimizer; starts at zero
  activation,  ///< intermediate; needed only within one step
  loss,        ///< one element for each Run of the Workload's order
};

/// How a parameter starts: `value`, or uniform in [-bound, bound) where bound > 0.
struct Start {
  double bound = 0;
  double value = 0;
};

/// Index into Workload::tensors.
using Id = int;
inline constexpr Id none = -1;

struct Tensor {
  std::string name;
  Shape shape;
  Type type = Type::f32;
  Role role = Role::activation;
  Id source = none;  ///< for Role::input: the data tensor whose rows it views
  Start start;       ///< for Role::parameter
};

/// Number of elements; throws std::overflow_error where it does not fit 63 bits.
std::int64_t elements(const Shape& shape);

std::int64_t bytes(Type type);

/// Bytes of the whole tensor; throws std::overflow_error as elements() does.
std::int64_t bytes(const Tensor& tensor);

/// The extents before the last one multiplied: a tensor seen as a matrix [leading, last].
std::int64_t leading(const Shape& shape);

bool is_float(Type type);
bool is_16_bit(Type type);

std::string to_string(const Shape& shape);   ///< "[100, 4]"
std::string to_string(Type type);            ///< "f32", "i32", ...
std::string to_string(Precision precision);  ///< "f32", "tf32", ...

}  // namespace crossover
