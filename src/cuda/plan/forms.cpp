// SPDX-License-Identifier: Apache-2.0
#include "forms.h"

namespace crossover::cuda {

// ---- Product form

namespace {

const char* name_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return "none";
    case Epilogue::bias:
      return "bias";
    case Epilogue::relu:
      return "relu";
    case Epilogue::relu_bias:
      return "relu and bias";
    case Epilogue::relu_mask:
      return "relu and mask";
    case Epilogue::relu_mask_bias:
      return "relu, mask and bias";
    case Epilogue::drelu:
      return "relu's derivative";
    case Epilogue::drelu_bias_sum:
      return "relu's derivative and bias gradient";
    case Epilogue::b_sum:
      return "bias gradient";
  }
  return "";
}

}  // namespace

bool reads_vector(Epilogue epilogue) {
  return epilogue == Epilogue::bias || epilogue == Epilogue::relu_bias ||
         epilogue == Epilogue::relu_mask_bias;
}

bool writes_vector(Epilogue epilogue) {
  return epilogue == Epilogue::drelu_bias_sum || epilogue == Epilogue::b_sum;
}

bool writes_mask(Epilogue epilogue) {
  return epilogue == Epilogue::relu_mask || epilogue == Epilogue::relu_mask_bias;
}

bool uses_mask(Epilogue epilogue) {
  return writes_mask(epilogue) || epilogue == Epilogue::drelu ||
         epilogue == Epilogue::drelu_bias_sum;
}

std::string to_string(const ProductForm& form) {
  return "a product of m=" + std::to_string(form.m) + " n=" + std::to_string(form.n) +
         " k=" + std::to_string(form.k) +
         (form.factors == Type::f32
              ? ""
              : ", " + to_string(form.factors) + " to " + to_string(form.result)) +
         (form.transpose_a ? ", A transposed" : "") + (form.transpose_b ? ", B transposed" : "") +
         (form.accumulate ? ", accumulating" : "") +
         (form.networks.count == 1
              ? ""
              : ", for each of " + std::to_string(form.networks.count) + " networks") +
         ", epilogue: " + name_of(form.epilogue);
}

double flops(const ProductForm& form) {
  return 2.0 * static_cast<double>(form.m) * static_cast<double>(form.n) *
         static_cast<double>(form.k) * static_cast<double>(form.networks.count);
}

std::int64_t mask_leading(std::int64_t m) {
  constexpr std::int64_t multiple = 128;  // bits, as cuBLASLt asks
  return round_up(m, multiple);
}

std::int64_t mask_bytes(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t bits = 8;
  return mask_leading(m) / bits * n;
}

// ---- Convolution form

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

// ---- Sdpa form

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
