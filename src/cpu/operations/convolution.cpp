// SPDX-License-Identifier: Apache-2.0
// Three passes by oneDNN: forward with bias and activation, backward data, and backward weights
// with the bias's gradient.
#include "../convolution.h"

#include "../winograd/passes.h"

#include "operations.h"

namespace crossover::cpu {

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

}  // namespace crossover::cpu
