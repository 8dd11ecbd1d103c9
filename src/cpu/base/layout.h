// SPDX-License-Identifier: Apache-2.0
// How tensors lie in the CPU's memory, which is this backend's own business: upload and download
// speak the plain layout.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstdint>
#include <optional>

#include "crossover/step.h"

namespace crossover::cpu {

dnnl::memory::data_type onednn_type(Type type);

class Layout {
 public:
  /// Row-major and dense, as the Workload has it.
  Layout() = default;

  /// As oneDNN describes it: permuted, blocked, padded. Its extents may group the tensor's
  /// differently, as long as both count the same elements in row-major order. A description that is
  /// row-major and dense is the plain layout.
  explicit Layout(const dnnl::memory::desc& description);

  [[nodiscard]] bool is_plain() const { return !description_; }

  /// For oneDNN. A plain layout has the tensor's extents.
  [[nodiscard]] dnnl::memory::desc description(const Tensor& tensor) const;

  /// Whether elements lie in the same order in both, types apart.
  [[nodiscard]] bool is_ordered_like(const Layout& other) const;

  /// Bytes of a tensor in this layout, padding included; std::invalid_argument where the layout is
  /// one of another type or of another number of elements.
  [[nodiscard]] std::int64_t bytes(const Tensor& tensor) const;

  friend bool operator==(const Layout& a, const Layout& b) {
    return a.description_ == b.description_;
  }

 private:
  friend struct Reorder;
  std::optional<dnnl::memory::desc> description_;  ///< none: plain
};

/// The same elements in two layouts, as oneDNN's reorder takes them: one tensor's, or those of two
/// of different types or shapes.
struct Reorder {
  Reorder(const Tensor& tensor, const Layout& before, const Layout& after)
      : Reorder(tensor, before, tensor, after) {}
  Reorder(const Tensor& source, const Layout& before, const Tensor& result, const Layout& after);

  dnnl::memory::desc from, to;
};

// ---- Images: one layout from input to loss, which convolutions and loops of ours share.

/// Floats of a vector in oneDNN's kernels, for the best instructions that it has here.
std::int64_t onednn_lanes();

/// The layout of an image tensor [batch, channels, height, width] of a network that stores
/// `network_type`: f32 in blocks of as many channels as a vector holds, where they divide
/// (oneDNN's nChw16c, nChw8c); else channels last, as oneDNN's 16-bit convolutions want them.
Layout image_layout(const Tensor& image, Type network_type);
inline Layout image_layout(const Tensor& image) { return image_layout(image, image.type); }

/// Channels last, whatever the type.
dnnl::memory::desc channels_last(const Tensor& image);

/// An image in its image_layout() as loops of ours see it: [batch][blocks][pixels][width], where
/// the last are channels. Channels last is one block as wide as all channels.
struct ImageRows {
  std::int64_t batch = 0, blocks = 0, height = 0, width = 0;
  std::int64_t channels = 0;  ///< of a block, contiguous

  ImageRows(const Tensor& image, Type network_type);

  [[nodiscard]] std::int64_t pixels() const { return height * width; }
  [[nodiscard]] std::int64_t planes() const { return batch * blocks; }
};

}  // namespace crossover::cpu
