// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "crossover/catalogue.h"
#include "crossover/dataset.h"
#include "crossover/random.h"
#include "support.h"

namespace crossover::test {

// ---- Data test

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

// ---- Csv test

namespace {

class Csv : public testing::Test {
 protected:
  void SetUp() override {
    // Tests run side by side: each process its own file.
    path_ = std::filesystem::temp_directory_path() / ("crossover-csv-" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  /// Two features and a label of three classes.
  Dataset read(const std::string& text) {
    write(text);
    return read_csv(path_, 2, 3);
  }

  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  std::string error(const std::string& text) {
    const std::string what = message_of<std::runtime_error>([&] { read(text); });
    const std::string start = path_.string();
    return what.starts_with(start) ? what.substr(start.size()) : what;
  }

  std::filesystem::path path_;
};

TEST_F(Csv, ReadsNumbersAndLabels) {
  const Dataset data = read("1.5,-2e-3,0\n+3,.5,2\n");
  EXPECT_EQ(data.rows, 2);
  EXPECT_EQ(data.inputs, (std::vector<double>{1.5, -2e-3, 3, 0.5}));
  EXPECT_EQ(data.labels, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(read("1e-400,2,0\n").inputs, (std::vector<double>{0, 2}));
}

TEST_F(Csv, AcceptsHeaderByteOrderMarkCrLfQuotesAndBlankEnd) {
  const std::vector<std::string> same{"1,2,0\n3,4,1\n", "a,b,label\n1,2,0\n3,4,1",
                                      "\xEF\xBB\xBFx,y,z\r\n1,2,0\r\n3,4,1\r\n", "1,2,0\r3,4,1\r",
                                      "\"1\",\"2\",\"0\"\n 3 ,\t4,1.0\n\n  \n\r\n"};
  for (const std::string& text : same) {
    const Dataset data = read(text);
    EXPECT_EQ(data.inputs, (std::vector<double>{1, 2, 3, 4})) << text;
    EXPECT_EQ(data.labels, (std::vector<std::int32_t>{0, 1})) << text;
  }
}

TEST_F(Csv, NamesRowAndColumn) {
  EXPECT_EQ(error("1,2,0\n3,oops,1\n"), ": row 2 column 2 is not a number: 'oops'");
  EXPECT_EQ(error("1,2,0\n+-3,4,1\n"), ": row 2 column 1 is not a number: '+-3'");
  EXPECT_EQ(error("1,2,0\n3,,1\n"), ": row 2 column 2 is empty");
  EXPECT_EQ(error("1,2,0\nnan,4,1\n"), ": row 2 column 1 is not finite: 'nan'");
  EXPECT_EQ(error("1,2,0\n3,-inf,1\n"), ": row 2 column 2 is not finite: '-inf'");
  EXPECT_EQ(error("1,2,0\n3,1e999,1\n"), ": row 2 column 2 is not finite: '1e999'");
  EXPECT_EQ(error("1,2,0\n3,1e300,1\n"),
            ": row 2 column 2 is too large for single precision: '1e300'");
  EXPECT_EQ(error("1,2,0\n3,4\n"), ": row 2 has 2 columns, not 3 (2 features and the label)");
  EXPECT_EQ(error("1,2,0\n3,4,5,6\n"), ": row 2 has 4 columns, not 3 (2 features and the label)");
  EXPECT_EQ(error("1,2,3\n"),
            ": row 1 column 3 is not a label: '3'; labels are whole numbers from 0 to 2");
  EXPECT_EQ(error("1,2,-1\n"),
            ": row 1 column 3 is not a label: '-1'; labels are whole numbers from 0 to 2");
  EXPECT_EQ(error("1,2,0.5\n"),
            ": row 1 column 3 is not a label: '0.5'; labels are whole numbers from 0 to 2");
  EXPECT_EQ(error("1,2,0\n\n3,4,1\n"), ": row 2 is blank; blank rows are allowed only at the end");
  EXPECT_EQ(error("1,2,0\n\"\"\n"), ": row 2 has 1 column, not 3 (2 features and the label)");
}

TEST_F(Csv, ACommaInQuotesDividesNothing) {
  EXPECT_EQ(read("\"width, cm\",b,\"say \"\"label\"\"\"\n1,2,0\n").inputs,
            (std::vector<double>{1, 2}));
  EXPECT_EQ(
      error("1,2,0\n\"Doe, John\",2,0\n"),
      ": row 2 column 1 is not a number: 'Doe, John'; if it is the label, move it to the last "
      "column");
  EXPECT_EQ(error("1,\"2,0\n"), ": row 1 has quotes that do not end in it; a cell is of one line");
}

TEST_F(Csv, SaysWhatLabelsAre) {
  EXPECT_EQ(error("a,b,c\n1,2,setosa\n"),
            ": row 2 column 3 is not a label: 'setosa'; labels are whole numbers: write 0, 1, ... "
            "for the names of classes");
}

TEST_F(Csv, NamesAnotherFormat) {
  EXPECT_EQ(error("\xFF\xFE"
                  "1"),
            " is text in UTF-16; save it in UTF-8 (in Excel: \"CSV UTF-8\")");
  EXPECT_EQ(error("\x1F\x8B\x08"), " is compressed by gzip; unpack it: gunzip");
  EXPECT_EQ(error("PK\x03\x04"),
            " is a ZIP archive, as tables of Excel are; unpack it, or save the table as CSV");
}

TEST_F(Csv, DoubtsAnIndexAndLabelsFromOne) {
  write(",x,label\n0,5,1\n1,6,2\n");
  const std::vector<std::string> doubts = doubts_about_csv(path_);
  ASSERT_EQ(doubts.size(), 2U);
  EXPECT_NE(doubts[0].find("an index of pandas"), std::string::npos);
  EXPECT_NE(doubts[1].find("class 0 never occurs"), std::string::npos);
  write("x,label\n5,0\n6,1\n");
  EXPECT_TRUE(doubts_about_csv(path_).empty());
}

TEST_F(Csv, TellsItsShape) {
  write("a,b,label\n1,2,0\n3,4,4\n");
  const CsvShape shape = shape_of_csv(path_);
  EXPECT_EQ(shape.features, 2);
  EXPECT_EQ(shape.classes, 5);
  write("1,2,0\n3,4,0\n");
  EXPECT_THROW(static_cast<void>(shape_of_csv(path_)), std::runtime_error);
  write("1\n2\n");
  EXPECT_THROW(static_cast<void>(shape_of_csv(path_)), std::runtime_error);
}

TEST_F(Csv, TakesAFirstLineWithANumberForData) {
  EXPECT_EQ(error("1,oops,0\n"), ": row 1 column 2 is not a number: 'oops'");
}

TEST_F(Csv, ShortensHostileCells) {
  EXPECT_EQ(error("1,2,0\n1,\x1b[31m" + std::string(1000, 'x') + ",0\n"),
            ": row 2 column 2 is not a number: '?[31m" + std::string(35, 'x') + "…'");
  EXPECT_EQ(error("1,2,0\n1,\x7f,0\n"), ": row 2 column 2 is not a number: '?'");
}

TEST_F(Csv, RefusesWhatHoldsNothing) {
  EXPECT_EQ(error(""), " holds no rows of data");
  EXPECT_EQ(error("\n\n"), " holds no rows of data");
  EXPECT_EQ(error("a,b,c\n"), " holds no rows of data");
  EXPECT_THROW(read_csv("/no/such/file.csv", 2, 3), std::runtime_error);
  EXPECT_THROW(read_csv(std::filesystem::temp_directory_path(), 2, 3), std::runtime_error);
}

}  // namespace

}  // namespace crossover::test
