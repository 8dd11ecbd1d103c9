// SPDX-License-Identifier: Apache-2.0
#include "crossover/catalogue.h"

#include <algorithm>
#include <stdexcept>

namespace crossover {

std::vector<Family> catalogue() {
  return {disc_family(),    heart_family(),  fcn_family(),
          alexnet_family(), resnet_family(), lstm_family()};
}

Dataset uniform_data(const Model& model, std::int64_t rows) {
  return model.sample_type == Type::i32 ? uniform_tokens(model.sample.front(), rows, model.classes)
                                        : uniform_rows(model.sample, rows, model.classes);
}

Task find_model(const std::string& name) {
  std::string known;
  for (const Family& family : catalogue()) {
    const bool is_listed =
        std::find(family.names.begin(), family.names.end(), name) != family.names.end();
    if (is_listed || (family.also && family.also(name))) {
      return family.make(name);
    }
    for (const std::string& other : family.names) {
      known += (known.empty() ? "" : ", ") + other;
    }
  }
  throw std::invalid_argument("there is no network '" + name + "'; choose one of " + known +
                              ", or give your own with --mlp=");
}

}  // namespace crossover
