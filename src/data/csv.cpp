// SPDX-License-Identifier: Apache-2.0
// A table of numbers in CSV. By hand, because what matters here is the sentence that names the
// cell.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "crossover/dataset.h"

namespace crossover {
namespace {

constexpr std::string_view blank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) {
    return {};
  }
  text = text.substr(first, text.find_last_not_of(blank) - first + 1);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

/// Infinity and NaN count as numbers here, so that the caller can say what is wrong with them.
std::optional<double> number(std::string_view cell) {
  if (cell.starts_with('+') && !cell.starts_with("+-")) {
    cell.remove_prefix(1);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (end != cell.data() + cell.size() || cell.empty() || error == std::errc::invalid_argument) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    return std::strtod(std::string(cell).c_str(), nullptr);  // infinity above, next to zero below
  }
  return value;
}

/// Where the cell ends that begins at `start`: at a comma, or at the line's end. A comma in quotes
/// ends none. None: the quotes do not end in this line.
std::optional<std::size_t> end_of_cell(std::string_view line, std::size_t start) {
  const std::size_t first = line.find_first_not_of(blank, start);
  if (first == std::string_view::npos || line[first] != '"') {
    return std::min(line.find(',', start), line.size());
  }
  bool is_inside = true;
  for (std::size_t at = first + 1; at < line.size(); ++at) {
    if (line[at] == ',' && !is_inside) {
      return at;
    }
    is_inside = is_inside != (line[at] == '"');
  }
  return is_inside ? std::nullopt : std::optional(line.size());
}

/// None: quotes do not end in this line.
std::optional<std::vector<std::string_view>> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t start = 0;;) {
    const std::optional<std::size_t> end = end_of_cell(line, start);
    if (!end) {
      return std::nullopt;
    }
    cells.push_back(trimmed(line.substr(start, *end - start)));
    if (*end == line.size()) {
      return cells;
    }
    start = *end + 1;
  }
}

/// What a file is that begins so, where it is no text in UTF-8; empty otherwise.
std::string other_format(std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return "is text in UTF-16; save it in UTF-8 (in Excel: \"CSV UTF-8\")";
  }
  if (text.starts_with("\x1F\x8B")) {
    return "is compressed by gzip; unpack it: gunzip";
  }
  if (text.starts_with("PK\x03\x04")) {
    return "is a ZIP archive, as tables of Excel are; unpack it, or save the table as CSV";
  }
  return "";
}

bool is_letter(unsigned char c) { return std::isalpha(c) != 0; }

bool has_number(const std::vector<std::string_view>& cells) {
  return std::ranges::any_of(cells, [](std::string_view cell) { return number(cell).has_value(); });
}

/// A cell as it can stand in a message: short, and without control characters.
std::string quoted(std::string_view cell) {
  constexpr std::size_t longest = 40;
  constexpr char deletion = 127;
  std::string text = "'";
  for (const char c : cell.substr(0, longest)) {
    text += static_cast<unsigned char>(c) < ' ' || c == deletion ? '?' : c;
  }
  return text + (cell.size() > longest ? "…'" : "'");
}

std::string counted(std::size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

class CsvReader {
 public:
  CsvReader(const std::string& path, const CsvShape& shape) : path_(path), shape_(shape) {}
  /// In the shape of its own first row, and with the classes of its labels.
  explicit CsvReader(const std::string& path) : CsvReader(path, {0, most_classes}) {}

  [[nodiscard]] const CsvShape& shape() const { return shape_; }
  /// Whether the header leaves out the name of the first column.
  [[nodiscard]] bool has_index() const { return has_index_; }

  Dataset read() {
    const std::string text = contents();
    if (const std::string format = other_format(text); !format.empty()) {
      throw std::runtime_error(path_ + " " + format);
    }
    Dataset data{.source = path_, .sample = {}, .rows = 0, .inputs = {}, .labels = {}};
    std::string_view rest = text;
    if (rest.substr(0, 3) == "\xEF\xBB\xBF") {
      rest.remove_prefix(3);
    }
    std::int64_t blank_line = 0;
    while (!rest.empty()) {
      const std::size_t end = rest.find_first_of("\n\r");
      const std::string_view line = rest.substr(0, end);
      const bool crlf = end != std::string_view::npos && rest.substr(end, 2) == "\r\n";
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + (crlf ? 2 : 1));
      ++row_;
      if (line.find_first_not_of(blank) == std::string_view::npos) {
        blank_line = blank_line == 0 ? row_ : blank_line;
        continue;
      }
      if (blank_line != 0) {
        row_ = blank_line;
        fail("is blank; blank rows are allowed only at the end");
      }
      take(line, data);
    }
    if (data.rows == 0) {
      throw std::runtime_error(path_ + " holds no rows of data");
    }
    data.sample = {shape_.features};
    return data;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(path_ + ": row " + std::to_string(row_) + " " + what);
  }

  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    fail("column " + std::to_string(column + 1) + " " + what);
  }

  [[nodiscard]] std::string contents() const {
    std::error_code ignored;
    if (std::filesystem::is_directory(path_, ignored)) {
      throw std::runtime_error(path_ + " is a directory, not a CSV file");
    }
    std::ifstream file(path_, std::ios::binary);
    if (!file) {
      throw std::runtime_error(path_ + " can't be opened for reading");
    }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  void take(std::string_view line, Dataset& data) {
    const auto divided = cells_of(line);
    if (!divided) {
      fail("has quotes that do not end in it; a cell is of one line");
    }
    const std::vector<std::string_view>& cells = *divided;
    if (shape_.features == 0 && cells.size() > 1) {
      shape_.features = std::ssize(cells) - 1;
    }
    const auto columns = static_cast<std::size_t>(shape_.features) + 1;
    if (cells.size() != columns || cells.size() == 1) {
      fail("has " + counted(cells.size(), "column") + wanted(columns) +
           (line.find(';') != std::string_view::npos ? "; commas separate columns, not semicolons"
                                                     : ""));
    }
    if (row_ == 1 && !has_number(cells)) {
      has_index_ = cells.front().empty();  // as pandas writes it
      return;                              // a header
    }
    for (std::size_t c = 0; c < columns; ++c) {
      const std::optional<double> value = number(cells[c]);
      if (!value) {
        fail(c, cells[c].empty() ? "is empty" : no_number(cells, c));
      }
      if (!std::isfinite(*value)) {
        fail(c, "is not finite: " + quoted(cells[c]));
      }
      if (c + 1 < columns) {
        if (std::abs(*value) > std::numeric_limits<float>::max()) {
          fail(c, "is too large for single precision: " + quoted(cells[c]));
        }
        data.inputs.push_back(*value);
        continue;
      }
      if (*value != std::floor(*value) || *value < 0 ||
          *value >= static_cast<double>(shape_.classes)) {
        fail(c, "is not a label: " + quoted(cells[c]) + "; labels are whole numbers from 0 to " +
                    std::to_string(shape_.classes - 1));
      }
      data.labels.push_back(static_cast<std::int32_t>(*value));
    }
    ++data.rows;
  }

  /// The label stands in the last column, and text in the first one may be meant as it.
  [[nodiscard]] static std::string no_number(const std::vector<std::string_view>& cells,
                                             std::size_t column) {
    if (column + 1 == cells.size()) {
      return "is not a label: " + quoted(cells[column]) +
             "; labels are whole numbers: write 0, 1, ... for the names of classes";
    }
    const bool is_label = column == 0 && std::ranges::any_of(cells[0], is_letter) &&
                          std::all_of(cells.begin() + 1, cells.end(), [](std::string_view cell) {
                            return number(cell).has_value();
                          });
    return "is not a number: " + quoted(cells[column]) +
           (is_label ? "; if it is the label, move it to the last column" : "");
  }

  /// Of columns; any number of at least two will do where the file says it.
  [[nodiscard]] std::string wanted(std::size_t columns) const {
    return shape_.features == 0 ? ", and needs features and the label"
                                : ", not " + std::to_string(columns) + " (" +
                                      counted(columns - 1, "feature") + " and the label)";
  }

  const std::string& path_;
  CsvShape shape_;
  std::int64_t row_ = 0;
  bool has_index_ = false;
};

}  // namespace

Dataset read_csv(const std::string& path, std::int64_t features, std::int64_t classes) {
  return CsvReader(path, {features, classes}).read();
}

CsvShape shape_of_csv(const std::string& path) {
  CsvReader reader(path);
  const Dataset data = reader.read();
  const std::int32_t largest = std::ranges::max(data.labels);
  if (std::ranges::min(data.labels) == largest) {
    throw std::runtime_error(path + " has rows of one class alone (" + std::to_string(largest) +
                             "); a network tells two or more apart");
  }
  return {reader.shape().features, std::int64_t{1} + largest};
}

std::vector<std::string> doubts_about_csv(const std::string& path) {
  CsvReader reader(path);
  const Dataset data = reader.read();
  std::vector<std::string> doubts;
  if (reader.has_index()) {
    doubts.push_back(path +
                     ": the first column has no name, as an index of pandas; it is read as "
                     "a feature (to_csv(..., index=False) leaves it out)");
  }
  if (std::ranges::min(data.labels) > 0) {
    doubts.push_back(path + ": class 0 never occurs; labels are counted from 0");
  }
  return doubts;
}

}  // namespace crossover
