// SPDX-License-Identifier: Apache-2.0
// The networks that can be measured by name, each with its default training.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "crossover/dataset.h"
#include "crossover/ladder.h"
#include "crossover/model.h"
#include "crossover/training.h"

namespace crossover {

/// A network, its training data and its default training.
struct Task {
  Model model;
  std::int64_t rows = 0;
  std::int64_t batch = 0;
  Optimizer optimizer;
  std::function<Dataset(std::int64_t rows)> generate;
};

/// Generated rows that the model can read: uniform_rows(), or uniform_targets() where its loss
/// compares with them; of tokens the inputs, and what labels each place, from uniform_tokens().
Dataset uniform_data(const Model& model, std::int64_t rows);

/// A family of networks: one file under src/models/.
struct Family {
  std::vector<std::string> names;
  std::function<Task(const std::string& name)> make;
  /// Whether a name that is not listed is meant for the family, too; make() throws
  /// std::invalid_argument where it is none after all. Empty: no such name is.
  std::function<bool(const std::string& name)> also = {};
  /// What the series is called of which `names` are the sizes, smallest first: a scale on which a
  /// crossover is found. Empty: they are none.
  std::string ladder = {};
  /// With those in between, on which a crossover is looked for more closely: strictly more
  /// parameters from one to the next. These are called NAMExFACTOR, with one of `names`, as readers
  /// of the result file expect. Empty: there are none in between.
  std::function<std::vector<LadderSize>()> sizes = {};
};

Family disc_family();
Family heart_family();
Family anchor_family();
Family fcn_family();
Family alexnet_family();
Family resnet_family();
Family lstm_family();
Family gpt_family();
Family micro_gpt_family();
Family mobilenet_family();
Family lenet_family();
Family small_dense_family();
Family vit_family();

/// All families, in listing order. To add one: a file under src/models/ and a line here.
std::vector<Family> catalogue();

/// The ladder that a network of that name is on, between its sizes too; empty: none.
std::string ladder_of(const std::string& name, const std::vector<Family>& families = catalogue());

/// The sizes of that ladder, those in between too, smallest first; empty: there is no such ladder.
std::vector<LadderSize> sizes_of(const std::string& ladder,
                                 const std::vector<Family>& families = catalogue());

/// The network of that name; otherwise throws std::invalid_argument, which lists the names.
Task find_model(const std::string& name, const std::vector<Family>& families = catalogue());

// ---- The sizes of the disc family, disc-2 to disc-12 and those in between: the scale on which a
// crossover is looked for.

/// From disc-2 to disc-12, with strictly more parameters from one to the next. In between the
/// hidden widths grow by sixteenths of the smaller network's, so that those of 16 and more stay
/// multiples of a power of two as large as they can be: disc-8x1.5 has 6, 12, ... 384. Neighbours
/// differ by at most 23 %, so that a network with a tenth more or less is there for any number.
const std::vector<LadderSize>& disc_sizes();

/// The one whose number of parameters is nearest.
const LadderSize& nearest_disc(std::int64_t parameters);

}  // namespace crossover
