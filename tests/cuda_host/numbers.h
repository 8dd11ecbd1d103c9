// SPDX-License-Identifier: Apache-2.0
// What the emulated libraries read and write: numbers of their types, in double.
#pragma once

#include <cublasLt.h>

#include <bit>
#include <cstdint>

#include "crossover/float16.h"
#include "state.h"

namespace cuda_host {

// Without a sanitizer's checks: loops over single numbers, where most of the emulation's time goes.
// The call has checked that each operand lies in its block, to the byte.
#define CUDA_HOST_CHECKED_BEFORE __attribute__((no_sanitize("address", "undefined")))

/// Numbers of one of the libraries' types.
class Numbers {
 public:
  Numbers(const void* data, cudaDataType_t type) : data_(const_cast<void*>(data)), type_(type) {}

  [[nodiscard]] CUDA_HOST_CHECKED_BEFORE double get(std::int64_t i) const {
    switch (type_) {
      case CUDA_R_16BF:
        return crossover::widened(static_cast<const crossover::Bf16*>(data_)[i]);
      case CUDA_R_16F:
        return crossover::widened(static_cast<const crossover::F16*>(data_)[i]);
      default:
        return static_cast<const float*>(data_)[i];
    }
  }
  CUDA_HOST_CHECKED_BEFORE void set(std::int64_t i, double value) const {
    switch (type_) {
      case CUDA_R_16BF:
        static_cast<crossover::Bf16*>(data_)[i] = crossover::narrowed<crossover::Bf16>(
            static_cast<float>(crossover::rounded_to_bf16(value)));
        break;
      case CUDA_R_16F:
        static_cast<crossover::F16*>(data_)[i] = crossover::narrowed<crossover::F16>(
            static_cast<float>(crossover::rounded_to_f16(value)));
        break;
      default:
        static_cast<float*>(data_)[i] = static_cast<float>(value);
    }
  }

 private:
  void* data_;
  cudaDataType_t type_;
};

/// Towards zero, to tf32's 11 bits.
inline double truncated(double x) {
  constexpr std::uint32_t kept = ~((1U << 13U) - 1);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) & kept);
}

inline double to_tf32(double x) {
  switch (state().device.tf32) {
    case Tf32::exact:
      return x;
    case Tf32::rounded:
      return crossover::rounded_to_bits<11, -126, 127>(x);
    case Tf32::truncated:
      return truncated(x);
  }
  return x;
}

}  // namespace cuda_host
