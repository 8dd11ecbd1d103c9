// SPDX-License-Identifier: Apache-2.0
// What every oneDNN primitive is made with, and what it does to its result before that is stored.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "crossover/activation.h"

namespace crossover::cpu {

inline void append(Activation activation, dnnl::post_ops& to) {
  const auto add = [&to](dnnl::algorithm algorithm, float alpha = 0, float beta = 0) {
    to.append_eltwise(algorithm, alpha, beta);
  };
  switch (activation) {
    case Activation::relu:
      return add(dnnl::algorithm::eltwise_relu);
    case Activation::sigmoid:
      return add(dnnl::algorithm::eltwise_logistic);
    case Activation::tanh:
      return add(dnnl::algorithm::eltwise_tanh);
    case Activation::gelu:
      return add(dnnl::algorithm::eltwise_gelu_erf);
    case Activation::gelu_tanh:
      return add(dnnl::algorithm::eltwise_gelu_tanh);
    case Activation::silu:
      return add(dnnl::algorithm::eltwise_swish, 1);
    case Activation::relu6:
      return add(dnnl::algorithm::eltwise_clip, 0, 6);
    case Activation::hardswish:
      return add(dnnl::algorithm::eltwise_hardswish, 1.0F / 6, 0.5F);
    case Activation::hardsigmoid:
      return add(dnnl::algorithm::eltwise_hardsigmoid, 1.0F / 6, 0.5F);
    case Activation::leaky_relu:
      return add(dnnl::algorithm::eltwise_relu, 0.01F);
    case Activation::identity:
      return;
  }
}

/// activation(result), or activation(result + what was there).
inline dnnl::primitive_attr attributes(Activation activation = Activation::identity,
                                       bool accumulate = false) {
  dnnl::post_ops after;
  if (accumulate) {
    after.append_sum(1.0F);
  }
  append(activation, after);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  // Its own scratchpad would be allocated by oneDNN behind our back, in the timed loop for all we
  // know.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace crossover::cpu
