// SPDX-License-Identifier: Apache-2.0
// The fields of each operation, in order. A field that an operation gains does not compile until it
// is listed here.
#pragma once

#include "crossover/step.h"

namespace crossover {

/// Calls see(field, field, ...) once, with all fields of the operation.
template <class See>
void fields(const Linear& op, See&& see) {
  const auto& [x, w, bias, y, activation] = op;
  see(x, w, bias, y, activation);
}

template <class See>
void fields(const LinearGrad& op, See&& see) {
  const auto& [x, w, dy, dx, dw, dbias, x_activation, accumulate] = op;
  see(x, w, dy, dx, dw, dbias, x_activation, accumulate);
}

template <class See>
void fields(const Cast& op, See&& see) {
  const auto& [x, y] = op;
  see(x, y);
}

template <class See>
void fields(const Activate& op, See&& see) {
  const auto& [x, y, activation] = op;
  see(x, y, activation);
}

template <class See>
void fields(const ActivateGrad& op, See&& see) {
  const auto& [y, dy, dx, activation] = op;
  see(y, dy, dx, activation);
}

template <class See>
void fields(const Add& op, See&& see) {
  const auto& [a, b, y] = op;
  see(a, b, y);
}

template <class See>
void fields(const SoftmaxCrossEntropy& op, See&& see) {
  const auto& [logits, labels, loss, dlogits, scale] = op;
  see(logits, labels, loss, dlogits, scale);
}

template <class See>
void fields(const Sgd& op, See&& see) {
  const auto& [parameters, gradients, learning_rate, gradient_factor] = op;
  see(parameters, gradients, learning_rate, gradient_factor);
}

template <class See>
void fields(const AdamW& op, See&& see) {
  const auto& [parameters, gradients, m, v, weight_decay, step, learning_rate, beta1, beta2,
               epsilon, gradient_factor] = op;
  see(parameters, gradients, m, v, weight_decay, step, learning_rate, beta1, beta2, epsilon,
      gradient_factor);
}

template <class See>
void fields(const Gemm& op, See&& see) {
  const auto& [a, b, c, transpose_a, transpose_b] = op;
  see(a, b, c, transpose_a, transpose_b);
}

}  // namespace crossover
