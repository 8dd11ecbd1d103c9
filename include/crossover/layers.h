// SPDX-License-Identifier: Apache-2.0
// The list of layers. To add one: docs/adding.md.
#pragma once

#include <variant>

#include "crossover/layer.h"
#include "crossover/layers/activation_layer.h"
#include "crossover/layers/add_layer.h"
#include "crossover/layers/as_strided_layer.h"
#include "crossover/layers/attention_layer.h"
#include "crossover/layers/batch_norm_layer.h"
#include "crossover/layers/concatenate_layer.h"
#include "crossover/layers/convolution_layer.h"
#include "crossover/layers/dropout_layer.h"
#include "crossover/layers/embedding_layer.h"
#include "crossover/layers/flatten_layer.h"
#include "crossover/layers/function_layer.h"
#include "crossover/layers/global_average_pool_layer.h"
#include "crossover/layers/group_norm_layer.h"
#include "crossover/layers/layer_norm_layer.h"
#include "crossover/layers/linear_layer.h"
#include "crossover/layers/lstm_layer.h"
#include "crossover/layers/matmul_layer.h"
#include "crossover/layers/multiply_layer.h"
#include "crossover/layers/pad_layer.h"
#include "crossover/layers/place_layers.h"
#include "crossover/layers/pool_layer.h"
#include "crossover/layers/position_embedding_layer.h"
#include "crossover/layers/slice_layer.h"
#include "crossover/layers/to_image_layer.h"
#include "crossover/layers/to_sequence_layer.h"
#include "crossover/layers/transposed_convolution_layer.h"
#include "crossover/layers/upsample_layer.h"

namespace crossover {

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
                GroupNormLayer, ToImageLayer, PadLayer, AsStridedLayer>;

using LayerKind = OfFunctions<LayersWith>;

}  // namespace crossover
