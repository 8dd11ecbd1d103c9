// SPDX-License-Identifier: Apache-2.0
#include "crossover/network_file.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "crossover/catalogue.h"
#include "crossover/fingerprint.h"

namespace crossover::test {
namespace {

using Json = nlohmann::ordered_json;

std::uint64_t training_identity(const Model& model) {
  return fingerprint(training_epoch(model, {.rows = 2, .batch = 2, .optimizer = SgdOptions{}}));
}

Json written() {
  return Json::parse(R"({"name": "m", "input": {"shape": [1, 8, 8], "type": "f32"}, "classes": 2,
    "loss": "cross_entropy", "layers": [
      {"name": "stem", "type": "conv2d", "out_channels": 3, "kernel_size": 3, "padding": 1},
      {"type": "relu"},
      {"type": "conv2d", "out_channels": 3, "kernel_size": 1, "bias": false},
      {"type": "add", "inputs": ["layer 2", "stem"]},
      {"type": "max_pool2d", "kernel_size": 2}, {"type": "flatten"},
      {"type": "dropout", "p": 0.25},
      {"type": "linear", "out_features": 2}]})");
}

TEST(NetworkJson, TakesWhatIsAbsentAsPyTorchDoes) {
  const Model model = model_from(written());
  const auto& stem = std::get<ConvolutionLayer>(model.layers[0].kind);
  EXPECT_EQ(stem.window.stride, 1);
  EXPECT_TRUE(stem.has_bias);
  EXPECT_EQ(std::get<MaxPoolLayer>(model.layers[4].kind).window.stride, 2);
  EXPECT_EQ(model.layers[3].inputs, (std::vector<Value>{3, 1}));
  EXPECT_EQ(model.layers[1].inputs, std::vector<Value>{1});
  EXPECT_EQ(describe(model_from(describe(model))), describe(model));
}

TEST(NetworkJson, KnowsGroupsAndDilation) {
  Json json = written();
  json["layers"][2].update({{"groups", 3}, {"dilation", 2}});
  const Model model = model_from(json);
  const auto& layer = std::get<ConvolutionLayer>(model.layers[2].kind);
  EXPECT_EQ(layer.groups, 3);
  EXPECT_EQ(layer.window.dilation, 2);
  EXPECT_EQ(describe(model)["layers"][2]["groups"], 3);
  EXPECT_EQ(describe(model)["layers"][2]["dilation"], 2);
  EXPECT_FALSE(describe(model)["layers"][0].contains("groups"));
}

TEST(NetworkJson, KnowsANumberForEachDirection) {
  const Json json = Json::parse(R"({"name": "m", "input": {"shape": [2, 1, 16], "type": "f32"},
    "outputs": 240, "loss": "mse", "layers": [
      {"name": "line", "type": "conv2d", "out_channels": 4, "kernel_size": [1, 5],
       "stride": [1, 2], "padding": [0, 4], "dilation": [1, 2]},
      {"name": "pool", "type": "max_pool2d", "kernel_size": [1, 2], "stride": 1},
      {"name": "up", "type": "conv_transpose2d", "out_channels": 4, "kernel_size": [1, 3],
       "stride": [1, 2], "padding": [0, 1], "output_padding": [0, 1]},
      {"name": "repeated", "type": "upsample", "scale_factor": [5, 1]},
      {"name": "less", "type": "avg_pool2d", "kernel_size": [1, 4]},
      {"name": "more", "type": "upsample", "scale_factor": [1, 4]},
      {"name": "mean", "type": "avg_pool2d", "kernel_size": 1, "padding": 0},
      {"name": "flat", "type": "flatten"}]})");
  const Model model = model_from(json);
  Json said = json;
  said["layers"][6].erase("padding");
  EXPECT_EQ(describe(model), said);
  const auto& line = std::get<ConvolutionLayer>(model.layers[0].kind).window;
  EXPECT_EQ(line.size, Pair(1, 5));
  EXPECT_EQ(line.padding, Pair(0, 4));
  EXPECT_EQ(std::get<AveragePoolLayer>(model.layers[4].kind).window.stride, Pair(1, 4));
  const Json flags = Json::parse(R"([{"kernel_size": [5, 1]}, {"stride": [2, 1]}])");
  for (const Json& change : flags) {
    Json other = written();
    other["layers"][0].update({{"kernel_size", {1, 5}}, {"padding", 0}});
    const Model before = model_from(other);
    other["layers"][0].update(change);
    EXPECT_NE(describe(model_from(other)), describe(before));
  }
  training_identity(model);  // it fits: 4 channels of 5 by 12
  Json square = written();
  square["layers"][0]["kernel_size"] = {3, 3};
  EXPECT_EQ(describe(model_from(square)), describe(model_from(written())));
}

TEST(NetworkJson, KnowsWhatJoinsGatesAndTurns) {
  const Json json = Json::parse(R"({"name": "m", "input": {"shape": [3, 4, 4], "type": "f32"},
    "classes": 2, "loss": "cross_entropy", "layers": [
      {"name": "a", "type": "conv2d", "out_channels": 6, "kernel_size": 1},
      {"name": "mean", "type": "global_avg_pool2d"},
      {"name": "gate", "type": "sigmoid"},
      {"name": "gated", "type": "multiply", "inputs": ["a", "gate"]},
      {"name": "few", "type": "slice", "from": 1, "to": 4},
      {"name": "all", "type": "concatenate", "inputs": ["few", "input"]},
      {"name": "turned", "type": "to_sequence"}, {"name": "token", "type": "class_token"},
      {"name": "places", "type": "slice", "to": 9, "over_time": true},
      {"name": "norm", "type": "rms_norm", "eps": 1e-6},
      {"name": "first", "type": "first_place"},
      {"name": "last", "type": "last_place", "inputs": ["norm"]},
      {"name": "middle", "type": "mean_over_time", "inputs": ["norm"]},
      {"name": "layer 13", "type": "layer_norm"},
      {"name": "image", "type": "to_image", "height": 3, "inputs": ["places"]},
      {"name": "pixels", "type": "to_sequence"},
      {"name": "lines", "type": "to_image", "height": 3, "channels": 3},
      {"name": "flat", "type": "global_avg_pool2d"},
      {"name": "join", "type": "concatenate", "inputs": ["first", "last", "layer 13", "flat"]},
      {"name": "out", "type": "linear", "out_features": 2}]})");
  const Model model = model_from(json);
  EXPECT_EQ(describe(model), json);
  EXPECT_EQ(std::get<LayerNormLayer>(model.layers[9].kind).epsilon, 1e-6);
  EXPECT_EQ(std::get<LayerNormLayer>(model.layers[13].kind).epsilon, 1e-5);
  training_identity(model);  // it fits
  Json broken = json;
  broken["layers"][9]["eps"] = 0;
  EXPECT_THAT([&] { model_from(broken); },
              testing::ThrowsMessage<std::invalid_argument>(testing::HasSubstr("eps")));
}

TEST(NetworkJson, KnowsWhatMakesImagesLarger) {
  const Json json = Json::parse(R"({"name": "m", "input": {"shape": [3, 4, 4], "type": "f32"},
    "outputs": 648, "loss": "mse", "layers": [
      {"name": "up", "type": "conv_transpose2d", "out_channels": 4, "kernel_size": 3, "stride": 2,
       "padding": 1, "output_padding": 1, "bias": false},
      {"name": "wider", "type": "conv_transpose2d", "out_channels": 2, "kernel_size": 2,
       "groups": 2, "dilation": 1},
      {"name": "norm", "type": "group_norm", "num_groups": 2, "eps": 1e-3},
      {"name": "repeated", "type": "upsample", "scale_factor": 2},
      {"name": "uneven", "type": "interpolate", "size": [9, 5], "align_corners": true},
      {"name": "between", "type": "interpolate", "size": 18},
      {"name": "flat", "type": "flatten"}]})");
  Json said = json;
  said["layers"][1].erase("dilation");
  const Model model = model_from(json);
  EXPECT_EQ(describe(model), said);
  training_identity(model);  // it fits: 2 channels of (2 (2 4 + 1))^2
}

Json written_sequence() {
  return Json::parse(R"({"name": "m", "input": {"shape": [4], "type": "i32"}, "classes": 5,
    "labels": [4], "loss": "cross_entropy", "layers": [
      {"name": "words", "type": "embedding", "num_embeddings": 5, "embedding_dim": 6},
      {"type": "linear", "out_features": 18, "bias": false},
      {"type": "attention", "num_heads": 2},
      {"type": "linear", "out_features": 5, "tied": "words"}]})");
}

TEST(NetworkJson, KnowsWhatAttentionConsistsOf) {
  const Json json = Json::parse(R"({"name": "m", "input": {"shape": [4], "type": "i32"},
    "classes": 3, "loss": "cross_entropy", "layers": [
      {"name": "words", "type": "embedding", "num_embeddings": 5, "embedding_dim": 6},
      {"name": "h", "type": "gru", "hidden_size": 8},
      {"name": "scores", "type": "matmul", "transpose": true, "num_heads": 2, "scale": 0.5,
       "inputs": ["h", "h"]},
      {"name": "weights", "type": "softmax", "num_heads": 2, "causal": true},
      {"name": "y", "type": "matmul", "num_heads": 2, "inputs": ["weights", "h"]},
      {"name": "last", "type": "last_place"}, {"name": "plain", "type": "softmax"},
      {"name": "out", "type": "linear", "out_features": 3}]})");
  const Model model = model_from(json);
  EXPECT_EQ(describe(model), json);
  EXPECT_EQ(std::get<MatmulLayer>(model.layers[4].kind).scale, 1);
  training_identity(model);  // it fits
}

TEST(NetworkJson, TiesALayerByTheNameOfAnEmbedding) {
  Json json = written_sequence();
  const Model model = model_from(json);
  EXPECT_FALSE(std::get<LinearLayer>(model.layers[1].kind).has_bias);
  EXPECT_FALSE(std::get<AttentionLayer>(model.layers[2].kind).causal);
  const auto& last = std::get<LinearLayer>(model.layers[3].kind);
  EXPECT_EQ(last.tied, 0);
  EXPECT_FALSE(last.has_bias);
  EXPECT_EQ(describe(model)["layers"][3]["tied"], "words");
  EXPECT_EQ(describe(model_from(describe(model))), describe(model));
  EXPECT_FALSE(describe(model)["layers"][3].contains("bias"));
  const auto refused = [&](const char* to, const char* message) {
    json["layers"][3]["tied"] = to;
    EXPECT_THAT([&] { static_cast<void>(model_from(json)); },
                testing::ThrowsMessage<std::invalid_argument>(testing::StrEq(message)));
  };
  refused("input", "network 'm': layer 3 (linear): 'tied' is to be the name of a layer before it");
  refused("letters",
          "network 'm': layer 3 (linear): it reads 'letters', which is neither 'input' nor a layer "
          "before it");
}

TEST(NetworkJson, KnowsEachLoss) {
  for (const auto& [name, loss] : named_losses) {
    const Json json = describe(mlp("m", {2, 3, 2}, Activation::relu, loss));
    EXPECT_EQ(json["loss"], name);
    EXPECT_EQ(json.contains("outputs"), loss != LossFunction::cross_entropy);
    EXPECT_EQ(model_from(json).loss, loss);
    EXPECT_EQ(model_from(json).classes, 2);
  }
}

TEST(NetworkJson, KnowsEachActivation) {
  for (const auto& [name, activation] : named_activations) {
    const Json json = describe(mlp("m", {2, 3, 2}, activation));
    EXPECT_EQ(json["layers"][1]["type"], name);
    const Model read = model_from(json);
    if (activation == Activation::leaky_relu) {
      EXPECT_EQ(std::get<FunctionLayer<functions::LeakyRelu>>(read.layers[1].kind)
                    .function.negative_slope,
                0.01);
    } else {
      EXPECT_EQ(std::get<ActivationLayer>(read.layers[1].kind).activation, activation);
    }
  }
}

TEST(NetworkJson, KnowsStridesAndWhatIsSharedOrFrozen) {
  const Json json = Json::parse(R"({"name": "m", "input": {"shape": [4, 6], "type": "f32"},
    "classes": 2, "loss": "cross_entropy", "layers": [
      {"name": "every", "type": "as_strided", "shape": [1, 2, 6], "size": [4, 3],
       "stride": [6, 2], "storage_offset": 1},
      {"name": "row", "type": "flatten"},
      {"name": "a", "type": "linear", "out_features": 12, "requires_grad": false},
      {"name": "b", "type": "linear", "out_features": 12, "shared": "a"},
      {"name": "c", "type": "linear", "out_features": 2}]})");
  Json image = json;
  image["input"]["shape"] = {1, 4, 6};
  const Model model = model_from(image);
  EXPECT_EQ(describe(model), image);
  EXPECT_EQ(std::get<AsStridedLayer>(model.layers[0].kind).stride, (Shape{6, 2}));
  EXPECT_EQ(parameter_count(training_epoch(model, {.rows = 2, .batch = 2})), 12 * 13 + 2 * 13);
  const auto refused = [](const Json& network, const std::string& why) {
    EXPECT_THAT([&] { training_identity(model_from(network)); },
                testing::ThrowsMessage<std::invalid_argument>(testing::HasSubstr(why)));
  };
  refused(json, "every reads vectors, sequences or images");
  const auto changed = [&](const char* where, const Json& value) {
    Json other = image;
    other[Json::json_pointer(where)] = value;
    return other;
  };
  refused(changed("/layers/0/storage_offset", 2), "reads number 24 of a sample that has 24");
  refused(changed("/layers/0/stride", {2}), "has 1 strides for 2 sizes");
  refused(changed("/layers/0/stride", {6, -1}), "reads number -1 of a sample that has 24");
  refused(changed("/layers/0/stride", {6, "-1"}), "'stride' is to be");
  refused(changed("/layers/0/shape", {13}), "can't give 12 numbers as [13]");
  refused(changed("/layers/3/shared", "input"), "'shared' is to be the name of a layer before it");
  refused(changed("/layers/2/requires_grad", 0), "'requires_grad' is to be true or false");
  refused(changed("/layers/3/requires_grad", false),
          "b is not to be trained (requires_grad), and has no parameters of its own");
  refused(changed("/layers/4/shared", "a"),
          "c shares the parameters of a, which is no layer before it of the same type and sizes");
}

TEST(NetworkJson, KnowsFunctionsAndWhatPads) {
  const Json json = Json::parse(R"({"name": "m", "input": {"shape": [3, 4, 4], "type": "f32"},
    "classes": 2, "loss": "cross_entropy", "layers": [
      {"name": "a", "type": "affine", "scale": -0.5, "shift": 1},
      {"name": "b", "type": "pad", "left": 1, "right": -1, "top": 2, "bottom": -3, "front": 4,
       "back": -2},
      {"name": "c", "type": "elu", "alpha": 0.5}, {"name": "d", "type": "elu"},
      {"name": "e", "type": "leaky_relu", "negative_slope": 0.2},
      {"name": "f", "type": "hardtanh", "min_val": -2, "max_val": 0.5},
      {"name": "g", "type": "flatten"},
      {"name": "h", "type": "layer_norm", "bias": false},
      {"name": "i", "type": "rms_norm", "elementwise_affine": false},
      {"name": "out", "type": "linear", "out_features": 2}]})");
  EXPECT_EQ(describe(model_from(json)), json);
  training_identity(model_from(json));  // it fits
  const auto refused = [&](std::size_t layer, const char* key, const Json& value,
                           const char* message) {
    Json broken = json;
    broken["layers"][layer][key] = value;
    EXPECT_THAT([&] { training_identity(model_from(broken)); },
                testing::ThrowsMessage<std::invalid_argument>(testing::EndsWith(message)));
  };
  refused(0, "scale", "half", "layer 0 (affine): 'scale' is to be a number");
  refused(1, "left", 0.5, "layer 1 (pad): 'left' is to be a whole number");
  refused(1, "right", -4, "cuts off 4 of 4 columns");
  refused(4, "negative_slope", 0, "'negative_slope' is to be a number above 0");
  refused(5, "max_val", -2, "min_val is not below max_val");
  refused(8, "bias", false, "layer 8 (rms_norm): 'bias' is nothing that it has");
}

TEST(NetworkJson, SaysWhatIsWrongAndWhere) {
  const auto refused = [](const char* pointer, const Json& value, const char* message) {
    Json json = written();
    if (value.is_null()) {
      const Json::json_pointer at(pointer);
      json[at.parent_pointer()].erase(at.back());
    } else {
      json[Json::json_pointer(pointer)] = value;
    }
    EXPECT_THAT([&] { static_cast<void>(model_from(json)); },
                testing::ThrowsMessage<std::invalid_argument>(testing::StrEq(message)));
  };
  refused("/name", 3, "a network: 'name' is to be a text");
  refused("/layers", Json::array(), "network 'm': 'layers' is to be a list of one layer or more");
  refused("/layers", Json(most_layers_of_a_file + 1, Json{{"type", "relu"}}),
          "network 'm': 'layers' is to be a list of at most 10000 layers");
  refused("/layers/3/inputs", Json(most_layers_of_a_file + 1, "stem"),
          "network 'm': layer 3 (add): 'inputs' is to be a list of at most 10000 names");
  refused("/input/shape", Json(most_dimensions_of_a_file + 1, 1),
          "network 'm': 'input': 'shape' is to be a list of at most 8 sizes");
  refused("/loss", "l1", "network 'm': 'loss' is to be one of cross_entropy, mse, bce");
  refused("/loss", "mse", "network 'm': 'outputs' is missing");
  refused("/classes", 1,
          "network 'm': 'classes' is to be one of the whole numbers from 2 to 2147483648");
  refused("/clases", 3, "network 'm': 'clases' is nothing that it has");
  refused("/input/type", "f64", "network 'm': 'input': 'type' is to be f32, or i32 of tokens");
  refused("/input/shape", {0},
          "network 'm': 'input': 'shape' is to be a list of whole numbers from 1 to 2147483648");
  refused("/layers/0/kernel_size", nullptr,
          "network 'm': layer 0 (conv2d): 'kernel_size' is missing");
  refused("/layers/0/kernel_size", 2.5,
          "network 'm': layer 0 (conv2d): 'kernel_size' is to be one of the whole numbers from 1 "
          "to 2147483648, or two of them, [height, width]");
  for (const Json& bad :
       {Json::array({3}), Json::array({1, 2, 3}), Json::array({1, 0}), Json::array({1, "5"})}) {
    refused("/layers/0/kernel_size", bad,
            "network 'm': layer 0 (conv2d): 'kernel_size' is to be one of the whole numbers from 1 "
            "to 2147483648, or two of them, [height, width]");
  }
  refused("/layers/0/padding", {0, -1},
          "network 'm': layer 0 (conv2d): 'padding' is to be one of the whole numbers from 0 to "
          "2147483648, or two of them, [height, width]");
  refused("/layers/0/output_padding", 1,
          "network 'm': layer 0 (conv2d): 'output_padding' is nothing that it has");
  refused("/layers/2/name", "stem", "network 'm': layer 2 (conv2d): another has the name 'stem'");
  refused("/layers/3/inputs/1", "trunk",
          "network 'm': layer 3 (add): it reads 'trunk', which is neither 'input' nor a layer "
          "before it");
  refused("/layers/6/p", "half", "network 'm': layer 6 (dropout): 'p' is to be a number");
  refused("/layers/1/type", "mish",
          "network 'm': layer 1 (mish): no layer has this type; there are linear, leaky_relu, elu, "
          "softplus, sin, exp, log, sqrt, reciprocal, abs, hardtanh, affine, identity, relu, "
          "sigmoid, tanh, gelu, gelu_tanh, silu, relu6, hardswish, hardsigmoid, add, conv2d, "
          "max_pool2d, avg_pool2d, global_avg_pool2d, mean_over_time, batch_norm, dropout, "
          "embedding, position_embedding, layer_norm, rms_norm, attention, lstm, flatten, "
          "concatenate, to_sequence, multiply, class_token, first_place, last_place, slice, "
          "matmul, softmax, gru, conv_transpose2d, upsample, group_norm, to_image, pad, "
          "as_strided, interpolate");
}

}  // namespace
}  // namespace crossover::test
