// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "crossover/dataset.h"

namespace crossover::test {
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
    try {
      read(text);
    } catch (const std::runtime_error& failure) {
      const std::string what = failure.what();
      const std::string start = path_.string();
      return what.starts_with(start) ? what.substr(start.size()) : what;
    }
    return "";
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
