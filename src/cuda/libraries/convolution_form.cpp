// SPDX-License-Identifier: Apache-2.0
#include "convolution_form.h"

namespace crossover::cuda {
namespace {

const char* name_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::forward:
      return "a convolution";
    case ConvolutionPass::dx:
      return "the gradient for the image of a convolution";
    case ConvolutionPass::dw:
      return "the gradient for the weights of a convolution";
  }
  return "";
}

}  // namespace

std::string to_string(const ConvolutionForm& form) {
  return std::string(name_of(form.pass)) + " of " +
         crossover::to_string(Shape{form.batch, form.in, form.height, form.width}) + " to " +
         crossover::to_string(
             Shape{form.batch, form.out, form.positions_down, form.positions_across}) +
         ", window " + crossover::to_string(form.size) + ", stride " +
         crossover::to_string(form.stride) + ", padding " + crossover::to_string(form.padding) +
         (form.dilation == 1 ? "" : ", dilation " + crossover::to_string(form.dilation)) +
         (form.groups == 1 ? "" : ", " + std::to_string(form.groups) + " groups") +
         (form.type == Type::f32 ? ""
                                 : ", " + to_string(form.type) + " to " + to_string(form.result)) +
         (form.bias ? ", with bias" : "") + (form.relu ? ", with relu" : "");
}

std::string short_name(ConvolutionPass pass) {
  return pass == ConvolutionPass::forward ? "forward" : pass == ConvolutionPass::dx ? "dx" : "dw";
}

double flops(const ConvolutionForm& form) {
  const std::int64_t channels = form.in / form.groups;  // that an output reads
  return 2.0 * static_cast<double>(form.batch * form.positions_down * form.positions_across) *
         static_cast<double>(form.out) * static_cast<double>(channels * form.size.product());
}

}  // namespace crossover::cuda
