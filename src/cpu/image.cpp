// SPDX-License-Identifier: Apache-2.0
#include "image.h"

namespace crossover::cpu {
namespace {

/// Of oneDNN's f32 kernels.
std::int64_t channels_of_a_vector() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::isa_default:
    case dnnl::cpu_isa::sse41:
      return 4;
    case dnnl::cpu_isa::avx:
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx2_vnni:
    case dnnl::cpu_isa::avx2_vnni_2:
      return 8;
    default:
      return 16;
  }
}

/// 0: channels last.
std::int64_t block_of(const Tensor& image, Type network_type) {
  const std::int64_t vector = channels_of_a_vector();
  return network_type == Type::f32 && vector >= 8 && image.shape[1] % vector == 0 ? vector : 0;
}

dnnl::memory::desc tagged(const Tensor& image, dnnl::memory::format_tag tag) {
  return {image.shape, onednn_type(image.type), tag};
}

}  // namespace

Layout image_layout(const Tensor& image, Type network_type) {
  switch (block_of(image, network_type)) {
    case 16:
      return Layout(tagged(image, dnnl::memory::format_tag::nChw16c));
    case 8:
      return Layout(tagged(image, dnnl::memory::format_tag::nChw8c));
    default:
      return Layout(channels_last(image));
  }
}

dnnl::memory::desc channels_last(const Tensor& image) {
  return tagged(image, dnnl::memory::format_tag::nhwc);
}

ImageRows::ImageRows(const Tensor& image, Type network_type)
    : batch(image.shape[0]), height(image.shape[2]), width(image.shape[3]) {
  const std::int64_t block = block_of(image, network_type);
  channels = block == 0 ? image.shape[1] : block;
  blocks = image.shape[1] / channels;
}

}  // namespace crossover::cpu
