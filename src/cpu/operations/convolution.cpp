// SPDX-License-Identifier: Apache-2.0
// Three passes by oneDNN: forward with bias and activation, backward data, and backward weights
// with the bias's gradient. oneDNN adds no bias to what backward data gives; a loop of ours does.
#include "../convolution.h"

#include <array>

#include "../image.h"
#include "../split.h"
#include "../vector.h"
#include "../winograd/passes.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

/// images += bias [channels].
void add_bias(Id images, Id bias, Lowering& to) {
  const Tensor& tensor = to[images];
  with_float(tensor.type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(images),
           {updates(images, image_layout(tensor)), reads(bias)},
           [of = ImageRows(tensor, tensor.type)](const Invocation& call) {
             T* const values = call.operand<T>(0);
             const T* const added = call.operand<const T>(1);
             split(
                 call.threads, of.planes() * of.height,
                 [=](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row) {
                     const T* own = added + row / of.height % of.blocks * of.channels;
                     T* const first = values + row * of.width * of.channels;
                     for_each_vector(of.channels, [&](auto part, std::int64_t c) {
                       const Floats more = load(part, own + c);
                       for (std::int64_t pixel = 0; pixel < of.width; ++pixel) {
                         T* const at = first + pixel * of.channels + c;
                         store(part, load(part, at) + more, at);
                       }
                     });
                   }
                 },
                 1);
           });
  });
}

}  // namespace

void lower(const Convolution& op, Lowering& to) {
  if (winograd::takes(op, to)) {
    winograd::lower(op, to);
    return;
  }
  const auto pass = describe_forward(op, to);
  Primitive work{.arguments = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, .description = pass};
  std::vector<Argument> arguments{reads(op.x, Layout(pass.src_desc())),
                                  reads(op.w, Layout(pass.weights_desc())),
                                  writes(op.y, Layout(pass.dst_desc()))};
  if (op.bias != none) {
    work.arguments.push_back(DNNL_ARG_BIAS);
    arguments.push_back(reads(op.bias));
  }
  to.add(OpCategory::convolution, convolution_threads(to[op.w], to[op.y], to), arguments,
         std::move(work));
}

void lower(const ConvolutionGrad& op, Lowering& to) {
  if (winograd::takes(op, to)) {
    winograd::lower(op, to);
    return;
  }
  const int threads = convolution_threads(to[op.w], to[op.dy], to);
  if (op.dx != none) {
    const auto pass = describe_backward_data(op, to);
    to.add(OpCategory::convolution, threads,
           {reads(op.dy, Layout(pass.diff_dst_desc())), reads(op.w, Layout(pass.weights_desc())),
            writes(op.dx, Layout(pass.diff_src_desc()))},
           Primitive{.arguments = {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
                     .description = pass});
  }
  if (op.bias != none) {
    add_bias(op.dx, op.bias, to);
  }
  if (op.dw == none) {
    return;
  }
  const auto pass = describe_backward_weights(op, to);
  Primitive work{.arguments = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS},
                 .description = pass};
  std::vector<Argument> arguments{reads(op.x, Layout(pass.src_desc())),
                                  reads(op.dy, Layout(pass.diff_dst_desc())),
                                  writes(op.dw, Layout(pass.diff_weights_desc()))};
  if (op.dbias != none) {
    work.arguments.push_back(DNNL_ARG_DIFF_BIAS);
    arguments.push_back(writes(op.dbias));
  }
  to.add(OpCategory::convolution, threads, arguments, std::move(work));
}

void lower(const ChannelBiasGrad& op, Lowering& to) {
  const Tensor& dy = to[op.dy];
  with_float(dy.type, [&](auto zero) {
    using T = decltype(zero);
    to.add(
        OpCategory::elementwise, to.threads_for(op.dy),
        {reads(op.dy, image_layout(dy)), writes(op.dbias)},
        [of = ImageRows(dy, dy.type)](const Invocation& call) {
          const T* const from = call.operand<const T>(0);
          auto* const sums = call.operand<float>(1);
          const std::int64_t vectors = (of.channels + lanes - 1) / lanes;
          const auto add_up = [=](auto part, std::int64_t block, std::int64_t c) {
            Floats sum{};
            for (std::int64_t image = 0; image < of.batch; ++image) {
              const T* first = from + (image * of.blocks + block) * of.pixels() * of.channels + c;
              sum += sum_of_rows<1>(of.pixels(), [&](std::int64_t pixel) {
                return std::array{load(part, first + pixel * of.channels)};
              })[0];
            }
            store(part, sum, sums + block * of.channels + c);
          };
          split(
              call.threads, of.blocks * vectors,
              [=](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i) {
                  const std::int64_t c = i % vectors * lanes;
                  if (c + lanes <= of.channels) {
                    add_up(WholeVector{}, i / vectors, c);
                  } else {
                    add_up(PartOfVector{static_cast<std::size_t>(of.channels - c)}, i / vectors, c);
                  }
                }
              },
              1);
        });
  });
}

}  // namespace crossover::cpu
