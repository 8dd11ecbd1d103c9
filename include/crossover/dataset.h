// SPDX-License-Identifier: Apache-2.0
// Training data: generated, or read from the user's CSV file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "crossover/random.h"
#include "crossover/tensor.h"

namespace crossover {

/// More than labels of 32 bits can tell apart there can't be.
inline constexpr std::int64_t most_classes = std::int64_t{1} << 31U;

struct Dataset {
  std::string source;  ///< "disc points", "uniform", "uniform sentences", or the file's name
  Shape sample;        ///< shape of one row's input
  std::int64_t rows = 0;
  std::vector<double> inputs;  ///< [rows, sample...]; double, because the reference computes in it
  std::vector<std::int32_t> labels;  ///< [rows, labels of a row...], each in 0 .. classes - 1
  std::vector<double> targets = {};  ///< [rows, outputs], in place of labels
};

/// Points of the unit square, class 1 within the quarter disc of area 1/8 (x^2 + y^2 < 1 / (2 pi));
/// then standardized: minus the common mean of all numbers, over their unbiased standard deviation.
Dataset disc_points(std::int64_t rows);

/// Inputs uniform in [-1, 1), labels uniform over the classes: one a row, or one for each of the
/// places that are labelled.
Dataset uniform_rows(const Shape& sample, std::int64_t rows, std::int64_t classes,
                     const Shape& labelled = {});

/// Inputs as of uniform_rows(); `outputs` targets a row, uniform in [-1, 1), or, where they are
/// `binary`, 0 or 1.
Dataset uniform_targets(const Shape& sample, std::int64_t rows, std::int64_t outputs, bool binary);

/// [rows, places]: tokens, or labels of them, uniform over what each place has. They are drawn
/// place by place, for all rows of each, so that other rows than these have others.
std::vector<double> uniform_tokens(Stream stream, const std::vector<std::int64_t>& vocabularies,
                                   std::int64_t rows);

/// Sequences of `time` tokens, each with the token to predict as its label; both uniform over the
/// vocabulary, and drawn row by row: more rows have the same first ones.
Dataset uniform_sentences(std::int64_t time, std::int64_t rows, std::int64_t vocabulary);

/// Comma-separated numbers, the last column a whole number that labels the row. A first line is a
/// header where no cell of it is a number, where it counts the columns (0, 1, 2, ...) up to what is
/// no label below, and where its cells are in quotes and those below are not. Labels are in 0 ..
/// classes - 1; others are numbered in their order where there are as many as `classes`. CRLF, a
/// byte-order mark and blank lines at the end are accepted. Throws std::runtime_error, which names
/// file, row and column (both from 1), where a cell is missing, not a finite number or not a label,
/// and where the file can't be read again and again, is empty or does not have `features` + 1
/// columns. `classes` are at most most_classes.
Dataset read_csv(const std::string& path, std::int64_t features, std::int64_t classes);

struct CsvShape {
  std::int64_t features = 0, classes = 0;
};

/// What such a file could be read with: its columns but the last, and the number of its labels.
/// Throws as read_csv() does, and where all rows are of one class.
CsvShape shape_of_csv(const std::string& path);

/// Sentences on what such a file, read so, may not be meant to say. Throws as read_csv() does.
std::vector<std::string> doubts_about_csv(const std::string& path, const CsvShape& shape);

}  // namespace crossover
