// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <type_traits>
#include <vector>

#include "../base/loops.h"
#include "../base/threads.h"
#include "../base/vector.h"
#include "crossover/float16.h"
#include "crossover/random.h"
#include "operations.h"

namespace crossover::cpu {

// ---- Passes over tensors, number by number. What computes stands in a loop over floats, through
// which numbers of 16 bits pass in blocks: so it is compiled once for all types.

namespace {

/// to[i] of from[i], and of with[i] where there is that; `to` may be one of them.
using FloatLoop =
    std::function<void(const float* from, const float* with, float* to, std::int64_t count)>;

template <class T>
void pass(const FloatLoop& loop, const T* from, const T* with, T* to, std::int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    loop(from, with, to, count);
  } else {
    constexpr std::int64_t block = 512;
    std::array<std::array<float, block>, 2> floats;  // NOLINT: zeros would take their time
    const auto widen = [](const T* numbers, float* as, std::int64_t n) {
      for_each_vector(
          n, [=](auto part, std::int64_t i) { store(part, load(part, numbers + i), as + i); });
    };
    for (std::int64_t first = 0; first < count; first += block) {
      const std::int64_t n = std::min(block, count - first);
      widen(from + first, floats[0].data(), n);
      if (with != nullptr) {
        widen(with + first, floats[1].data(), n);
      }
      loop(floats[0].data(), floats[1].data(), floats[0].data(), n);
      for_each_vector(n, [&](auto part, std::int64_t i) {
        store(part, load(part, floats[0].data() + i), to + first + i);
      });
    }
  }
}

/// result = loop(from, with); `with` may be none.
void add_pass(Id from, Id with, Id result, Lowering& to, const FloatLoop& loop) {
  const bool has_two = with != none;
  const Layout layout =
      has_two ? to.elementwise_layout({from, with, result}) : to.elementwise_layout({from, result});
  std::vector<Argument> operands{reads(from, layout), writes(result, layout)};
  if (has_two) {
    operands.insert(operands.begin() + 1, reads(with, layout));
  }
  with_float(to[result].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(result), operands,
           [loop, has_two, n = to.count(result)](const Invocation& call) {
             const T* x = call.operand<const T>(0);
             const T* other = has_two ? call.operand<const T>(1) : nullptr;
             T* y = call.operand<T>(has_two ? 2 : 1);
             split(call.threads, n, [&](std::int64_t begin, std::int64_t end) {
               pass(loop, x + begin, has_two ? other + begin : nullptr, y + begin, end - begin);
             });
           });
  });
}

// ---- Activations and other functions, and their gradients. The choice stands outside the loops,
// so that each is vector code of one function.

template <class Which>
void add_map(const Which& which, Id x, Id y, Lowering& to) {
  with_function(which, [&](const auto& of) {
    add_pass(x, none, y, to,
             [of](const float* from, const float* /*with*/, float* result, std::int64_t count) {
               for_each_vector(count, [=](auto part, std::int64_t i) {
                 store(part, of.value(VectorMaths(), load(part, from + i)), result + i);
               });
             });
  });
}

template <class Which>
void add_map_grad(const Which& which, Id at, Id dy, Id dx, Lowering& to) {
  with_function(which, [&](const auto& of) {
    add_pass(at, dy, dx, to,
             [of](const float* point, const float* gradient, float* result, std::int64_t count) {
               for_each_vector(count, [=](auto part, std::int64_t i) {
                 store(part,
                       of.gradient(VectorMaths(), load(part, gradient + i), load(part, point + i)),
                       result + i);
               });
             });
  });
}

}  // namespace

void lower(const Activate& op, Lowering& to) { add_map(op.activation, op.x, op.y, to); }

void lower(const ActivateGrad& op, Lowering& to) {
  add_map_grad(op.activation, op.at, op.dy, op.dx, to);
}

void lower(const Map& op, Lowering& to) { add_map(op.function, op.x, op.y, to); }

void lower(const MapGrad& op, Lowering& to) { add_map_grad(op.function, op.x, op.dy, op.dx, to); }

// ---- Add

namespace {

/// Sums and products are too cheap for blocks.
template <class T, class Of>
void add_pairs(Id a, Id b, Id y, Lowering& to, const Of& of) {
  const Layout layout = to.elementwise_layout({a, b, y});
  to.add(OpCategory::elementwise, to.threads_for(y),
         {reads(a, layout), reads(b, layout), writes(y, layout)},
         [of, n = to.count(y)](const Invocation& call) {
           const T* left = call.operand<const T>(0);
           const T* right = call.operand<const T>(1);
           T* result = call.operand<T>(2);
           split(call.threads, n, [=](std::int64_t begin, std::int64_t end) {
             for (std::int64_t i = begin; i < end; ++i) {
               result[i] = narrowed<T>(of(widened(left[i]), widened(right[i])));
             }
           });
         });
}

}  // namespace

void lower(const Add& op, Lowering& to) {
  with_float(to[op.y].type, [&](auto zero) {
    add_pairs<decltype(zero)>(op.a, op.b, op.y, to, std::plus<float>());
  });
}

// ---- Multiply

namespace {

/// y = a gate.
template <class T>
void add_gated(const Id a, const Id gate, const Id y, Lowering& to) {
  const LyingPlaces of(to[y]);
  to.add(OpCategory::elementwise, to.threads_for(y),
         {reads(a, of.layout), reads(gate), writes(y, of.layout)}, [of](const Invocation& call) {
           const T* from = call.operand<const T>(0);
           const T* factors = call.operand<const T>(1);
           T* result = call.operand<T>(2);
           for_each_shared(call.threads, of, [=](auto part, std::int64_t at, std::int64_t shared) {
             const Floats factor = load(part, factors + shared);
             for (std::int64_t place = 0; place < of.of.count; ++place) {
               const std::int64_t i = at + place * of.of.inner;
               store(part, load(part, from + i) * factor, result + i);
             }
           });
         });
}

/// sums = the sum of a b over the places.
template <class T>
void add_sums(const Id a, const Id b, const Id sums, Lowering& to) {
  const LyingPlaces of(to[a]);
  to.add(OpCategory::elementwise, to.threads_for(a),
         {reads(a, of.layout), reads(b, of.layout), writes(sums)}, [of](const Invocation& call) {
           const T* left = call.operand<const T>(0);
           const T* right = call.operand<const T>(1);
           T* result = call.operand<T>(2);
           for_each_shared(call.threads, of, [=](auto part, std::int64_t at, std::int64_t shared) {
             const Floats sum = sum_of_rows<1>(of.of.count, [&](std::int64_t place) {
               const std::int64_t i = at + place * of.of.inner;
               return std::array{load(part, left + i) * load(part, right + i)};
             })[0];
             store(part, sum, result + shared);
           });
         });
}

template <class T>
void add_factor(const Id a, const Id b, const Id y, Lowering& to) {
  if (is_gate_of(to[a].shape, to[b].shape)) {
    add_gated<T>(a, b, y, to);
  } else {
    add_pairs<T>(a, b, y, to, std::multiplies<float>());
  }
}

}  // namespace

void lower(const Multiply& op, Lowering& to) {
  with_float(to[op.y].type, [&](auto zero) { add_factor<decltype(zero)>(op.a, op.b, op.y, to); });
}

void lower(const MultiplyGrad& op, Lowering& to) {
  with_float(to[op.dy].type, [&](auto zero) {
    using T = decltype(zero);
    if (op.da != none) {
      add_factor<T>(op.dy, op.b, op.da, to);
    }
    if (op.db == none) {
      return;
    }
    if (is_gate_of(to[op.dy].shape, to[op.db].shape)) {
      add_sums<T>(op.dy, op.a, op.db, to);
    } else {
      add_pairs<T>(op.dy, op.a, op.db, to, std::multiplies<float>());
    }
  });
}

// ---- Elements are counted in the plain layout, which both tensors are therefore taken in.

namespace {

struct Mask {
  std::int64_t seed;
  double probability;
  std::int32_t offset;

  template <class Op>
  explicit Mask(const Op& op)
      : seed(op.seed),
        probability(op.probability),
        offset(static_cast<std::int32_t>(offset_of_mask(op))) {}
};

template <class T>
void apply(int threads, const Mask& mask, std::int32_t step, const T* x, T* y, std::int64_t count) {
  const std::int32_t time = step + mask.offset;
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    const auto factor = static_cast<float>(1 / (1 - mask.probability));
    for (std::int64_t i = begin; i < end; ++i) {
      const double number = dropout_uniform(mask.seed, time, static_cast<std::uint64_t>(i));
      const float kept = widened(x[i]) * factor;
      y[i] = narrowed<T>(number < mask.probability ? 0.0F : kept);
    }
  });
}

}  // namespace

void lower(const Dropout& op, Lowering& to) {
  with_float(to[op.x].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(op.x),
           {reads(op.x), writes(op.y), updates(op.step)},
           [mask = Mask(op), draws = static_cast<std::int32_t>(op.draws),
            n = to.count(op.x)](const Invocation& call) {
             apply(call.threads, mask, *call.operand<std::int32_t>(2) += draws,
                   call.operand<const T>(0), call.operand<T>(1), n);
           });
  });
}

void lower(const DropoutGrad& op, Lowering& to) {
  with_float(to[op.dy].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(op.dy),
           {reads(op.dy), writes(op.dx), reads(op.step)},
           [mask = Mask(op), n = to.count(op.dy)](const Invocation& call) {
             apply(call.threads, mask, *call.operand<const std::int32_t>(2),
                   call.operand<const T>(0), call.operand<T>(1), n);
           });
  });
}

}  // namespace crossover::cpu
