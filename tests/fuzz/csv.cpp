// SPDX-License-Identifier: Apache-2.0
// read_csv() on any bytes: a data set that a plain second reader finds in the file as well and that
// reads the same once written out, or a sentence that begins with the file's name. The first byte
// of an input chooses features and classes; "2" asks for three features and two classes.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
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
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

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
  while (!cell.empty() && std::strchr(" \t", cell.back()) != nullptr) {
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

void require_as_in(const std::string& text, const Dataset& data, std::int64_t classes) {
  const std::vector<std::string> lines = lines_of(text);
  const auto rows = static_cast<std::size_t>(data.rows);
  const auto features = static_cast<std::size_t>(data.sample.front());
  const std::size_t header = lines.size() - rows;
  require(rows > 0 && header <= 1, "rows: " + std::to_string(rows));
  require(data.inputs.size() == rows * features && data.labels.size() == rows, "sizes");
  for (std::size_t row = 0; row < rows; ++row) {
    const std::vector<std::string> cells = parts(lines[header + row], ',');
    require(cells.size() == features + 1, "columns");
    for (std::size_t i = 0; i < features; ++i) {
      const double value = data.inputs[row * features + i];
      require(std::abs(value) <= std::numeric_limits<float>::max(), "no finite float");
      require(value == number_in(without_blanks_and_quotes(cells[i])),
              "another value: " + cells[i]);
    }
    const std::int32_t label = data.labels[row];
    require(label >= 0 && label < classes, "a label that is no class");
    require(label == number_in(without_blanks_and_quotes(cells.back())), "another label");
  }
}

std::string printed(const Dataset& data) {
  std::string text;
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
