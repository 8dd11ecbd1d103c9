// SPDX-License-Identifier: Apache-2.0
#include "convolutions.h"

namespace crossover::cuda {

void Convolutions::choose(const ConvolutionForm& form, const ConvolutionOperands& operands,
                          cudaStream_t stream, ConvolutionChoice how) {
  if (chosen_.contains(form)) {
    return;
  }
  chosen_[form] = plans_.choose(
      form, how == ConvolutionChoice::benchmark,
      [&](int plan) { return library_->make(form, plan); },
      [&](const ConvolutionPlan& plan) { plan.execute(stream, operands); }, stream);
}

}  // namespace crossover::cuda
