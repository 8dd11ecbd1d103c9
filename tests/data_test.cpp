// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
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
    return without_path(message_of<std::runtime_error>([&] { read(text); }));
  }

  [[nodiscard]] std::vector<std::string> doubts(std::int64_t features, std::int64_t classes) const {
    std::vector<std::string> all = doubts_about_csv(path_, {features, classes});
    std::ranges::transform(all, all.begin(), [&](const auto& one) { return without_path(one); });
    return all;
  }

  [[nodiscard]] std::string without_path(const std::string& text) const {
    const std::string start = path_.string();
    return text.starts_with(start) ? text.substr(start.size()) : text;
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
                                      "\"1\",\"2\",\"0\"\n 3 ,\"4\",1.0\n\n  \n\r\n"};
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
  EXPECT_EQ(
      error("1,2,0.5\n"),
      ": row 1 column 3 is not a label: '0.5'; labels are whole numbers (for a quantity, leave "
      "--data out: --loss-function=mse trains on generated rows)");
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

TEST_F(Csv, ReadsAHeaderOfNumbersAndSaysSo) {
  const std::string rows = "5,6,0\n7,5,1\n3,8,1\n";
  const std::vector<std::pair<std::string, std::string>> headers{
      {"0,1,2\n", ": row 1 is read as a header: it counts the columns"},
      {"2019,2020,2021\n", ": row 1 is read as a header: it counts the columns"},
      {"\"7\",\"0\",\"1\"\n",
       ": row 1 is read as a header: its numbers are in quotes and those below are not"}};
  for (const auto& [header, said] : headers) {
    EXPECT_EQ(read(header + rows).inputs, (std::vector<double>{5, 6, 7, 5, 3, 8})) << header;
    EXPECT_EQ(read(header + rows).labels, (std::vector<std::int32_t>{0, 1, 1})) << header;
    EXPECT_EQ(doubts(2, 2), std::vector{said});
  }
  EXPECT_EQ(read("x,y,label\n0,1,2\n5,6,0\n").inputs, (std::vector<double>{0, 1, 5, 6}));
  EXPECT_EQ(read("1,2,3\n\"4\",5,0\n6,7,0\n").rows, 2);
  write("9,8,7\n" + rows);
  EXPECT_EQ(doubts(2, 3).size(), 1U);  // of the labels alone
  const std::string asks =
      ", so it may be a header or data; delete it if it is a header, else put a header of names "
      "above it";
  EXPECT_EQ(error("0,1,2\n5,6,0\n7,5,2\n"), ": row 1 counts the columns (0 to 2)" + asks);
  write("0,1\n1,0\n");
  EXPECT_NE(message_of<std::runtime_error>([&] { shape_of_csv(path_); }).find(asks),
            std::string::npos);
  write("5,6\n1,0\n");  // as good a row as any
  EXPECT_EQ(shape_of_csv(path_).features, 1);
}

TEST_F(Csv, DoubtsWhatPandasAdds) {
  const std::string index =
      ", as an index of pandas; it is read as a feature (to_csv(..., index=False) leaves it out)";
  write(",x,label\n3,5,0\n1,6,2\n");
  EXPECT_EQ(doubts(2, 3), std::vector{": column 1 has no name" + index});
  write(",0,1\n3,5,0\n1,6,1\n");
  EXPECT_EQ(doubts(2, 2),
            (std::vector<std::string>{": row 1 is read as a header: it counts the columns",
                                      ": column 1 has no name" + index}));
  write("x,Unnamed: 0,label\n3,5,0\n1,6,1\n");
  EXPECT_EQ(doubts(2, 2), std::vector{": column 2 is 'Unnamed: 0'" + index});
  write("4,0,1\n3,1,0\n9,2,1\n");
  EXPECT_EQ(doubts(2, 2), std::vector{": column 2 counts the rows" + index});
  write("x,label\n5,0\n6,1\n8,1\n");
  EXPECT_TRUE(doubts(1, 2).empty());
}

TEST_F(Csv, NumbersLabelsWhereThereAreAsManyAsClasses) {
  write("1,2,0\n9,4,2000000\n5,6,1000000\n7,2,0\n");
  EXPECT_EQ(shape_of_csv(path_).classes, 3);
  EXPECT_EQ(read_csv(path_, 2, 3).labels, (std::vector<std::int32_t>{0, 2, 1, 0}));
  EXPECT_EQ(doubts(2, 3), std::vector<std::string>{": its 3 different labels, from 0 to 2000000, "
                                                   "are read as the classes 0 to 2"});
  EXPECT_EQ(read_csv(path_, 2, 2000001).labels,
            (std::vector<std::int32_t>{0, 2000000, 1000000, 0}));
  write("1,2,-1\n9,4,1\n");
  EXPECT_EQ(read_csv(path_, 2, 2).labels, (std::vector<std::int32_t>{0, 1}));
  write("1,2,1\n9,4,2\n");
  EXPECT_EQ(read_csv(path_, 2, 3).labels, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(doubts(2, 3),
            std::vector<std::string>{": class 0 never occurs; labels are counted from 0"});
  EXPECT_EQ(error("a,b,c\n1,2,0\n9,4,7\n"),
            ": row 3 column 3 is not a label: '7'; labels are whole numbers from 0 to 2");
  EXPECT_EQ(error("1,2,1e17\n"), ": row 1 column 3 is not a label: '1e17'; labels are below 2^53");
}

TEST_F(Csv, DoubtsLabelsThatCount) {
  std::string rows;
  for (int i = 0; i < 19; ++i) {
    rows += std::to_string(i * i % 7) + ",5," + std::to_string(i % 2) + "\n";
  }
  write(rows + "1,2,2\n");
  ASSERT_EQ(doubts(2, 3).size(), 1U);
  EXPECT_NE(doubts(2, 3)[0].find(": 1 of the 3 labels stand in one row alone"), std::string::npos);
  write(rows + "1,2,1\n");
  EXPECT_TRUE(doubts(2, 2).empty());
}

TEST_F(Csv, TellsItsShape) {
  write("a,b,label\n1,2,0\n3,4,4\n");
  const CsvShape shape = shape_of_csv(path_);
  EXPECT_EQ(shape.features, 2);
  EXPECT_EQ(shape.classes, 2);
  write("1,2,0\n3,4,0\n");
  EXPECT_THROW(static_cast<void>(shape_of_csv(path_)), std::runtime_error);
  write("1\n2\n");
  EXPECT_THROW(static_cast<void>(shape_of_csv(path_)), std::runtime_error);
}

TEST_F(Csv, AsksWhetherAFirstLineWithNumbersIsAHeader) {
  EXPECT_EQ(error("a,2026,c\n1,2,0\n"),
            ": row 1 column 1 is not a number: 'a'; if row 1 is a header, delete it: it has "
            "numbers, too");
}

TEST_F(Csv, NamesWhatElseDividesColumns) {
  const std::string start = ": row 1 has 1 column, not 3 (2 features and the label); ";
  EXPECT_EQ(error("1\t2\t0\n"), start + "commas separate columns, not tabs");
  EXPECT_EQ(error(" 1 2 0 \n"), start + "commas separate columns, not spaces");
  EXPECT_EQ(error("1|2|0\n"), start + "commas separate columns, not bars (|)");
  EXPECT_EQ(error("a;b;c\n"), start + "commas separate columns, not semicolons");
  EXPECT_EQ(error("1,5;2,5;0\n"),
            ": row 1 column 2 is not a number: '5;2'; commas separate columns, not semicolons");
  EXPECT_EQ(error("# from where\n1,2,0\n"),
            start + "row 1 begins with # as a comment does: delete it");
}

TEST_F(Csv, NamesALetterThatCannotBeSeen) {
  const std::vector<std::pair<std::string, std::string>> cells{{"\u00a03.5", "U+00A0"},
                                                               {std::string("3\0", 2), "U+0000"},
                                                               {"\ufeff5", "U+FEFF"},
                                                               {"\u22125", "U+2212"},
                                                               {"3\u200b", "U+200B"},
                                                               {"\U0001d7d9", "U+1D7D9"},
                                                               {"\xa0"
                                                                "5",
                                                                "the byte A0"}};
  for (const auto& [cell, code] : cells) {
    EXPECT_TRUE(
        error("1,2,0\n4," + cell + ",1\n").ends_with("'; " + code + " in it belongs to no number"))
        << code;
  }
  EXPECT_TRUE(error("1,2,0\n4,5 cm\u00b2,1\n").ends_with("cm\u00b2'"));
}

TEST_F(Csv, ShortensHostileCells) {
  EXPECT_EQ(error("1,2,0\n1,\x1b[31m" + std::string(1000, 'x') + ",0\n"),
            ": row 2 column 2 is not a number: '?[31m" + std::string(35, 'x') + "…'");
  EXPECT_EQ(error("1,2,0\n1,\x7f,0\n"),
            ": row 2 column 2 is not a number: '?'; U+007F in it belongs to no number");
}

TEST_F(Csv, RefusesWhatHoldsNothing) {
  EXPECT_EQ(error(""), " holds no rows of data");
  EXPECT_EQ(error("\n\n"), " holds no rows of data");
  EXPECT_EQ(error("a,b,c\n"), " holds no rows of data");
  EXPECT_THROW(read_csv("/no/such/file.csv", 2, 3), std::runtime_error);
  EXPECT_THROW(read_csv(std::filesystem::temp_directory_path(), 2, 3), std::runtime_error);
}

TEST_F(Csv, RefusesWhatCannotBeReadAgain) {
  ASSERT_EQ(mkfifo(path_.c_str(), S_IRUSR | S_IWUSR), 0);
  for (const std::string& path : {path_.string(), std::string("/dev/stdin")}) {
    EXPECT_EQ(message_of<std::runtime_error>([&] { read_csv(path, 2, 3); }),
              path +
                  " is a pipe or a device, and the rows are read more than once; save them in a "
                  "file first");
  }
}

}  // namespace

}  // namespace crossover::test
