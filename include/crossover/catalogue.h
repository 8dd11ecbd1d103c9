// SPDX-License-Identifier: Apache-2.0
// The networks that rows are named after, each with the training it is measured in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "crossover/dataset.h"
#include "crossover/model.h"
#include "crossover/training.h"

namespace crossover {

/// A network, the rows it learns from, and how it is trained by default.
struct Task {
  Model model;
  std::int64_t rows = 0;
  std::int64_t batch = 0;
  Optimizer optimizer;
  std::function<Dataset(std::int64_t rows)> generate;
};

/// A family of networks: one file under src/models/.
struct Family {
  std::vector<std::string> names;
  std::function<Task(const std::string& name)> make;
};

Family disc_family();
Family heart_family();
Family fcn_family();

/// All families, in the order of their listing. To add one: a file under src/models/ and a line
/// here.
std::vector<Family> catalogue();

/// The network of that name; throws std::invalid_argument that lists the names where there is none.
Task find_model(const std::string& name);

}  // namespace crossover
