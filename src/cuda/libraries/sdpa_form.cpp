// SPDX-License-Identifier: Apache-2.0
#include "sdpa_form.h"

namespace crossover::cuda {

std::string to_string(const SdpaForm& form) {
  return std::string(form.gradient ? "the gradient of " : "") + (form.causal ? "causal " : "") +
         "attention of " + crossover::to_string(Shape{form.time, form.batch, form.width()}) +
         " by " + std::to_string(form.heads) + (form.heads == 1 ? " head, " : " heads, ") +
         to_string(form.type) + (form.repeats ? "" : ", in any order");
}

std::string short_name(const SdpaForm& form) {
  return form.gradient ? "attention backward" : "attention forward";
}

double flops(const SdpaForm& form) {
  const double products = form.gradient ? 5 : 2;
  return 2 * products * static_cast<double>(form.batch * form.heads * form.d) *
         static_cast<double>(form.time * form.time);
}

}  // namespace crossover::cuda
