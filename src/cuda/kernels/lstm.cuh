// SPDX-License-Identifier: Apache-2.0
// What an LSTM does between its products: one time step of its gates, and of their gradients.
// Matrices are [batch, hidden], those of gates [batch, 4 hidden] in the order i, f, g, o.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "crossover/tensor.h"

namespace crossover::cuda {

struct LstmGatesArguments {
  const float* sums = nullptr;  // of the products; may be gates, element by element
  const float* b_ih = nullptr;
  const float* b_hh = nullptr;
  const float* c_before = nullptr;  // none: 0
  void* gates = nullptr;
  float* c = nullptr;
  void* h = nullptr;
  std::int64_t batch = 0, hidden = 0;
};
void lstm_gates(cudaStream_t stream, Type type, const LstmGatesArguments& arguments);

struct LstmGatesGradArguments {
  const void* gates = nullptr;
  const float* c_before = nullptr;  // none: 0
  const float* c = nullptr;
  const void* dh = nullptr;
  void* dgates = nullptr;
  float* carry_h = nullptr;  // what reaches h from the next time step
  float* carry_c = nullptr;  // the same of c; then what goes to the step before
  std::int64_t batch = 0, hidden = 0;
  bool is_last = false;  // nothing is carried yet; carry_h becomes 0
};
void lstm_gates_grad(cudaStream_t stream, Type type, const LstmGatesGradArguments& arguments);

}  // namespace crossover::cuda
