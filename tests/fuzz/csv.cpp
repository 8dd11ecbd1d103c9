// SPDX-License-Identifier: Apache-2.0
// read_csv() on any bytes: a data set that a plain second reader finds in the file as well and that
// reads the same once written out, or a sentence that begins with the file's name. The first byte
// of an input chooses features and classes; "2" asks for three features and two classes.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <set>
#include <stdexcept>
#include <typeinfo>

#include "check.h"
#include "crossover/dataset.h"

namespace crossover::fuzz {
namespace {

/// A file in memory: no disk wears out.
class File {
 public:
  File() : descriptor_(memfd_create("csv", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, "memfd_create failed");
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(descriptor_); }

  void hold(std::string_view text) const {
    require(ftruncate(descriptor_, 0) == 0, "ftruncate failed");
    const auto size = static_cast<ssize_t>(text.size());
    require(pwrite(descriptor_, text.data(), text.size(), 0) == size, "pwrite failed");
  }
  [[nodiscard]] std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
};

std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> all(1);
  for (const char c : text) {
    if (c == separator) {
      all.emplace_back();
    } else {
      all.back() += c;
    }
  }
  return all;
}

/// The lines without the blank ones at the end and the byte-order mark.
std::vector<std::string> lines_of(std::string text) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.erase(0, 3);
  }
  for (std::size_t at = 0; (at = text.find("\r\n", at)) != std::string::npos;) {
    text.erase(at, 1);
  }
  for (char& c : text) {
    c = c == '\r' ? '\n' : c;
  }
  std::vector<std::string> lines = parts(text, '\n');
  while (!lines.empty() && lines.back().find_first_not_of(" \t") == std::string::npos) {
    lines.pop_back();
  }
  return lines;
}

std::string without_blanks_and_quotes(std::string cell) {
  while (cell.ends_with(' ') || cell.ends_with('\t')) {
    cell.pop_back();
  }
  cell.erase(0, std::min(cell.find_first_not_of(" \t"), cell.size()));
  const bool quoted = cell.size() >= 2 && cell.front() == '"' && cell.back() == '"';
  return quoted ? cell.substr(1, cell.size() - 2) : cell;
}

/// The number that the C library reads from the whole cell.
double number_in(const std::string& cell) {
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  require(!cell.empty() && end == cell.c_str() + cell.size(), "not a number, but read: " + cell);
  return value;
}

bool is_number(const std::string& cell) {
  char* end = nullptr;
  std::strtod(cell.c_str(), &end);
  const std::size_t digits = std::min(cell.find_first_not_of("+-"), cell.size());
  const bool is_hexadecimal = cell.substr(digits, 2) == "0x" || cell.substr(digits, 2) == "0X";
  return !cell.empty() && !is_hexadecimal && end == cell.c_str() + cell.size() &&
         std::strchr(" \t\v\f\n", cell[0]) == nullptr && !cell.starts_with("+-");
}

/// At commas that are in no quotes; quotes are what a cell begins with.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> all(1);
  bool is_inside = false;
  for (const char c : line) {
    const bool is_quoted = all.back().find_first_not_of(" \t") != std::string::npos
                               ? all.back()[all.back().find_first_not_of(" \t")] == '"'
                               : c == '"';
    if (c == ',' && !is_inside) {
      all.emplace_back();
      continue;
    }
    is_inside = is_inside != (is_quoted && c == '"');
    all.back() += c;
  }
  return all;
}

/// Whether row 1 of a table that was read is a header: it has no number, it counts the columns, or
/// it alone is in quotes.
bool has_header(const std::vector<std::string>& lines) {
  const std::vector<std::string> raw = cells_of(lines.front());
  std::vector<std::string> cells;
  std::ranges::transform(raw, std::back_inserter(cells), without_blanks_and_quotes);
  if (std::ranges::none_of(cells, is_number)) {
    return true;
  }
  const bool has_index = cells.size() > 2 && cells[0].empty();
  bool counts = true;
  for (std::size_t i = has_index ? 1 : 0; i < cells.size() && counts; ++i) {
    counts = is_number(cells[i]) && number_in(cells[i]) == std::floor(number_in(cells[i])) &&
             (i == (has_index ? 1U : 0U) || number_in(cells[i]) == number_in(cells[i - 1]) + 1);
  }
  const bool alone_quoted = std::ranges::count(lines.front(), '"') == 2 * std::ssize(cells) &&
                            std::ranges::all_of(cells, is_number) && lines.size() > 1 &&
                            lines[1].find('"') == std::string::npos;
  return has_index || alone_quoted || (counts && cells.size() > 2 && lines.size() > 1);
}

/// That classes are labels as they are, or numbered in their order.
void require_classes(const std::vector<double>& labels, const std::vector<std::int32_t>& found,
                     std::int64_t classes) {
  const std::set<double> known(labels.begin(), labels.end());
  const bool is_plain = *known.begin() >= 0 && *known.rbegin() < static_cast<double>(classes);
  require(is_plain || std::ssize(known) == classes, "more labels than classes");
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto rank = std::distance(known.begin(), known.find(labels[row]));
    require(found[row] == (is_plain ? labels[row] : static_cast<double>(rank)), "another label");
  }
}

void require_as_in(const std::string& text, const Dataset& data, std::int64_t classes) {
  const std::vector<std::string> lines = lines_of(text);
  const auto rows = static_cast<std::size_t>(data.rows);
  const auto features = static_cast<std::size_t>(data.sample.front());
  const std::size_t header = has_header(lines) ? 1 : 0;
  require(rows > 0 && header + rows == lines.size(), "rows: " + std::to_string(rows));
  require(data.inputs.size() == rows * features && data.labels.size() == rows, "sizes");
  std::vector<double> labels;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::vector<std::string> cells = parts(lines[header + row], ',');
    require(cells.size() == features + 1, "columns");
    for (std::size_t i = 0; i < features; ++i) {
      const double value = data.inputs[row * features + i];
      require(std::abs(value) <= std::numeric_limits<float>::max(), "no finite float");
      require(value == number_in(without_blanks_and_quotes(cells[i])),
              "another value: " + cells[i]);
    }
    labels.push_back(number_in(without_blanks_and_quotes(cells.back())));
  }
  require_classes(labels, data.labels, classes);
}

/// Below a header of names, so that no row is taken for one.
std::string printed(const Dataset& data) {
  std::string text = "label\n";
  for (std::int64_t i = 0; i < data.sample.front(); ++i) {
    text.insert(0, "x,");
  }
  std::array<char, 40> number{};
  for (std::size_t i = 0; i < data.inputs.size(); ++i) {
    std::snprintf(number.data(), number.size(), "%.17g,", data.inputs[i]);
    text += number.data();
    const auto features = static_cast<std::size_t>(data.sample.front());
    if ((i + 1) % features == 0) {
      text += std::to_string(data.labels[i / features]) + "\n";
    }
  }
  return text;
}

void look_at(const std::string& text, std::int64_t features, std::int64_t classes) {
  static const File file;
  file.hold(text);
  Dataset data;
  try {
    data = read_csv(file.path(), features, classes);
  } catch (const std::runtime_error& error) {
    require(typeid(error) == typeid(std::runtime_error), "another exception");
    require_line(error.what());
    require(std::string_view(error.what()).starts_with(file.path()), "names no file");
    return;
  }
  for (const std::string& doubt : doubts_about_csv(file.path(), {features, classes})) {
    require_line(doubt);
  }
  require(data.source == file.path() && data.sample == Shape{features}, "source and sample");
  require_as_in(text, data, classes);
  file.hold(printed(data));
  const Dataset again = read_csv(file.path(), features, classes);
  require(again.rows == data.rows && again.inputs == data.inputs && again.labels == data.labels,
          "printed and read again it differs");
}

}  // namespace
}  // namespace crossover::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array<std::int64_t, 4> classes{2, 3, 10, crossover::most_classes};
  const unsigned first = size > 0 ? data[0] : 0;
  const std::string text(reinterpret_cast<const char*>(data) + (size > 0 ? 1 : 0),
                         size > 0 ? size - 1 : 0);
  crossover::fuzz::look_at(text, 1 + first % 4, classes[first / 4 % 4]);
  return 0;
}
