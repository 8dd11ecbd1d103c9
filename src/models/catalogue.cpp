// SPDX-License-Identifier: Apache-2.0
#include "crossover/catalogue.h"

#include <algorithm>
#include <stdexcept>

#include "chain.h"
#include "crossover/random.h"

namespace crossover {

namespace {

bool has(const Family& family, const std::string& name) {
  const auto& names = family.names;
  return std::find(names.begin(), names.end(), name) != names.end() ||
         (family.also && family.also(name));
}

}  // namespace

std::vector<Family> catalogue() {
  return {disc_family(),        heart_family(),  anchor_family(),    fcn_family(),
          alexnet_family(),     resnet_family(), lstm_family(),      lenet_family(),
          small_dense_family(), gpt_family(),    micro_gpt_family(), vit_family(),
          mobilenet_family()};
}

Dataset uniform_data(const Model& model, std::int64_t rows) {
  const bool reads_tokens = model.sample_type == Type::i32;
  Dataset data =
      model.loss == LossFunction::cross_entropy
          ? uniform_rows(model.sample, rows, model.classes, reads_tokens ? Shape{} : model.labels)
          : uniform_targets(model.sample, rows, model.classes, model.loss == LossFunction::bce);
  if (!reads_tokens) {
    return data;
  }
  data.inputs = uniform_tokens(Stream::inputs, vocabularies(model), rows);
  if (!model.labels.empty()) {
    const std::vector<std::int64_t> classes(static_cast<std::size_t>(model.labels.front()),
                                            model.classes);
    const std::vector<double> labels = uniform_tokens(Stream::labels, classes, rows);
    data.labels.assign(labels.begin(), labels.end());
  }
  return data;
}

std::string ladder_of(const std::string& name, const std::vector<Family>& families) {
  for (const Family& family : families) {
    if (has(family, name)) {
      return family.ladder;
    }
  }
  return "";
}

std::vector<LadderSize> sizes_of(const std::string& ladder, const std::vector<Family>& families) {
  std::vector<LadderSize> sizes;
  for (const Family& family : families) {
    if (ladder.empty() || family.ladder != ladder) {
      continue;
    }
    if (family.sizes) {
      return family.sizes();
    }
    for (const std::string& name : family.names) {
      const Workload one_sample = training_epoch(family.make(name).model, {.rows = 1, .batch = 1});
      sizes.push_back({.name = name, .parameters = parameter_count(one_sample)});
    }
  }
  return sizes;
}

Task find_model(const std::string& name, const std::vector<Family>& families) {
  std::string known;
  for (const Family& family : families) {
    if (has(family, name)) {
      return family.make(name);
    }
    for (const std::string& other : family.names) {
      known += (known.empty() ? "" : ", ") + other;
    }
  }
  throw std::invalid_argument("there is no network '" + name + "'; choose one of " + known +
                              ", or give your own with --mlp=");
}

Task uniform_task(const Model& model, std::int64_t rows, std::int64_t batch,
                  const Optimizer& optimizer) {
  return {.model = model,
          .rows = rows,
          .batch = batch,
          .optimizer = optimizer,
          .generate = [model](std::int64_t count) { return uniform_data(model, count); }};
}

Task shi_task(const Model& model, std::int64_t batch, double learning_rate) {
  constexpr int batches = 4;
  return uniform_task(model, batches * batch, batch, SgdOptions{.learning_rate = learning_rate});
}

}  // namespace crossover
