// SPDX-License-Identifier: Apache-2.0
// A table of numbers in CSV. By hand, because what matters here is the sentence that names the
// cell.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

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

bool is_control(unsigned char c) {
  constexpr unsigned char deletion = 127;
  return c < ' ' || c == deletion;
}

/// A cell as it can stand in a message: short, and without control characters.
std::string quoted(std::string_view cell) {
  constexpr std::size_t longest = 40;
  std::string text = "'";
  for (const char c : cell.substr(0, longest)) {
    text += is_control(static_cast<unsigned char>(c)) ? '?' : c;
  }
  return text + (cell.size() > longest ? "…'" : "'");
}

/// The letter that UTF-8 text begins with, as "U+00A0", or "the byte A0" where it is none.
std::string code_of_first(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  // By the length of a letter the bits of its first byte that belong to the length.
  constexpr std::array<std::pair<unsigned, unsigned>, 4> forms{
      {{0x80, 0x00}, {0xE0, 0xC0}, {0xF0, 0xE0}, {0xF8, 0xF0}}};
  std::array<char, 16> code{};
  for (std::size_t length = 1; length <= std::min(forms.size(), text.size()); ++length) {
    const auto [mask, value] = forms.at(length - 1);
    unsigned point = lead & ~mask & 0xFFU;
    bool is_letter = (lead & mask) == value;
    for (std::size_t i = 1; i < length && is_letter; ++i) {
      const auto next = static_cast<unsigned char>(text[i]);
      is_letter = (next & 0xC0U) == 0x80U;
      point = (point << 6U) | (next & 0x3FU);
    }
    if (is_letter) {
      std::snprintf(code.data(), code.size(), "U+%04X", point);
      return code.data();
    }
  }
  std::snprintf(code.data(), code.size(), "the byte %02X", static_cast<unsigned>(lead));
  return code.data();
}

/// "; U+00A0 in it belongs to no number" of a cell that but for such letters could be one: many of
/// them look like a blank, a minus or a digit, or like nothing.
std::string foreign_letter(std::string_view cell) {
  const auto is_foreign = [](char c) {
    constexpr unsigned char first_beyond_ascii = 0x80;
    const auto byte = static_cast<unsigned char>(c);
    return byte >= first_beyond_ascii || is_control(byte);
  };
  const auto at = std::ranges::find_if(cell, is_foreign);
  if (at == cell.end()) {
    return "";
  }
  std::string rest(cell);
  std::erase_if(rest, is_foreign);
  if (std::ranges::any_of(rest, is_letter) && !number(rest)) {
    return "";
  }
  return "; " + code_of_first(cell.substr(static_cast<std::size_t>(at - cell.begin()))) +
         " in it belongs to no number";
}

/// "; commas separate columns, not tabs", by what else than commas a text is divided by; nothing
/// where by nothing. Words of a header may have blanks in them, numbers not: so `blanks` says
/// whether they count.
std::string other_separator(std::string_view text, bool blanks) {
  constexpr std::array<std::pair<char, const char*>, 4> others{
      {{';', "semicolons"}, {'\t', "tabs"}, {'|', "bars (|)"}, {' ', "spaces"}}};
  const std::size_t first = text.find_first_not_of(blank);
  const std::size_t last = text.find_last_not_of(blank);
  for (const auto& [separator, name] : others) {
    const std::size_t at = text.find(separator, first);
    if (at < last && (separator != ' ' || blanks)) {
      return std::string("; commas separate columns, not ") + name;
    }
  }
  return "";
}

bool all_quoted(std::string_view line, const std::vector<std::string_view>& cells) {
  return std::ranges::all_of(cells, [line](std::string_view cell) {
    return cell.data() > line.data() && *(cell.data() - 1) == '"';
  });
}

/// Whether numbers stand there that go up by one: 0, 1, 2 or 2019, 2020, 2021.
bool counts_up(std::span<const std::string_view> cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::optional<double> value = number(cells[i]);
    if (!value || *value != std::floor(*value) || (i > 0 && *value != *number(cells[i - 1]) + 1)) {
      return false;
    }
  }
  return !cells.empty();
}

std::string number_of(std::size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

class CsvReader {
 public:
  /// `shape`: zeros stand for what the file itself has.
  CsvReader(const std::string& path, const CsvShape& shape) : path_(path), shape_(shape) {}

  [[nodiscard]] const CsvShape& shape() const { return shape_; }
  /// Sentences on what the table may not be meant to say.
  [[nodiscard]] const std::vector<std::string>& doubts() const { return doubts_; }

  Dataset read() {
    const std::string text = contents();
    if (const std::string format = other_format(text); !format.empty()) {
      throw std::runtime_error(path_ + " " + format);
    }
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
      take(line);
    }
    settle_header();
    if (labels_.empty()) {
      throw std::runtime_error(path_ + " holds no rows of data");
    }
    doubt_indices();
    Dataset data{.source = path_,
                 .sample = {shape_.features},
                 .rows = std::ssize(labels_),
                 .inputs = {},
                 .labels = classes_of_labels()};
    data.inputs = std::move(inputs_);
    return data;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(path_ + ": row " + std::to_string(row_) + " " + what);
  }

  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    fail("column " + std::to_string(column + 1) + " " + what);
  }

  void doubt(const std::string& what) { doubts_.push_back(path_ + ": " + what); }

  [[nodiscard]] std::string contents() const {
    std::error_code ignored;
    if (std::filesystem::is_directory(path_, ignored)) {
      throw std::runtime_error(path_ + " is a directory, not a CSV file");
    }
    const bool is_of_a_process =
        path_ == "/dev/stdin" || path_.starts_with("/dev/fd/") || path_.starts_with("/proc/self/");
    if (is_of_a_process || (std::filesystem::exists(path_, ignored) &&
                            !std::filesystem::is_regular_file(path_, ignored))) {
      throw std::runtime_error(path_ +
                               " is a pipe or a device, and the rows are read more than once; save "
                               "them in a file first");
    }
    std::ifstream file(path_, std::ios::binary);
    if (!file) {
      throw std::runtime_error(path_ + " can't be opened for reading");
    }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  void take(std::string_view line) {
    const auto divided = cells_of(line);
    if (!divided) {
      fail("has quotes that do not end in it; a cell is of one line");
    }
    const std::vector<std::string_view>& cells = *divided;
    if (row_ == 1) {
      is_comment_ = line.starts_with('#');
    }
    if (shape_.features == 0 && cells.size() > 1) {
      shape_.features = std::ssize(cells) - 1;
      is_of_row_1_ = true;
    }
    const auto columns = static_cast<std::size_t>(shape_.features) + 1;
    if (cells.size() != columns || cells.size() == 1) {
      fail("has " + number_of(cells.size(), "column") + wanted(columns) +
           (is_comment_ ? "; row 1 begins with # as a comment does: delete it"
                        : other_separator(line, /*blanks=*/cells.size() == 1)));
    }
    if (row_ == 1 && is_header(cells)) {
      return;
    }
    if (row_ == 1) {
      is_quoted_ = all_quoted(line, cells);
      counts_up_ = counts_up(cells);
    } else if (row_ == 2 && is_quoted_ && line.find('"') == std::string_view::npos) {
      drop_row_1("its numbers are in quotes and those below are not");
    }
    for (std::size_t c = 0; c + 1 < columns; ++c) {
      const double value = number_in(cells, c);
      if (std::abs(value) > std::numeric_limits<float>::max()) {
        fail(c, "is too large for single precision: " + quoted(cells[c]));
      }
      inputs_.push_back(value);
    }
    const double label = number_in(cells, columns - 1);
    if (label != std::floor(label)) {
      fail(columns - 1, "is not a label: " + quoted(cells.back()) +
                            "; labels are whole numbers (for a quantity, leave --data out: "
                            "--loss-function=mse trains on generated rows)");
    }
    if (std::abs(label) >= largest_label) {
      fail(columns - 1, "is not a label: " + quoted(cells.back()) + "; labels are below 2^53");
    }
    labels_.push_back(static_cast<std::int64_t>(label));
  }

  /// Of row 1, by itself.
  bool is_header(const std::vector<std::string_view>& cells) {
    const bool has_names = !has_number(cells);
    // As pandas writes an index and columns that it has numbered.
    const bool has_numbers =
        cells.size() > 2 && cells.front().empty() && counts_up(std::span(cells).subspan(1));
    if (has_numbers) {
      doubt("row 1 is read as a header: it counts the columns");
    }
    if (has_names || has_numbers) {
      names_ = cells;
      header_ = 1;
    }
    return header_ == 1;
  }

  void drop_row_1(const std::string& why) {
    doubt("row 1 is read as a header: " + why);
    inputs_.erase(inputs_.begin(), inputs_.begin() + shape_.features);
    labels_.erase(labels_.begin());
    header_ = 1;
    counts_up_ = false;
  }

  /// Row 1 may count the columns, 0, 1, 2, ..., as pandas heads those without names. Nothing below
  /// tells it from a row of data where its last number is a label that others have.
  void settle_header() {
    const std::size_t columns = static_cast<std::size_t>(shape_.features) + 1;
    const bool is_short = columns == 2;  // 5,6 is as good a row as any
    if (!counts_up_ || labels_.size() < 2 || (is_short && inputs_.front() != 0)) {
      return;
    }
    if (is_short || std::find(labels_.begin() + 1, labels_.end(), labels_[0]) != labels_.end()) {
      row_ = 1;
      fail("counts the columns (" + std::to_string(labels_[0] - shape_.features) + " to " +
           std::to_string(labels_[0]) +
           "), so it may be a header or data; delete it if it is a header, else put a header of "
           "names above it");
    }
    drop_row_1("it counts the columns");
  }

  [[nodiscard]] double number_in(const std::vector<std::string_view>& cells,
                                 std::size_t column) const {
    const std::string_view cell = cells[column];
    const std::optional<double> value = number(cell);
    if (!value) {
      fail(column, cell.empty() ? "is empty" : no_number(cells, column));
    }
    if (!std::isfinite(*value)) {
      fail(column, "is not finite: " + quoted(cell));
    }
    return *value;
  }

  /// The label stands in the last column, and text in the first one may be meant as it.
  [[nodiscard]] std::string no_number(const std::vector<std::string_view>& cells,
                                      std::size_t column) const {
    const std::string cell = quoted(cells[column]);
    const std::string letter =
        foreign_letter(cells[column]) + other_separator(cells[column], /*blanks=*/false);
    if (!letter.empty()) {
      return "is not a number: " + cell + letter;
    }
    const std::string of_header =
        row_ == 1 ? "; if row 1 is a header, delete it: it has numbers, too" : "";
    if (column + 1 == cells.size()) {
      return "is not a label: " + cell +
             "; labels are whole numbers: write 0, 1, ... for the names of classes" + of_header;
    }
    const bool is_label = column == 0 && std::ranges::any_of(cells[0], is_letter) &&
                          std::all_of(cells.begin() + 1, cells.end(),
                                      [](std::string_view one) { return number(one).has_value(); });
    return "is not a number: " + cell +
           (is_label ? "; if it is the label, move it to the last column" : "") + of_header;
  }

  /// Of columns; any number of at least two will do where the file says it.
  [[nodiscard]] std::string wanted(std::size_t columns) const {
    return shape_.features == 0 ? ", and needs features and the label"
           : is_of_row_1_       ? ", and row 1 has " + std::to_string(columns)
                                : ", not " + std::to_string(columns) + " (" +
                                number_of(columns - 1, "feature") + " and the label)";
  }

  /// Columns that look like what pandas adds to a table.
  void doubt_indices() {
    const auto columns = static_cast<std::size_t>(shape_.features);
    constexpr std::size_t few = 3;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::string_view name = names_.empty() ? "?" : names_[c];
      bool counts_rows = labels_.size() >= few && (inputs_[c] == 0 || inputs_[c] == 1);
      for (std::size_t i = columns + c; i < inputs_.size() && counts_rows; i += columns) {
        counts_rows = inputs_[i] == inputs_[i - columns] + 1;
      }
      if (name.empty() || name.starts_with("Unnamed: ") || counts_rows) {
        doubt("column " + std::to_string(c + 1) +
              (name.empty()  ? " has no name"
               : counts_rows ? " counts the rows"
                             : " is " + quoted(name)) +
              ", as an index of pandas; it is read as a feature (to_csv(..., index=False) leaves "
              "it out)");
      }
    }
  }

  /// The labels as they are, where the classes have them; else numbered in their order, where there
  /// are as many as classes.
  std::vector<std::int32_t> classes_of_labels() {
    std::map<std::int64_t, std::int64_t> rows_of;
    for (const std::int64_t label : labels_) {
      ++rows_of[label];
    }
    const std::int64_t count = std::ssize(rows_of);
    const std::int64_t least = rows_of.begin()->first;
    const std::int64_t most = rows_of.rbegin()->first;
    shape_.classes = shape_.classes == 0 ? count : shape_.classes;
    if (least >= 0 && most < shape_.classes) {
      if (least > 0) {
        doubt("class 0 never occurs; labels are counted from 0");
      }
    } else if (count == shape_.classes) {
      doubt("its " + std::to_string(count) + " different labels, from " + std::to_string(least) +
            " to " + std::to_string(most) + ", are read as the classes 0 to " +
            std::to_string(count - 1));
    } else {
      refuse_label();
    }
    const auto once =
        std::ranges::count_if(rows_of, [](const auto& one) { return one.second == 1; });
    constexpr std::size_t many = 20;
    if (once > 0 && labels_.size() >= many) {
      doubt(std::to_string(once) + " of the " + std::to_string(count) +
            " labels stand in one row alone, as counts and quantities do; they are read as classes "
            "(for a quantity, leave --data out: --loss-function=mse trains on generated rows)");
    }
    const bool is_numbered = least < 0 || most >= shape_.classes;
    std::int64_t next = 0;
    for (auto& [label, number] : rows_of) {
      number = is_numbered ? next++ : label;
    }
    std::vector<std::int32_t> classes;
    classes.reserve(labels_.size());
    for (const std::int64_t label : labels_) {
      classes.push_back(static_cast<std::int32_t>(rows_of.at(label)));
    }
    return classes;
  }

  /// The first that is no class.
  [[noreturn]] void refuse_label() {
    const auto at = std::ranges::find_if(
        labels_, [&](std::int64_t label) { return label < 0 || label >= shape_.classes; });
    row_ = at - labels_.begin() + 1 + header_;
    fail(static_cast<std::size_t>(shape_.features), "is not a label: '" + std::to_string(*at) +
                                                        "'; labels are whole numbers from 0 to " +
                                                        std::to_string(shape_.classes - 1));
  }

  static constexpr double largest_label = 9007199254740992;  // doubles tell these apart

  const std::string& path_;
  CsvShape shape_;
  std::int64_t row_ = 0;
  std::int64_t header_ = 0;              ///< rows of it
  bool is_comment_ = false;              ///< row 1
  bool is_of_row_1_ = false;             ///< the number of columns
  bool is_quoted_ = false;               ///< each cell of row 1
  bool counts_up_ = false;               ///< row 1, if it is among the rows read
  std::vector<std::string_view> names_;  ///< of a header
  std::vector<double> inputs_;
  std::vector<std::int64_t> labels_;  ///< as they stand there
  std::vector<std::string> doubts_;
};

}  // namespace

Dataset read_csv(const std::string& path, std::int64_t features, std::int64_t classes) {
  return CsvReader(path, {features, classes}).read();
}

CsvShape shape_of_csv(const std::string& path) {
  CsvReader reader(path, {});
  const Dataset data = reader.read();
  if (reader.shape().classes < 2) {
    throw std::runtime_error(path +
                             " has rows of one class alone; a network tells two or more apart");
  }
  return reader.shape();
}

std::vector<std::string> doubts_about_csv(const std::string& path, const CsvShape& shape) {
  CsvReader reader(path, shape);
  static_cast<void>(reader.read());
  return reader.doubts();
}

}  // namespace crossover
