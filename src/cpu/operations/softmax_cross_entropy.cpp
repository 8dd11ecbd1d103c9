// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "../row_sums.h"
#include "../vector_math.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

/// The label of position i is labels[i % batch * time + i / batch]: logits lie time first.
struct LossSizes {
  std::int64_t time, batch, classes;

  explicit LossSizes(const Shape& logits)
      : time(logits.size() == 2 ? 1 : logits[0]),
        batch(leading(logits) / time),
        classes(logits.back()) {}
};

/// The sum of exp(x - largest); see(part, first, exponentials) gets them.
template <class See>
float sum_of_exponentials(const float* row, std::int64_t count, float largest, const See& see) {
  const std::int64_t vectors = count / lanes;
  const Floats sums = sum_of_rows<1>(vectors, [&](std::int64_t v) {
    const Floats e = exponential(load(WholeVector{}, row + v * lanes) - largest);
    see(WholeVector{}, v * lanes, e);
    return std::array{e};
  })[0];
  float sum = 0;
  for (int i = 0; i < lanes; ++i) {
    sum += sums[i];
  }
  const std::int64_t first = vectors * lanes;
  for_each_vector(count - first, [&](auto part, std::int64_t /*first*/) {
    const Floats e = exponential(load(part, row + first) - largest);
    see(part, first, e);
    for (std::size_t i = 0; i < part.size(); ++i) {
      sum += e[i];
    }
  });
  return sum;
}

/// Writes dlogits; returns the loss.
template <class T>
float softmax_cross_entropy(int threads, const float* logits, const std::int32_t* labels,
                            const LossSizes& of, float scale, T* dlogits) {
  const std::int64_t positions = of.time * of.batch;
  const float factor = scale / static_cast<float>(positions);
  double loss = 0;  // in double: a batch may have thousands of rows
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static) reduction(+ : loss)
  for (std::int64_t i = 0; i < positions; ++i) {
    const float* row = logits + i * of.classes;
    T* gradient = dlogits + i * of.classes;
    const std::int32_t label = labels[i % of.batch * of.time + i / of.batch];
    const float largest = largest_of(row, of.classes);
    // f32 has room for the exponentials until the sum is known.
    constexpr bool has_room = std::is_same_v<T, float>;
    const float sum =
        sum_of_exponentials(row, of.classes, largest,
                            [&]([[maybe_unused]] auto part, [[maybe_unused]] std::int64_t first,
                                [[maybe_unused]] Floats e) {
                              if constexpr (has_room) {
                                store(part, e, gradient + first);
                              }
                            });
    loss += static_cast<double>(largest - row[label]) + std::log(static_cast<double>(sum));
    const float normalized = factor / sum;
    float of_label = 0;
    for_each_vector(of.classes, [&](auto part, std::int64_t first) {
      const Floats e =
          has_room ? load(part, gradient + first) : exponential(load(part, row + first) - largest);
      store(part, e * normalized, gradient + first);
      if (label >= first && label < first + lanes) {
        of_label = e[label - first] * normalized;
      }
    });
    gradient[label] = narrowed<T>(of_label - factor);
  }
  return static_cast<float>(loss / static_cast<double>(positions));
}

}  // namespace

void lower(const SoftmaxCrossEntropy& op, Lowering& to) {
  with_float(to[op.dlogits].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::loss, to.threads_for(op.logits),
           {reads(op.logits), reads(op.labels), updates(op.loss), writes(op.dlogits)},
           [of = LossSizes(to[op.logits].shape),
            scale = static_cast<float>(op.scale)](const Invocation& call) {
             call.operand<float>(2)[call.now.run] = softmax_cross_entropy(
                 call.threads, call.operand<const float>(0), call.operand<const std::int32_t>(1),
                 of, scale, call.operand<T>(3));
           });
  });
}

}  // namespace crossover::cpu
