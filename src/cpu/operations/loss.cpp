// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <type_traits>

#include "../base/loops.h"
#include "../base/vector.h"
#include "operations.h"

namespace crossover::cpu {

// ---- Softmax cross entropy

namespace {

/// The label of position i is labels[i % batch * time + i / batch]: logits lie time first.
struct LossSizes {
  std::int64_t time, batch, classes;

  explicit LossSizes(const Shape& logits)
      : time(logits.size() == 2 ? 1 : logits[0]),
        batch(leading(logits) / time),
        classes(logits.back()) {}
};

/// Lane r holds the largest number of row r.
template <class Row>
Floats largest_of_rows(const Row& row, std::int64_t count) {
  const auto larger = [](Floats a, Floats b) { return where(a > b, a, b); };
  std::array<Floats, lanes> of_rows;  // NOLINT(*-member-init): each is written
  for (std::int64_t r = 0; r < lanes; ++r) {
    const float* values = row(r);
    Floats largest = all(values[0]);
    for_each_vector(count, [&](auto part, std::int64_t i) {
      largest = larger(largest, only(part, load(part, values + i), all(values[0])));
    });
    of_rows[static_cast<std::size_t>(r)] = largest;
  }
  return across(of_rows, larger);
}

/// Zero in that lane, if there is one.
Floats without(Floats x, std::int64_t lane) {
  return lane_numbers() == static_cast<std::uint32_t>(lane) ? all(0) : x;
}

/// Writes dlogits; returns the loss.
template <class T>
float softmax_cross_entropy(int threads, const float* logits, const std::int32_t* labels,
                            const LossSizes& of, float scale, T* dlogits) {
  const std::int64_t positions = of.time * of.batch;
  const float factor = scale / static_cast<float>(positions);
  const std::int64_t blocks = (positions + lanes - 1) / lanes;
  double loss = 0;  // in double: a batch may have thousands of rows
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static) reduction(+ : loss)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t begin = block * lanes;
    const std::int64_t rows = std::min<std::int64_t>(lanes, positions - begin);
    const auto position = [&](std::int64_t r) { return begin + std::min(r, rows - 1); };
    const auto row = [&](std::int64_t r) { return logits + position(r) * of.classes; };
    const Floats largest = largest_of_rows(row, of.classes);
    std::array<std::int32_t, lanes> label{};
    Floats of_labels{};
    RowOfSequences at(begin, of.batch);
    for (std::int64_t r = 0; r < lanes; ++r) {
      label[static_cast<std::size_t>(r)] = labels[at.sample() * of.time + at.time()];
      of_labels[r] = row(r)[label[static_cast<std::size_t>(r)]];
      if (r + 1 < rows) {
        at.next();
      }
    }
    // Until the sum is known, exponentials of few classes are kept in whole vectors: after a store
    // of a part, loads beside it wait. Of more classes f32 has room in dlogits; 16 bits have none,
    // so that they are computed twice.
    constexpr bool has_room = std::is_same_v<T, float>;
    constexpr std::int64_t few_classes = 64;
    const bool are_few = of.classes <= few_classes;
    std::array<float, lanes * few_classes> few;  // NOLINT(*-member-init): read where written
    const auto exponentials_of = [&](std::int64_t r) {
      return [=, from = row(r), largest = largest[r], few = few.data() + r * few_classes,
              room = dlogits + position(r) * of.classes](auto part, std::int64_t first) {
        const Floats e = exponential(load(part, from + first) - largest);
        if (are_few) {
          store(WholeVector{}, e, few + first);
        } else if constexpr (has_room) {
          store(part, e, room + first);
        }
        return std::array{e};
      };
    };
    // Without the label's: where the network is sure and right, it would leave nothing of the
    // others, of which loss and the label's gradient consist.
    const Floats others = sums_of_rows<1>(of.classes, [&](std::int64_t r) {
      return [exponentials = exponentials_of(r), at = label[static_cast<std::size_t>(r)]](
                 auto part, std::int64_t first) {
        const Floats e = exponentials(part, first)[0];
        return std::array{without(e, at - first)};
      };
    })[0];
    const Floats own = exponential(of_labels - largest);  // 1 where the label leads
    const Floats normalized = factor / (others + own);
    const Floats gradients = -others * normalized;
    const Floats above_one = others + (own - 1.0F);
    const Floats logarithms =
        where(above_one < all(1), logarithm_of_1_plus(above_one), logarithm(1.0F + above_one));
    for (std::int64_t r = 0; r < rows; ++r) {
      T* gradient = dlogits + position(r) * of.classes;
      const auto normalize = [=, exponentials = exponentials_of(r), by = normalized[r],
                              few = few.data() + r * few_classes](auto part, std::int64_t first) {
        const Floats e = are_few    ? load(WholeVector{}, few + first)
                         : has_room ? load(part, gradient + first)
                                    : exponentials(part, first)[0];
        store(part, e * by, gradient + first);
      };
      for_each_vector(of.classes, normalize);
      gradient[label[static_cast<std::size_t>(r)]] = narrowed<T>(gradients[r]);
      loss += static_cast<double>((largest[r] - of_labels[r]) + logarithms[r]);
    }
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

// ---- Elementwise loss

namespace {

struct LossOfVector {
  Floats value, slope;
};

template <LossFunction function>
LossOfVector loss_of(Floats x, Floats target) {
  if constexpr (function == LossFunction::mse) {
    const Floats difference = x - target;
    return {difference * difference, 2.0F * difference};
  } else {
    const Floats e = exponential(where(x < all(0), x, -x));
    const Floats less = e / (1.0F + e);  // as in crossover/functions.h
    return {where(x < all(0), all(0), x) - x * target + logarithm_of_1_plus(e),
            where(x < all(0), less - target, (1.0F - target) - less)};
  }
}

/// Writes dlogits; returns the loss.
template <LossFunction function, class T>
float elementwise_loss(int threads, const float* logits, const float* targets, std::int64_t count,
                       float scale, T* dlogits) {
  const float factor = scale / static_cast<float>(count);
  constexpr std::int64_t part_size = 4096;  // that float sums well
  const std::int64_t parts = (count + part_size - 1) / part_size;
  double loss = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static) reduction(+ : loss)
  for (std::int64_t p = 0; p < parts; ++p) {
    const std::int64_t begin = p * part_size;
    Floats sums{};
    double rest = 0;
    for_each_vector(std::min(part_size, count - begin), [&](auto part, std::int64_t i) {
      const std::int64_t at = begin + i;
      const LossOfVector of = loss_of<function>(load(part, logits + at), load(part, targets + at));
      store(part, of.slope * factor, dlogits + at);
      if constexpr (std::is_same_v<decltype(part), WholeVector>) {
        sums += of.value;
      } else {
        for (std::size_t lane = 0; lane < part.size(); ++lane) {
          rest += static_cast<double>(of.value[lane]);
        }
      }
    });
    for (int lane = 0; lane < lanes; ++lane) {
      rest += static_cast<double>(sums[lane]);
    }
    loss += rest;
  }
  return static_cast<float>(loss / static_cast<double>(count));
}

template <LossFunction function>
void lower_as(const ElementwiseLoss& op, Lowering& to) {
  with_float(to[op.dlogits].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::loss, to.threads_for(op.logits),
           {reads(op.logits), reads(op.targets), updates(op.loss), writes(op.dlogits)},
           [n = to.count(op.logits), scale = static_cast<float>(op.scale)](const Invocation& call) {
             call.operand<float>(2)[call.now.run] = elementwise_loss<function>(
                 call.threads, call.operand<const float>(0), call.operand<const float>(1), n, scale,
                 call.operand<T>(3));
           });
  });
}

}  // namespace

void lower(const ElementwiseLoss& op, Lowering& to) {
  op.function == LossFunction::mse ? lower_as<LossFunction::mse>(op, to)
                                   : lower_as<LossFunction::bce>(op, to);
}

}  // namespace crossover::cpu
