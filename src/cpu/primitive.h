// SPDX-License-Identifier: Apache-2.0
// A oneDNN primitive made once, with all it needs to run.
#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <vector>

#include "invocation.h"

namespace crossover::cpu {

/// Bytes of the scratchpad that a primitive asks for.
std::int64_t scratchpad_bytes(const dnnl::primitive_desc_base& description);

class BoundPrimitive {
 public:
  /// `arguments`: DNNL_ARG_..., one for each operand. Made for the number of OpenMP threads in
  /// force; execute() must find the same. Throws dnnl::error.
  BoundPrimitive(const dnnl::primitive_desc_base& description, const dnnl::engine& engine,
                 dnnl::stream stream, std::span<const int> arguments,
                 std::span<const Operand> operands, void* scratchpad);
  BoundPrimitive(const BoundPrimitive&) = delete;  // a copy would share its arguments' places
  BoundPrimitive& operator=(const BoundPrimitive&) = delete;
  ~BoundPrimitive() = default;

  void execute(const Position& now);

 private:
  /// An operand that lies elsewhere in each run: a batch of rows of the data set.
  struct Moving {
    dnnl_memory_t memory = nullptr;
    Operand operand;
  };

  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::vector<Moving> moving_;
};

}  // namespace crossover::cpu
