// SPDX-License-Identifier: Apache-2.0
#include "tailored_text.h"

#include <algorithm>
#include <array>

#include "tailored_headers.h"

namespace crossover::cuda {

namespace {

/// Of the standard library what those headers name.
constexpr std::array own_headers{
    TailoredHeader{"cmath",
                   "namespace std {\n"
                   "using ::cos; using ::erfc; using ::exp; using ::expm1; using ::fma;\n"
                   "using ::fmax; using ::log; using ::log1p; using ::sin; using ::sqrt;\n"
                   "using ::tanh;\n}\n"},
    TailoredHeader{"cstdint",
                   "namespace std {\n"
                   "using uint8_t = unsigned char; using int32_t = int;\n"
                   "using int64_t = long; using intptr_t = long;\n}\n"},
    TailoredHeader{"initializer_list", ""},
    TailoredHeader{"utility",
                   "namespace std {\n"
                   "template <class A, class B> struct pair { A first; B second; };\n}\n"},
    TailoredHeader{"vector",
                   "namespace std {\n"
                   "template <class T> struct vector {\n"
                   "  vector() {}\n  vector(initializer_list<T>) {}\n};\n}\n"}};

constexpr auto all_headers = [] {
  std::array<TailoredHeader, own_headers.size() + embedded_headers.size()> all{};
  std::copy(embedded_headers.begin(), embedded_headers.end(),
            std::copy(own_headers.begin(), own_headers.end(), all.begin()));
  return all;
}();

}  // namespace

std::span<const TailoredHeader> tailored_headers() { return all_headers; }

std::vector<std::string> tailored_options(int capability) {
  return {"--std=c++20", "--device-as-default-execution-space",
          "--gpu-architecture=sm_" + std::to_string(capability)};
}

std::string tailored_source(const tailored::Shape& shape) {
  const auto number = [](auto value) { return std::to_string(static_cast<int>(value)); };
  std::string widths = number(shape.width[0]);
  std::string activations;
  for (int l = 0; l < shape.layers; ++l) {
    widths += ", " + number(shape.width[l + 1]);
    activations +=
        std::string(l == 0 ? "" : ", ") + "Activation(" + number(shape.activation[l]) + ")";
  }
  return "#include \"tailored.cuh\"\n"
         "namespace crossover::cuda::tailored {\n"
         "struct Network {\n"
         "  static constexpr Shape shape{.layers = " +
         number(shape.layers) + ", .width = {" + widths + "}, .activation = {" + activations +
         "},\n    .loss = LossFunction(" + number(shape.loss) + "), .rule = KernelRule(" +
         number(shape.rule) + "), .batch = " + number(shape.batch) +
         ", .blocks = " + number(shape.blocks) + ", .lanes = " + number(shape.lanes) +
         ", .workers = " + number(shape.workers) + ", .threads = " + number(shape.threads) +
         ", .keep = " + (shape.keep ? "true" : "false") +
         "};\n};\n"
         "extern __shared__ float4 memory_of_the_launch[];\n"
         "extern \"C\" __global__ void __launch_bounds__(" +
         number(shape.threads) + ", 1)" +
         (shape.blocks > 1 ? " __cluster_dims__(" + number(shape.blocks) + ", 1, 1)" : "") +
         "\n    " + tailored_kernel_name +
         "(const __grid_constant__ Arguments of) {\n"
         "  train<Network>(of, reinterpret_cast<float*>(memory_of_the_launch));\n}\n}\n";
}

}  // namespace crossover::cuda
