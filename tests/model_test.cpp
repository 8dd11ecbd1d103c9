// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "crossover/catalogue.h"
#include "support.h"

namespace crossover::test {
namespace {

std::int64_t params(const std::string& name) {
  const Task task = find_model(name);
  return parameter_count(training_epoch(
      task.model, {.rows = task.rows, .batch = task.batch, .optimizer = task.optimizer}));
}

TEST(Catalogue, HasThePublishedParameterCounts) {
  const std::map<std::string, std::int64_t> published{
      {"disc-2", 22},          {"disc-3", 70},
      {"disc-4", 230},         {"disc-6", 2982},
      {"disc-8", 44710},       {"disc-10", 703142},
      {"disc-12", 11201190},   {"heart", 1522},
      {"fcn-r", 14205962},     {"alexnet-r", 89578},
      {"alexnet-s", 62378344}, {"resnet-56", 855770},
      {"resnet-50", 25557032}, {"lstm", 6182672},
      {"gpt-16", 5376},        {"gpt-32", 29600},
      {"gpt-64", 158336},      {"gpt-128", 809856},
      {"gpt-256", 3982336},    {"gpt-512", 18981376},
      {"lenet-5", 61706},      {"policy", 4610},
      {"surrogate", 3021},     {"matrix-4", 756},
      {"vit-ti", 5362378},     {"mobilenet-v2", 3504872},
      {"microgpt-16", 4192},   {"microgpt-512", 3181568},
  };
  for (const auto& [name, count] : published) {
    EXPECT_EQ(params(name), count) << name;
  }
  EXPECT_EQ(params("fcn-s"),
            26752LL * 2048 + 2048 + 2 * (2048LL * 2048 + 2048) + 2048LL * 26752 + 26752);
}

TEST(Catalogue, NamesAreUniqueAndFound) {
  std::set<std::string> seen;
  for (const Family& family : catalogue()) {
    for (const std::string& name : family.names) {
      EXPECT_TRUE(seen.insert(name).second) << name << " twice";
      EXPECT_EQ(find_model(name).model.name, name);
    }
  }
  EXPECT_EQ(seen.size(), 43U);
}

TEST(Catalogue, TrainsAsTheExperimentsDid) {
  const Task heart = find_model("heart");
  EXPECT_EQ(heart.rows, 709);
  EXPECT_EQ(heart.batch, 10);
  EXPECT_EQ(std::get<AdamWOptions>(heart.optimizer).learning_rate, 1e-3);
  EXPECT_EQ(std::get<AdamWOptions>(heart.optimizer).weight_decay, 1e-4);
  const Task disc = find_model("disc-10");
  EXPECT_EQ(disc.rows, 1000);
  EXPECT_EQ(disc.batch, 100);
  EXPECT_EQ(std::get<SgdOptions>(disc.optimizer).learning_rate, 0.1);
  EXPECT_EQ(find_model("fcn-r").rows, 4 * 1024);
  for (const char* name : {"policy", "surrogate", "matrix-4", "lenet-5"}) {
    EXPECT_EQ(std::get<AdamWOptions>(find_model(name).optimizer).weight_decay, 0) << name;
  }
  EXPECT_EQ(find_model("fcn-s").rows, 4 * 64);
}

std::string refusal_of_name(const std::string& name) {
  return message_of<std::invalid_argument>([&] { static_cast<void>(find_model(name)); });
}

TEST(Catalogue, ListsTheNamesWhereOneIsUnknown) {
  const std::string what = refusal_of_name("disc-13");
  EXPECT_TRUE(what.starts_with("there is no network 'disc-13'; choose one of disc-2, ")) << what;
  EXPECT_NE(what.find("fcn-s"), std::string::npos);
}

std::vector<std::int64_t> hidden_widths(const std::string& name) {
  std::vector<std::int64_t> widths;
  for (const Layer& layer : find_model(name).model.layers) {
    if (const auto* linear = std::get_if<LinearLayer>(&layer.kind)) {
      widths.push_back(linear->out_features);
    }
  }
  widths.pop_back();
  return widths;
}

TEST(Disc, HasWidthsInBetween) {
  EXPECT_EQ(hidden_widths("disc-4x1.5"), (std::vector<std::int64_t>{6, 12, 24}));
  EXPECT_EQ(hidden_widths("disc-4x1.0625"), (std::vector<std::int64_t>{4, 9, 17}));
  EXPECT_EQ(hidden_widths("disc-2x3.25"), (std::vector<std::int64_t>{13}));
  EXPECT_EQ(hidden_widths("disc-3x2"), (std::vector<std::int64_t>{8, 16}));
  const Task task = find_model("disc-8x1.5");
  EXPECT_EQ(task.model.name, "disc-8x1.5");
  EXPECT_EQ(task.model.sample, find_model("disc-8").model.sample);
  EXPECT_EQ(task.batch, 100);
}

TEST(Disc, RefusesWhatIsNoFactorWithASentence) {
  for (const std::string name : {"disc-8x",
                                 "disc-8x1",
                                 "disc-8x0.5",
                                 "disc-8x4",
                                 "disc-8x1.50",
                                 "disc-8x1.",
                                 "disc-8x.5",
                                 "disc-8x1.00001",
                                 "disc-8x-1.5",
                                 "disc-8x1.5x1.5",
                                 "disc-8x1,5",
                                 "disc-8x1e1",
                                 "disc-8xinf",
                                 "disc-08x1.5",
                                 "disc-13x1.5",
                                 "disc-1x1.5",
                                 "disc-x1.5",
                                 "disc-8x01.5",
                                 "disc-8x+1.5",
                                 "disc-8x1.5 ",
                                 "disc-99999999999999999999x1.5",
                                 "disc-8x99999999999999999999"}) {
    const std::string what = refusal_of_name(name);
    EXPECT_TRUE(what.starts_with("there is no network '" + name + "'; disc-LxF")) << what;
    EXPECT_NE(what.find("disc-8x1.5"), std::string::npos) << what;
  }
}

TEST(Disc, SizesAreWhatTheirNamesTrain) {
  const std::vector<LadderSize>& sizes = disc_sizes();
  EXPECT_EQ(sizes.front().name, "disc-2");
  EXPECT_EQ(sizes.back().name, "disc-12");
  std::set<std::string> names;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_TRUE(names.insert(sizes[i].name).second) << sizes[i].name;
    if (i > 0) {
      EXPECT_GT(sizes[i].parameters, sizes[i - 1].parameters) << sizes[i].name;
    }
    if (i % 8 == 0) {
      EXPECT_EQ(params(sizes[i].name), sizes[i].parameters) << sizes[i].name;
    }
  }
  for (const std::string& name : disc_family().names) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Disc, IsWithinATenthOfAnyNumberOfParameters) {
  const std::vector<LadderSize>& sizes = disc_sizes();
  const auto expect_near = [](std::int64_t wanted) {
    const std::int64_t found = nearest_disc(wanted).parameters;
    EXPECT_LE(10 * std::abs(found - wanted), wanted) << wanted << " gives " << found;
  };
  for (std::size_t i = 1; i < sizes.size(); ++i) {  // the worst lies in the middle
    const std::int64_t middle = (sizes[i - 1].parameters + sizes[i].parameters) / 2;
    expect_near(middle);
    expect_near(middle + 1);
  }
  EXPECT_EQ(nearest_disc(44710).name, "disc-8");
  EXPECT_EQ(nearest_disc(100000).name, "disc-8x1.5");
  EXPECT_EQ(nearest_disc(1).name, "disc-2");
  EXPECT_EQ(nearest_disc(std::int64_t{1} << 40).name, "disc-12");
}

TEST(Mlp, RefusesWidthsThatMakeNoNetwork) {
  EXPECT_THROW(mlp("m", {4}, Activation::relu), std::invalid_argument);
  EXPECT_THROW(mlp("m", {4, 0, 2}, Activation::relu), std::invalid_argument);
  EXPECT_THROW(mlp("m", {4, 1}, Activation::relu), std::invalid_argument);
}

}  // namespace
}  // namespace crossover::test
