// SPDX-License-Identifier: Apache-2.0
// The kinds of layers, and the list of them at the end. To add one: docs/adding.md.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "crossover/activation.h"
#include "crossover/layer.h"
#include "crossover/operations/elementwise.h"
#include "crossover/operations/image.h"
#include "crossover/operations/movement.h"
#include "crossover/operations/recurrent.h"
#include "crossover/operations/resample.h"
#include "crossover/tensor.h"

namespace crossover {

/// [..., in] -> [..., out_features]. Weight [out_features, in] and bias [out_features] start
/// uniform in +- 1 / sqrt(in), as PyTorch's do. `tied` to an embedding before it: its table
/// [out_features, in] is the weight, which both train; without bias.
struct LinearLayer {
  std::int64_t out_features;
  bool has_bias = true;
  LayerNumber tied = no_layer;

  static constexpr bool result_may_be_f32 = true;
  static constexpr const char* type = "linear";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("out_features", layer.out_features);
    see.layer("tied", layer.tied);
    see.flag("bias", layer.has_bias, layer.tied == no_layer);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// One whose weight is an embedding's table.
inline LinearLayer tied_linear(std::int64_t out_features, LayerNumber embedding) {
  return {.out_features = out_features, .has_bias = false, .tied = embedding};
}

/// Attention consists of this and a SoftmaxLayer, for networks that have it otherwise. Of each
/// sample and head, a [time, batch, heads k] times b [k, batch, heads n], or `transpose` b [n,
/// batch, heads k]: [time, batch, heads n], times `scale`. A vector [batch, width] is a sequence of
/// one place; where a is one, so is the result.
struct MatmulLayer {
  bool transpose = false;
  std::int64_t heads = 1;
  double scale = 1;

  static constexpr const char* type = "matmul";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.flag("transpose", layer.transpose, false);
    see.size("num_heads", layer.heads, 1);
    see.number("scale", layer.scale, 1.0);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// Of each of `heads` equal parts of the last dimension; causal: of a sequence [time, batch, heads
/// places], place t sees those up to itself.
struct SoftmaxLayer {
  std::int64_t heads = 1;
  bool causal = false;

  static constexpr const char* type = "softmax";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("num_heads", layer.heads, 1);
    see.flag("causal", layer.causal, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// Elementwise, of any shape.
struct ActivationLayer {
  Activation activation;

  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type(layer.activation, named_activations);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

Shape infer(const Function& function, LayerShapes& shapes);
void forward(const Function& function, LayerForward& step);
void backward(const Function& function, LayerBackward& step);

/// Elementwise, of any shape.
template <class Of>
struct FunctionLayer {
  Of function;

  static constexpr const char* type = Of::name;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    Of::describe(layer.function, see);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const {
    return crossover::infer(function, shapes);
  }
  void forward(LayerForward& step) const { crossover::forward(function, step); }
  void backward(LayerBackward& step) const { crossover::backward(function, step); }
};

/// The sum of two values of one shape.
struct AddLayer {
  static constexpr const char* type = "add";
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// The product of two values. The second has the shape of the first, or one number for all pixels
/// of an image, [batch, channels] or [batch, channels, 1, 1], or for all time steps of a sequence,
/// [batch, width].
struct MultiplyLayer {
  static constexpr const char* type = "multiply";
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// Elementwise, of any shape: drops each element with that probability, others of each layer and
/// step. Counts its steps in a state.
struct DropoutLayer {
  double probability;

  static constexpr const char* type = "dropout";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.number("p", layer.probability);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [batch, in, height, width] -> [batch, out_channels, positions, positions]. Weight [out_channels,
/// in / groups, rows, columns] and bias [out_channels], if it has one, start uniform in +- 1 /
/// sqrt(in / groups * rows * columns), as PyTorch's do. On images of height 1 with windows of one
/// row it is PyTorch's Conv1d.
struct ConvolutionLayer {
  std::int64_t out_channels;
  Window window;
  bool has_bias = true;
  std::int64_t groups = 1;  ///< of channels, each of which sees its own input channels only

  static constexpr const char* type = "conv2d";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("out_channels", layer.out_channels);
    see.size("kernel_size", layer.window.size);
    see.size("stride", layer.window.stride, 1);
    see.count("padding", layer.window.padding, 0);
    see.flag("ceil_mode", layer.window.ceil, false);
    see.flag("bias", layer.has_bias, true);
    see.size("groups", layer.groups, 1);
    see.size("dilation", layer.window.dilation, 1);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [batch, in, height, width] -> [batch, out_channels, ...]: what gradients with respect to the
/// images of a convolution with that window are to the gradients of its result. Of a height comes
/// stride (height - 1) + extent(window) - 2 padding + output_padding. Weight [in, out_channels /
/// groups, rows, columns] and bias [out_channels], if it has one, start uniform in +- 1 /
/// sqrt(out_channels / groups * rows * columns), as those of PyTorch's ConvTranspose2d do.
struct TransposedConvolutionLayer {
  std::int64_t out_channels;
  Window window;
  Pair output_padding = 0;  ///< below the stride: rows and columns that its division drops
  bool has_bias = true;
  std::int64_t groups = 1;

  static constexpr const char* type = "conv_transpose2d";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("out_channels", layer.out_channels);
    see.size("kernel_size", layer.window.size);
    see.size("stride", layer.window.stride, 1);
    see.count("padding", layer.window.padding, 0);
    see.count("output_padding", layer.output_padding, 0);
    see.flag("bias", layer.has_bias, true);
    see.size("groups", layer.groups, 1);
    see.size("dilation", layer.window.dilation, 1);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [batch, channels, height, width] -> [batch, channels, positions, positions]: the maximum of each
/// window, or its mean, in which zeros of the padding count (PyTorch's count_include_pad).
template <PoolKind kind>
struct PoolLayer {
  Window window;

  static constexpr const char* type = kind == PoolKind::max ? "max_pool2d" : "avg_pool2d";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("kernel_size", layer.window.size);
    see.size("stride", layer.window.stride, layer.window.size);
    see.count("padding", layer.window.padding, 0);
    see.flag("ceil_mode", layer.window.ceil, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};
using MaxPoolLayer = PoolLayer<PoolKind::max>;
using AveragePoolLayer = PoolLayer<PoolKind::average>;

/// [batch, channels, height, width] -> [batch, channels]; where `over_time`, [time, batch, width]
/// -> [batch, width].
struct GlobalAveragePoolLayer {
  bool over_time = false;

  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type(layer.over_time, {{"global_avg_pool2d", false}, {"mean_over_time", true}});
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [batch, channels, height, width] -> [batch, channels, factor height, factor width], a factor for
/// each: each pixel is the nearest of the smaller image (PyTorch's Upsample with mode="nearest").
struct UpsampleLayer {
  Pair factor = 1;

  static constexpr const char* type = "upsample";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("scale_factor", layer.factor);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [batch, channels, height, width] -> [batch, channels, size], whose pixels are interpolated
/// (PyTorch's interpolate with mode="bilinear").
struct InterpolateLayer {
  Pair size = 1;
  bool align_corners = false;

  static constexpr const char* type = "interpolate";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("size", layer.size);
    see.flag("align_corners", layer.align_corners, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [batch, channels, height, width] or [batch, channels], each channel normalized over the others,
/// then times scale [channels], which starts at 1, plus shift [channels], which starts at 0.
struct BatchNormLayer {
  double epsilon = 1e-5;  ///< added to the variance

  static constexpr const char* type = "batch_norm";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.number("eps", layer.epsilon, 1e-5);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [..., width], each row normalized by itself, then times weight [width], which starts at 1, plus
/// bias [width], which starts at 0. Where it `is_rms`, rows are divided by their root mean square,
/// and there is no bias. Without `elementwise_affine` there is neither. Epsilons that go unsaid are
/// PyTorch's, of f32.
struct LayerNormLayer {
  double epsilon = 1e-5;
  bool is_rms = false;
  bool elementwise_affine = true, bias = true;

  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type(layer.is_rms, {{"layer_norm", false}, {"rms_norm", true}});
    see.number("eps", layer.epsilon, layer.is_rms ? 1.1920928955078125e-07 : 1e-5);
    see.flag("elementwise_affine", layer.elementwise_affine, true);
    if (!layer.is_rms) {
      see.flag("bias", layer.bias, true);
    }
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;

 private:
  [[nodiscard]] bool has_bias() const { return !is_rms && elementwise_affine && bias; }
};

/// The shape of the images; groups of neighbouring channels of each image by themselves. The weight
/// [channels] starts at 1, the bias [channels] at 0, as those of PyTorch's GroupNorm.
struct GroupNormLayer {
  std::int64_t groups;  ///< divide the channels
  double epsilon = 1e-5;

  static constexpr const char* type = "group_norm";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("num_groups", layer.groups);
    see.number("eps", layer.epsilon, 1e-5);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// Tokens [batch, time] -> [time, batch, width]: time first, as layers of sequences read it. The
/// table [vocabulary, width] starts uniform in [-1, 1), or, where `scaled_start`, in
/// +- 1 / sqrt(width): so that a product which is tied to it starts like any other.
struct EmbeddingLayer {
  std::int64_t vocabulary;
  std::int64_t width;
  bool scaled_start = false;

  static constexpr const char* type = "embedding";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("num_embeddings", layer.vocabulary);
    see.size("embedding_dim", layer.width);
    see.flag("scaled_start", layer.scaled_start, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [time, batch, width] plus a vector for each place. Their table [time, width] starts uniform in
/// +- 1 / sqrt(width).
struct PositionEmbeddingLayer {
  static constexpr const char* type = "position_embedding";
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// Queries, keys and values [time, batch, 3 width], in this order as one linear layer gives them,
/// -> [time, batch, width]. causal: no place sees a later one.
struct AttentionLayer {
  std::int64_t heads;
  bool causal = false;

  static constexpr const char* type = "attention";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("num_heads", layer.heads);
    see.flag("causal", layer.causal, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// Sequences [time, batch, in] -> [time, batch, hidden]. Weights [gates hidden, in] of the inputs
/// and [gates hidden, hidden] of the recurrence, then a bias [gates hidden] of each, start uniform
/// in +- 1 / sqrt(hidden), as PyTorch's do.
template <class Unit>
struct RecurrentLayer {
  std::int64_t hidden;

  static constexpr const char* type = Unit::layer;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("hidden_size", layer.hidden);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};
using LstmLayer = RecurrentLayer<LstmCell>;
using GruLayer = RecurrentLayer<GruCell>;

/// [batch, ...] -> [batch, values of a sample], row by row.
struct FlattenLayer {
  static constexpr const char* type = "flatten";
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [batch, channels, height, width] -> [height * width, batch, channels], row by row of the image.
struct ToSequenceLayer {
  static constexpr const char* type = "to_sequence";
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [time, batch, width] -> [batch, width, height, time / height]: its places are pixels, as of a
/// ToSequenceLayer. With `channels`, a sample [time, width], or a vector, is read row by row as
/// [channels, height, ...], in each of which are whole places.
struct ToImageLayer {
  std::int64_t height = 1;
  std::int64_t channels = 0;  // 0: the width of the sequence

  static constexpr const char* type = "to_image";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.size("height", layer.height, 1);
    see.size("channels", layer.channels, 0);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;

 private:
  [[nodiscard]] std::vector<CopiedBlock> blocks(const Shape& sequence) const;
};

/// Images [batch, channels, height, width] one after another in their channels; values of other
/// shapes in their last dimension. Two or more, which agree in all other dimensions.
struct ConcatenateLayer {
  static constexpr const char* type = "concatenate";
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// Channels `from` to `to` (not with it) of an image, else so of the last dimension; `over_time`:
/// places of a sequence [time, batch, width]. Of tokens [batch, places] these are places, and what
/// it gives are tokens.
struct SliceLayer {
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool over_time = false;

  static constexpr const char* type = "slice";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.count("from", layer.from, 0);
    see.size("to", layer.to);
    see.flag("over_time", layer.over_time, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;

 private:
  [[nodiscard]] CopiedBlock block(const Shape& shape) const;
};

/// So many zeros on each side of [batch, channels, height, width]: columns on the left and on the
/// right, rows on top and at the bottom, channels in front and at the back. Below zero so many are
/// cut off instead.
struct PadLayer {
  std::int64_t left = 0, right = 0, top = 0, bottom = 0, front = 0, back = 0;

  static constexpr const char* type = "pad";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.any_count("left", layer.left, 0);
    see.any_count("right", layer.right, 0);
    see.any_count("top", layer.top, 0);
    see.any_count("bottom", layer.bottom, 0);
    see.any_count("front", layer.front, 0);
    see.any_count("back", layer.back, 0);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;

 private:
  [[nodiscard]] Shape before() const { return {0, front, top, left}; }
};

/// [time, batch, width] -> [1 + time, batch, width] with a trained vector [1, width] in front,
/// which starts uniform in +- 1 / sqrt(width).
struct ClassTokenLayer {
  static constexpr const char* type = "class_token";
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [time, batch, width] -> [batch, width].
struct OnePlaceLayer {
  bool is_last = false;

  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type(layer.is_last, {{"first_place", false}, {"last_place", true}});
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;

 private:
  [[nodiscard]] std::vector<CopiedBlock> blocks(const Shape& sequence) const;
};

/// torch.as_strided of each sample: its number (i, j, ...) is number storage_offset + i stride[0] +
/// j stride[1] + ... of the sample before, counted row by row (of a sequence: place by place). A
/// stride below 0 goes backwards. The gradients of what is read several times are added up. `shape`
/// is how the numbers lie: {width} of a vector, {time, width} of a sequence, {channels, height,
/// width} of an image.
struct AsStridedLayer {
  Shape shape, size, stride;
  std::int64_t storage_offset = 0;

  static constexpr const char* type = "as_strided";
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.sizes("shape", layer.shape);
    see.sizes("size", layer.size);
    see.steps("stride", layer.stride);
    see.count("storage_offset", layer.storage_offset, 0);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

// ---- The list.

template <LayerKindType... Layers>
using OneOfLayers = std::variant<Layers...>;

/// A file's layer is the first that has its type: of an activation with a number of its own, the
/// function.
template <class... Functions>
using LayersWith =
    OneOfLayers<LinearLayer, FunctionLayer<Functions>..., ActivationLayer, AddLayer,
                ConvolutionLayer, MaxPoolLayer, AveragePoolLayer, GlobalAveragePoolLayer,
                BatchNormLayer, DropoutLayer, EmbeddingLayer, PositionEmbeddingLayer,
                LayerNormLayer, AttentionLayer, LstmLayer, FlattenLayer, ConcatenateLayer,
                ToSequenceLayer, MultiplyLayer, ClassTokenLayer, OnePlaceLayer, SliceLayer,
                MatmulLayer, SoftmaxLayer, GruLayer, TransposedConvolutionLayer, UpsampleLayer,
                GroupNormLayer, ToImageLayer, PadLayer, AsStridedLayer, InterpolateLayer>;

using LayerKind = OfFunctions<LayersWith>;

}  // namespace crossover
