// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>
#include <numeric>

#include "crossover/alive.h"
#include "crossover/dataset.h"
#include "crossover/random.h"

namespace crossover {

Dataset disc_points(std::int64_t rows) {
  Dataset data{.source = "disc points", .sample = {2}, .rows = rows, .inputs = {}, .labels = {}};
  const auto count = static_cast<std::size_t>(rows);
  data.inputs.resize(2 * count);
  data.labels.resize(count);
  for (std::size_t i = 0; i < data.inputs.size(); ++i) {
    data.inputs[i] = uniform(Stream::inputs, i);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double x = data.inputs[2 * i];
    const double y = data.inputs[2 * i + 1];
    data.labels[i] = x * x + y * y < 1 / (2 * std::numbers::pi) ? 1 : 0;
  }
  const auto numbers = static_cast<double>(data.inputs.size());
  const double mean = std::accumulate(data.inputs.begin(), data.inputs.end(), 0.0) / numbers;
  double squares = 0;
  for (const double v : data.inputs) {
    squares += (v - mean) * (v - mean);
  }
  const double deviation = std::sqrt(squares / (numbers - 1));
  for (double& v : data.inputs) {
    v = (v - mean) / deviation;
  }
  return data;
}

Dataset uniform_rows(const Shape& sample, std::int64_t rows, std::int64_t classes,
                     const Shape& labelled) {
  Dataset data{.source = "uniform", .sample = sample, .rows = rows, .inputs = {}, .labels = {}};
  data.inputs.resize(static_cast<std::size_t>(rows * elements(sample)));
  data.labels.resize(static_cast<std::size_t>(rows * elements(labelled)));
  for_each_index(std::ssize(data.inputs), [&](std::int64_t at) {
    const auto i = static_cast<std::size_t>(at);
    data.inputs[i] = 2 * uniform(Stream::inputs, i) - 1;
  });
  for_each_index(std::ssize(data.labels), [&](std::int64_t at) {
    const auto i = static_cast<std::size_t>(at);
    data.labels[i] =
        static_cast<std::int32_t>(uniform(Stream::labels, i) * static_cast<double>(classes));
  });
  return data;
}

Dataset uniform_targets(const Shape& sample, std::int64_t rows, std::int64_t outputs, bool binary) {
  Dataset data = uniform_rows(sample, rows, 1);
  data.labels.clear();
  data.targets.resize(static_cast<std::size_t>(rows * outputs));
  for_each_index(std::ssize(data.targets), [&](std::int64_t at) {
    const auto i = static_cast<std::size_t>(at);
    const double doubled = 2 * uniform(Stream::labels, i);
    data.targets[i] = binary ? std::floor(doubled) : doubled - 1;
  });
  return data;
}

std::vector<double> uniform_tokens(Stream stream, const std::vector<std::int64_t>& vocabularies,
                                   std::int64_t rows) {
  const std::size_t places = vocabularies.size();
  const auto count = static_cast<std::size_t>(rows);
  std::vector<double> tokens(count * places);
  for (std::size_t row = 0; row < count; ++row) {
    for (std::size_t t = 0; t < places; ++t) {
      tokens[row * places + t] =
          std::floor(uniform(stream, t * count + row) * static_cast<double>(vocabularies[t]));
    }
    alive();
  }
  return tokens;
}

Dataset uniform_sentences(std::int64_t time, std::int64_t rows, std::int64_t vocabulary) {
  Dataset data = uniform_rows({time}, rows, 1);
  data.source = "uniform sentences";
  data.labels.resize(data.inputs.size());
  for (std::size_t place = 0; place < data.inputs.size(); ++place) {
    const auto token = [&](Stream stream) {
      return std::floor(uniform(stream, place) * static_cast<double>(vocabulary));
    };
    data.inputs[place] = token(Stream::inputs);
    data.labels[place] = static_cast<std::int32_t>(token(Stream::labels));
  }
  return data;
}

}  // namespace crossover
