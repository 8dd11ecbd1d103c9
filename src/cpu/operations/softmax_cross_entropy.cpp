// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "crossover/float16.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

/// Writes dlogits; returns the loss.
template <class T>
float softmax_cross_entropy(int threads, const float* logits, const std::int32_t* labels,
                            std::int64_t batch, std::int64_t classes, float scale, T* dlogits) {
  const float factor = scale / static_cast<float>(batch);
  double loss = 0;  // in double: a batch may have thousands of rows
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static) reduction(+ : loss)
  for (std::int64_t i = 0; i < batch; ++i) {
    const float* row = logits + i * classes;
    T* gradient = dlogits + i * classes;
    const float largest = *std::max_element(row, row + classes);
    float sum = 0;
    if constexpr (std::is_same_v<T,
                                 float>) {  // has room for the exponentials until the sum is known
      for (std::int64_t c = 0; c < classes; ++c) {
        gradient[c] = std::exp(row[c] - largest);
        sum += gradient[c];
      }
    } else {
      for (std::int64_t c = 0; c < classes; ++c) {
        sum += std::exp(row[c] - largest);
      }
    }
    loss += static_cast<double>(largest - row[labels[i]]) + std::log(static_cast<double>(sum));
    const float normalized = factor / sum;
    if constexpr (std::is_same_v<T, float>) {
      for (std::int64_t c = 0; c < classes; ++c) {
        gradient[c] *= normalized;
      }
      gradient[labels[i]] -= factor;
    } else {
      for (std::int64_t c = 0; c < classes; ++c) {
        gradient[c] = narrowed<T>(std::exp(row[c] - largest) * normalized);
      }
      const std::int32_t label = labels[i];
      gradient[label] = narrowed<T>(std::exp(row[label] - largest) * normalized - factor);
    }
  }
  return static_cast<float>(loss / static_cast<double>(batch));
}

}  // namespace

void lower(const SoftmaxCrossEntropy& op, Lowering& to) {
  with_float(to[op.dlogits].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::loss, to.threads_for(op.logits),
           {reads(op.logits), reads(op.labels), updates(op.loss), writes(op.dlogits)},
           [batch = to[op.logits].shape[0], classes = to[op.logits].shape[1],
            scale = static_cast<float>(op.scale)](const Invocation& call) {
             call.operand<float>(2)[call.now.run] = softmax_cross_entropy(
                 call.threads, call.operand<const float>(0), call.operand<const std::int32_t>(1),
                 batch, classes, scale, call.operand<T>(3));
           });
  });
}

}  // namespace crossover::cpu
