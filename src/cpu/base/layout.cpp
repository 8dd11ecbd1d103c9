// SPDX-License-Identifier: Apache-2.0
#include "layout.h"

#include <functional>
#include <numeric>
#include <stdexcept>

namespace crossover::cpu {

// ---- Layout

namespace {

dnnl::memory::desc row_major(const dnnl::memory::dims& extents, dnnl::memory::data_type type) {
  dnnl::memory::dims strides(extents.size(), 1);
  for (std::size_t i = extents.size() - 1; i > 0; --i) {
    strides[i - 1] = strides[i] * extents[i];
  }
  return {extents, type, strides};
}

/// Of an extent of one, the stride says nothing.
bool is_row_major(const dnnl::memory::desc& description) {
  const dnnl::memory::dims extents = description.get_dims();
  if (description.get_inner_nblks() != 0 || description.get_padded_dims() != extents) {
    return false;
  }
  const dnnl::memory::dims strides = description.get_strides();
  std::int64_t dense = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    if (extents[i] != 1 && strides[i] != dense) {
      return false;
    }
    dense *= extents[i];
  }
  return true;
}

}  // namespace

dnnl::memory::data_type onednn_type(Type type) {
  switch (type) {
    case Type::f32:
      return dnnl::memory::data_type::f32;
    case Type::i32:
      return dnnl::memory::data_type::s32;
    case Type::bf16:
      return dnnl::memory::data_type::bf16;
    case Type::f16:
      return dnnl::memory::data_type::f16;
    case Type::u8:
      return dnnl::memory::data_type::u8;
  }
  return dnnl::memory::data_type::undef;
}

Layout::Layout(const dnnl::memory::desc& description) {
  if (!is_row_major(description)) {
    description_ = description;
  }
}

dnnl::memory::desc Layout::description(const Tensor& tensor) const {
  return description_.value_or(row_major(tensor.shape, onednn_type(tensor.type)));
}

bool Layout::is_ordered_like(const Layout& other) const {
  if (is_plain() || other.is_plain()) {
    return is_plain() && other.is_plain();
  }
  const dnnl::memory::desc& a = *description_;
  const dnnl::memory::desc& b = *other.description_;
  return a.get_dims() == b.get_dims() && a.get_padded_dims() == b.get_padded_dims() &&
         a.get_strides() == b.get_strides() && a.get_inner_blks() == b.get_inner_blks() &&
         a.get_inner_idxs() == b.get_inner_idxs();
}

std::int64_t Layout::bytes(const Tensor& tensor) const {
  if (!description_) {
    return crossover::bytes(tensor);
  }
  const dnnl::memory::dims extents = description_->get_dims();
  const std::int64_t count =
      std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  if (count != elements(tensor.shape) ||
      description_->get_data_type() != onednn_type(tensor.type)) {
    throw std::invalid_argument("tensor '" + tensor.name + "', " + to_string(tensor.type) + " " +
                                to_string(tensor.shape) + ", can't lie in a layout of " +
                                std::to_string(count) + " elements or of another type");
  }
  return static_cast<std::int64_t>(description_->get_size());
}

Reorder::Reorder(const Tensor& source, const Layout& before, const Tensor& result,
                 const Layout& after) {
  // A plain layout takes its extents from the other one.
  const auto& known = before.description_ ? before.description_ : after.description_;
  const dnnl::memory::dims extents =
      known ? known->get_dims() : dnnl::memory::dims{elements(source.shape)};
  from = before.description_.value_or(row_major(extents, onednn_type(source.type)));
  to = after.description_.value_or(row_major(extents, onednn_type(result.type)));
}

// ---- Image

std::int64_t onednn_lanes() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::isa_default:
    case dnnl::cpu_isa::sse41:
      return 4;
    case dnnl::cpu_isa::avx:
#if defined(__aarch64__)  // there oneDNN says so of SVE of 128 bits
      return 4;
#endif
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx2_vnni:
    case dnnl::cpu_isa::avx2_vnni_2:
      return 8;
    default:
      return 16;
  }
}

namespace {

/// 0: channels last.
std::int64_t block_of(const Tensor& image, Type network_type) {
  const std::int64_t vector = onednn_lanes();
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
