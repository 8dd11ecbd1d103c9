// SPDX-License-Identifier: Apache-2.0
#include "crossover/network_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "crossover/fingerprint.h"

namespace crossover::test {
namespace {

using Json = nlohmann::ordered_json;
using testing::StrEq;
using testing::ThrowsMessage;

std::uint64_t trained(const Task& task) {
  return fingerprint(training_epoch(
      task.model, {.rows = task.batch, .batch = task.batch, .optimizer = task.optimizer}));
}

Json small_network_json() {
  return Json::parse(R"({"name": "small", "input": {"shape": [1, 8, 8], "type": "f32"},
    "classes": 2, "loss": "cross_entropy", "layers": [
      {"name": "stem", "type": "conv2d", "out_channels": 4, "kernel_size": 3, "padding": 1},
      {"type": "relu"},
      {"type": "conv2d", "out_channels": 4, "kernel_size": 1},
      {"type": "add", "inputs": ["layer 2", "stem"]},
      {"type": "global_avg_pool2d"},
      {"name": "hidden", "type": "linear", "out_features": 5},
      {"name": "head", "type": "linear", "out_features": 2},
      {"type": "dropout", "p": 0.5}]})");
}

std::string written(const std::string& text) {
  std::string path = testing::TempDir() + "network." + std::to_string(getpid()) + ".json";
  std::ofstream(path) << text;
  return path;
}

TEST(NetworkFile, OfEachNetworkOfTheCatalogueTrainsTheSame) {
  for (const Family& family : catalogue()) {
    for (const std::string& name : family.names) {
      const Task task = find_model(name);
      const Task read = task_from(Json::parse(describe(task).dump()));
      EXPECT_EQ(describe(read), describe(task)) << name;
      EXPECT_EQ(trained(read), trained(task)) << name;
      EXPECT_EQ(read.rows, task.rows) << name;
    }
  }
}

TEST(NetworkFile, WithoutATrainingHasOneThatStaysFinite) {
  const Task task = task_from(small_network_json());
  EXPECT_EQ(task.batch, 32);
  EXPECT_EQ(task.rows, 320);
  EXPECT_EQ(std::get<SgdOptions>(task.optimizer).learning_rate, 0.01);
  EXPECT_EQ(task.generate(3).inputs.size(), 3 * 64U);
}

TEST(NetworkFile, OfBatchNormsIsTrainedMoreSlowly) {
  Json json = small_network_json();
  json["layers"][1]["type"] = "batch_norm";
  EXPECT_EQ(std::get<SgdOptions>(task_from(json).optimizer).learning_rate, 0.001);
}

TEST(NetworkFile, IsScaledByItsInnerWidths) {
  const Json scaled = describe(read_network(written(small_network_json().dump()), 0.5));
  EXPECT_EQ(scaled["name"], "smallx0.5");
  EXPECT_EQ(scaled["layers"][0]["out_channels"], 2);
  EXPECT_EQ(scaled["layers"][2]["out_channels"], 2);
  EXPECT_EQ(scaled["layers"][5]["out_features"], 3);  // 2.5, away from zero
  EXPECT_EQ(scaled["layers"][6]["out_features"], 2);  // before the output
  EXPECT_EQ(describe(read_network(written(small_network_json().dump()),
                                  0.001))["layers"][0]["out_channels"],
            1);
}

TEST(NetworkFile, ScalesPartsOfWhatItScales) {
  const Json json = Json::parse(R"({"name": "small", "input": {"shape": [8], "type": "f32"},
    "classes": 2, "loss": "cross_entropy", "layers": [
      {"name": "own", "type": "slice", "from": 2, "to": 8},
      {"type": "linear", "out_features": 8}, {"name": "wide", "type": "relu"},
      {"name": "a", "type": "slice", "to": 4},
      {"name": "b", "type": "slice", "from": 4, "to": 8, "inputs": ["wide"]},
      {"type": "multiply", "inputs": ["a", "b"]},
      {"type": "linear", "out_features": 2}]})");
  const Json scaled = describe(read_network(written(json.dump()), 0.5));
  EXPECT_EQ(scaled["layers"][0], json["layers"][0]);  // of the input
  EXPECT_EQ(scaled["layers"][3]["to"], 2);
  EXPECT_EQ(scaled["layers"][4]["from"], 2);
  EXPECT_EQ(scaled["layers"][4]["to"], 4);
}

TEST(NetworkFile, ScalesChannelsOfZerosAsThoseOfConvolutions) {
  const Json json = Json::parse(R"({"name": "small", "input": {"shape": [2, 4, 4], "type": "f32"},
    "classes": 2, "loss": "cross_entropy", "layers": [
      {"name": "stem", "type": "conv2d", "out_channels": 4, "kernel_size": 1},
      {"name": "wider", "type": "pad", "front": 2, "back": 2, "right": 1},
      {"type": "conv2d", "out_channels": 8, "kernel_size": 2, "padding": [1, 1],
       "inputs": ["stem"]},
      {"type": "pad", "top": -1},
      {"type": "add", "inputs": ["wider", "layer 3"]},
      {"type": "global_avg_pool2d"}, {"type": "linear", "out_features": 2}]})");
  const Json scaled = describe(read_network(written(json.dump()), 0.5));
  EXPECT_EQ(scaled["layers"][1]["front"], 1);
  EXPECT_EQ(scaled["layers"][1]["right"], 1);
  EXPECT_EQ(scaled["layers"][3], (Json{{"name", "layer 3"}, {"type", "pad"}, {"top", -1}}));
}

TEST(NetworkFile, KeepsADepthwiseConvolutionDepthwise) {
  Json json = small_network_json();
  json["layers"][2]["groups"] = 4;
  const Json scaled = describe(read_network(written(json.dump()), 2));
  EXPECT_EQ(scaled["layers"][2]["out_channels"], 8);
  EXPECT_EQ(scaled["layers"][2]["groups"], 8);
}

TEST(NetworkFile, SaysWhatIsWrongAndWhere) {
  const auto refused = [](const std::string& text, const std::string& message) {
    const std::string path = written(text);
    EXPECT_THAT([&] { static_cast<void>(read_network(path)); },
                ThrowsMessage<std::invalid_argument>(testing::StartsWith(path + ": " + message)));
  };
  const auto with = [](const char* pointer, const Json& value) {
    Json json = small_network_json();
    json[Json::json_pointer(pointer)] = value;
    return json.dump();
  };
  refused("{", "it is no JSON: parse error at line 1, column 2: ");
  refused(with("/name", "a/b"), "network 'a/b': its 'name' is to be of letters, digits, ");
  refused(with("/training", {{"optimizer", "rmsprop"}}),
          "network 'small': 'training': 'optimizer' is to be one of sgd, momentum, adam, adamw");
  refused(with("/training", {{"optimizer", "sgd"}, {"learning_rate", -1}}),
          "network 'small': 'training': 'learning_rate' is to be a number from 0");
  refused(with("/training", {{"weight_decay", 0.1}}),
          "network 'small': 'training': 'weight_decay' is nothing that it has");
  refused(with("/layers/0/out_channels", 3), "model 'small': layer 3 ");
  refused(with("/layers/0/kernel_size", 11),
          "model 'small': stem has a window of 11 with padding 1, larger than the image of 8 x 8");
  refused(with("/layers/2/groups", 3),
          "model 'small': layer 2 has 3 groups, which must divide its 4 input and 4 output "
          "channels");
  refused(with("/layers/5/out_features", 2147483648),
          "network 'small': it has 15032385598 parameters; a network of a file has at most ");
  refused(with("/layers", Json::parse(R"([{"type": "flatten"}, {"type": "slice", "to": 2}])")),
          "network 'small': none of its layers has parameters, so there is nothing to train");
  EXPECT_THAT([] { static_cast<void>(read_network("/nowhere/net.json")); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("/nowhere/net.json: there is no file of this name")));
}

}  // namespace
}  // namespace crossover::test
