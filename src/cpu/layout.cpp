// SPDX-License-Identifier: Apache-2.0
#include "layout.h"

#include <functional>
#include <numeric>
#include <stdexcept>

namespace crossover::cpu {
namespace {

dnnl::memory::desc row_major(const dnnl::memory::dims& extents, dnnl::memory::data_type type) {
  dnnl::memory::dims strides(extents.size(), 1);
  for (std::size_t i = extents.size() - 1; i > 0; --i) {
    strides[i - 1] = strides[i] * extents[i];
  }
  return {extents, type, strides};
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
  if (description != row_major(description.get_dims(), description.get_data_type())) {
    description_ = description;
  }
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

Reorder::Reorder(const Tensor& tensor, const Layout& before, const Layout& after) {
  // A plain layout takes its extents from the other one.
  const auto& known = before.description_ ? before.description_ : after.description_;
  const dnnl::memory::desc plain =
      known ? row_major(known->get_dims(), known->get_data_type())
            : row_major({elements(tensor.shape)}, onednn_type(tensor.type));
  from = before.description_.value_or(plain);
  to = after.description_.value_or(plain);
}

}  // namespace crossover::cpu
