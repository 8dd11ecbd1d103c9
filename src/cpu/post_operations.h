// SPDX-License-Identifier: Apache-2.0
// What every oneDNN primitive is made with, and what it does to its result before that is stored.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "crossover/activation.h"

namespace crossover::cpu {

/// activation(result), or activation(result + what was there).
inline dnnl::primitive_attr attributes(Activation activation = Activation::identity,
                                       bool accumulate = false) {
  dnnl::post_ops after;
  if (accumulate) {
    after.append_sum(1.0F);
  }
  if (activation == Activation::relu) {
    after.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
  } else if (activation == Activation::sigmoid) {
    after.append_eltwise(dnnl::algorithm::eltwise_logistic, 0.0F, 0.0F);
  }
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  // Its own scratchpad would be allocated by oneDNN behind our back, in the timed loop for all we
  // know.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace crossover::cpu
