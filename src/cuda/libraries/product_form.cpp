// SPDX-License-Identifier: Apache-2.0
#include "product_form.h"

namespace crossover::cuda {
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
         (form.accumulate ? ", accumulating" : "") + ", epilogue: " + name_of(form.epilogue);
}

double flops(const ProductForm& form) {
  return 2.0 * static_cast<double>(form.m) * static_cast<double>(form.n) *
         static_cast<double>(form.k);
}

std::int64_t mask_leading(std::int64_t m) {
  constexpr std::int64_t multiple = 128;  // bits, as cuBLASLt asks
  return round_up(m, multiple);
}

std::int64_t mask_bytes(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t bits = 8;
  return mask_leading(m) / bits * n;
}

}  // namespace crossover::cuda
