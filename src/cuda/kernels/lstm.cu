// SPDX-License-Identifier: Apache-2.0
#include "lstm.cuh"

#include <cmath>

#include "convert.cuh"
#include "crossover/elementwise.h"
#include "grid.cuh"

namespace crossover::cuda {
namespace {

constexpr int gate_count = 4;
enum Gate { input_gate, forget_gate, cell_gate, output_gate };

template <class T>
__global__ void gates_kernel(LstmGatesArguments of) {
  const std::int64_t count = of.batch * of.hidden;
  T* gates = static_cast<T*>(of.gates);
  T* h = static_cast<T*>(of.h);
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t unit = i % of.hidden;
    const std::int64_t first = i / of.hidden * gate_count * of.hidden + unit;
    float value[gate_count];
    for (int g = 0; g < gate_count; ++g) {
      const std::int64_t bias = g * of.hidden + unit;
      const float sum = of.sums[first + g * of.hidden] + (of.b_ih[bias] + of.b_hh[bias]);
      value[g] = g == cell_gate ? std::tanh(sum) : crossover::activate(Activation::sigmoid, sum);
    }
    for (int g = 0; g < gate_count; ++g) {
      gates[first + g * of.hidden] = narrow<T>(value[g]);
    }
    const float before = of.c_before != nullptr ? of.c_before[i] : 0.0F;
    const float c = value[forget_gate] * before + value[input_gate] * value[cell_gate];
    of.c[i] = c;
    h[i] = narrow<T>(value[output_gate] * std::tanh(c));
  }
}

template <class T>
__global__ void gates_grad_kernel(LstmGatesGradArguments of) {
  const std::int64_t count = of.batch * of.hidden;
  const T* gates = static_cast<const T*>(of.gates);
  const T* dh = static_cast<const T*>(of.dh);
  T* dgates = static_cast<T*>(of.dgates);
  for (std::int64_t index = thread_index(); index < count; index += thread_count()) {
    const std::int64_t first = index / of.hidden * gate_count * of.hidden + index % of.hidden;
    const float i = widen(gates[first]);
    const float f = widen(gates[first + forget_gate * of.hidden]);
    const float g = widen(gates[first + cell_gate * of.hidden]);
    const float o = widen(gates[first + output_gate * of.hidden]);
    const float cell = std::tanh(of.c[index]);
    float to_h = widen(dh[index]);
    float to_c = 0;
    if (of.is_last) {
      of.carry_h[index] = 0;
    } else {
      to_h += of.carry_h[index];
      to_c = of.carry_c[index];
    }
    to_c += to_h * o * (1 - cell * cell);
    const float before = of.c_before != nullptr ? of.c_before[index] : 0.0F;
    dgates[first] = narrow<T>(to_c * g * (i * (1 - i)));
    dgates[first + forget_gate * of.hidden] = narrow<T>(to_c * before * (f * (1 - f)));
    dgates[first + cell_gate * of.hidden] = narrow<T>(to_c * i * (1 - g * g));
    dgates[first + output_gate * of.hidden] = narrow<T>(to_h * cell * (o * (1 - o)));
    of.carry_c[index] = to_c * f;
  }
}

}  // namespace

void lstm_gates(cudaStream_t stream, Type type, const LstmGatesArguments& arguments) {
  with_float(type, [&](auto zero) {
    launch(gates_kernel<decltype(zero)>, grid_for(arguments.batch * arguments.hidden), stream,
           arguments);
  });
}

void lstm_gates_grad(cudaStream_t stream, Type type, const LstmGatesGradArguments& arguments) {
  with_float(type, [&](auto zero) {
    launch(gates_grad_kernel<decltype(zero)>, grid_for(arguments.batch * arguments.hidden), stream,
           arguments);
  });
}

}  // namespace crossover::cuda
