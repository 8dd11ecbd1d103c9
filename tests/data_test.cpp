// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "crossover/catalogue.h"
#include "crossover/dataset.h"
#include "crossover/random.h"
#include "support.h"

namespace crossover::test {
namespace {

TEST(Uniform, MatchesAnIndependentImplementation) {
  // From the definition evaluated in Python's big integers.
  EXPECT_EQ(uniform(Stream::parameters, 0), 4589884.0 / 16777216.0);
  EXPECT_EQ(uniform(Stream::inputs, 1), 7407740.0 / 16777216.0);
  EXPECT_EQ(uniform(Stream::labels, 1000000), 245128.0 / 16777216.0);
}

TEST(DiscPoints, AreStandardizedTogether) {
  const Dataset data = disc_points(1000);
  const double mean = std::accumulate(data.inputs.begin(), data.inputs.end(), 0.0) / 2000;
  EXPECT_NEAR(mean, 0, 1e-12);
  const double inside =
      std::accumulate(data.labels.begin(), data.labels.end(), 0.0) / static_cast<double>(data.rows);
  EXPECT_NEAR(inside, 0.125, 0.03);  // the area of the quarter disc
}

TEST(UniformRows, KeepTheirFirstRowsWhenThereAreMore) {
  const Dataset few = uniform_rows({3}, 5, 4);
  const Dataset many = uniform_rows({3}, 50, 4);
  EXPECT_TRUE(std::equal(few.inputs.begin(), few.inputs.end(), many.inputs.begin()));
  EXPECT_TRUE(std::equal(few.labels.begin(), few.labels.end(), many.labels.begin()));
  EXPECT_EQ(*std::max_element(many.labels.begin(), many.labels.end()), 3);
}

TEST(UniformRows, MayLabelPlaces) {
  const Dataset data = uniform_rows({3, 2, 2}, 5, 4, {4});
  EXPECT_EQ(data.inputs, uniform_rows({3, 2, 2}, 5, 4).inputs);
  EXPECT_EQ(data.labels, uniform_rows({1}, 5 * 4, 4).labels);
}

TEST(UniformTargets, AreDrawnRowByRow) {
  const Dataset data = uniform_targets({3}, 4, 2, false);
  EXPECT_EQ(data.inputs, uniform_rows({3}, 4, 2).inputs);
  EXPECT_TRUE(data.labels.empty());
  ASSERT_EQ(data.targets.size(), 8U);
  EXPECT_EQ(data.targets[5], 2 * uniform(Stream::labels, 5) - 1);
  const Dataset binary = uniform_targets({3}, 4, 2, true);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(binary.targets[i], data.targets[i] < 0 ? 0 : 1);
  }
}

TEST(UniformTokens, AreDrawnTimeStepByTimeStep) {
  const std::vector<std::int64_t> of{50, 7, 90};
  const std::vector<double> tokens = uniform_tokens(Stream::inputs, of, 2);
  ASSERT_EQ(tokens.size(), 6U);
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t t = 0; t < 3; ++t) {
      const double drawn = static_cast<double>(of[t]) * uniform(Stream::inputs, 2 * t + row);
      EXPECT_EQ(tokens[3 * row + t], std::floor(drawn));
    }
  }
}

TEST(UniformData, HasNoTokenThatAnEmbeddingLacks) {
  Model model{.name = "m", .sample = {5}, .sample_type = Type::i32, .classes = 90, .layers = {}};
  const Value part = model.add(SliceLayer{.from = 1, .to = 5}, {0});
  model.add(EmbeddingLayer{40, 2}, {model.add(SliceLayer{.to = 3}, {part})});
  model.add(EmbeddingLayer{7, 2}, {model.add(SliceLayer{.from = 2, .to = 3}, {part})});
  EXPECT_EQ(vocabularies(model), (std::vector<std::int64_t>{90, 40, 40, 7, 90}));
  const Dataset data = uniform_data(model, 50);
  EXPECT_EQ(data.inputs, uniform_tokens(Stream::inputs, vocabularies(model), 50));
  EXPECT_EQ(data.labels, uniform_rows({5}, 50, 90).labels);  // one a sample
  model.loss = LossFunction::bce;
  EXPECT_EQ(uniform_data(model, 50).targets.size(), 50 * 90U);
  EXPECT_EQ(uniform_data(model, 50).inputs, data.inputs);
}

TEST(UniformSentences, AreDrawnRowByRow) {
  const Dataset data = uniform_sentences(3, 2, 50);
  EXPECT_EQ(data.source, "uniform sentences");
  for (std::size_t place = 0; place < 6; ++place) {
    EXPECT_EQ(data.inputs.at(place), std::floor(50 * uniform(Stream::inputs, place)));
    EXPECT_EQ(data.labels.at(place), std::floor(50 * uniform(Stream::labels, place)));
  }
}

TEST(StartValues, CountThePlacesOfConstants) {
  Model model{.name = "m", .sample = {3, 4, 4}, .classes = 2, .layers = {}};
  const Value normal = model.add(BatchNormLayer{}, {0});
  model.add(LinearLayer{2}, {model.add(GlobalAveragePoolLayer{}, {normal})});
  const Workload workload = training_epoch(model, {.rows = 5, .batch = 5, .optimizer = {}});
  const auto parameters = tensors_of(workload, Role::parameter);
  for (const auto& [place, value] : {std::pair(0U, 1.0), std::pair(1U, 0.0)}) {
    const StartValues constants(workload, parameters[place]);
    EXPECT_EQ(constants.size(), 3U);
    EXPECT_EQ(constants[0], value);
    EXPECT_EQ(constants[2], value);
  }
  EXPECT_DOUBLE_EQ(StartValues(workload, parameters[2])[0],
                   (2 * uniform(Stream::parameters, 6) - 1) / std::sqrt(3.0));
}

TEST(StartValues, RunThroughAllParametersInOrder) {
  const Workload workload = training_epoch(mlp("m", {4, 3, 2}, Activation::relu),
                                           {.rows = 5, .batch = 5, .optimizer = {}});
  const auto parameters = tensors_of(workload, Role::parameter);
  const StartValues weight(workload, parameters[0]);
  const StartValues bias(workload, parameters[1]);
  EXPECT_EQ(weight[0], (2 * uniform(Stream::parameters, 0) - 1) / 2);  // fan-in 4
  EXPECT_EQ(bias[0], (2 * uniform(Stream::parameters, 12) - 1) / 2);
}

}  // namespace
}  // namespace crossover::test
