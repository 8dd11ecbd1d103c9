// SPDX-License-Identifier: Apache-2.0
#include "../image.h"
#include "../split.h"
#include "../vector.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

/// The channels of plane p begin in y at p times the channels of a block, since y is plain.
template <class T>
void average(int threads, const ImageRows& of, const T* x, T* y) {
  split(
      threads, of.planes(),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t plane = begin; plane < end; ++plane) {
          for_each_vector(of.channels, [&](auto part, std::int64_t c) {
            const T* from = x + plane * of.pixels() * of.channels + c;
            const Floats sum = sum_of_rows<1>(of.pixels(), [&](std::int64_t pixel) {
              return std::array{load(part, from + pixel * of.channels)};
            })[0];
            store(part, sum / static_cast<float>(of.pixels()), y + plane * of.channels + c);
          });
        }
      },
      1);
}

template <class T>
void spread(int threads, const ImageRows& of, const T* dy, T* dx) {
  split(
      threads, of.planes(),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t plane = begin; plane < end; ++plane) {
          for_each_vector(of.channels, [&](auto part, std::int64_t c) {
            const Floats mean =
                load(part, dy + plane * of.channels + c) / static_cast<float>(of.pixels());
            T* to = dx + plane * of.pixels() * of.channels + c;
            for (std::int64_t pixel = 0; pixel < of.pixels(); ++pixel) {
              store(part, mean, to + pixel * of.channels);
            }
          });
        }
      },
      1);
}

}  // namespace

void lower(const GlobalAveragePool& op, Lowering& to) {
  const Tensor& x = to[op.x];
  with_float(x.type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::pooling, to.threads_for(op.x), {reads(op.x, image_layout(x)), writes(op.y)},
           [of = ImageRows(x, x.type)](const Invocation& call) {
             average(call.threads, of, call.operand<const T>(0), call.operand<T>(1));
           });
  });
}

void lower(const GlobalAveragePoolGrad& op, Lowering& to) {
  const Tensor& dx = to[op.dx];
  with_float(dx.type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::pooling, to.threads_for(op.dx),
           {reads(op.dy), writes(op.dx, image_layout(dx))},
           [of = ImageRows(dx, dx.type)](const Invocation& call) {
             spread(call.threads, of, call.operand<const T>(0), call.operand<T>(1));
           });
  });
}

}  // namespace crossover::cpu
