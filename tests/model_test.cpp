// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "crossover/catalogue.h"

namespace crossover::test {
namespace {

std::int64_t params(const std::string& name) {
  const Task task = find_model(name);
  return parameter_count(training_epoch(
      task.model, {.rows = task.rows, .batch = task.batch, .optimizer = task.optimizer}));
}

TEST(Catalogue, HasThePublishedParameterCounts) {
  const std::map<std::string, std::int64_t> published{
      {"disc-2", 22},          {"disc-3", 70},       {"disc-4", 230},         {"disc-6", 2982},
      {"disc-8", 44710},       {"disc-10", 703142},  {"disc-12", 11201190},   {"heart", 1522},
      {"fcn-r", 14205962},     {"alexnet-r", 89578}, {"alexnet-s", 62378344}, {"resnet-56", 855770},
      {"resnet-50", 25557032}, {"lstm", 6182672},
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
  EXPECT_EQ(seen.size(), 19U);
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
  EXPECT_EQ(find_model("fcn-s").rows, 4 * 64);
}

TEST(Catalogue, ListsTheNamesWhereOneIsUnknown) {
  try {
    static_cast<void>(find_model("disc-13"));
    FAIL() << "found";
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with("there is no network 'disc-13'; choose one of disc-2, ")) << what;
    EXPECT_NE(what.find("fcn-s"), std::string::npos);
  }
}

TEST(Mlp, RefusesWidthsThatMakeNoNetwork) {
  EXPECT_THROW(mlp("m", {4}, Activation::relu), std::invalid_argument);
  EXPECT_THROW(mlp("m", {4, 0, 2}, Activation::relu), std::invalid_argument);
  EXPECT_THROW(mlp("m", {4, 1}, Activation::relu), std::invalid_argument);
}

}  // namespace
}  // namespace crossover::test
