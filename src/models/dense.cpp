// SPDX-License-Identifier: Apache-2.0
// Fully connected networks, but for the family of disc.
#include <algorithm>
#include <vector>

#include "chain.h"
#include "crossover/catalogue.h"

namespace crossover {

// ---- fcn-r, fcn-s: the fully connected networks of Shi et al. 2016, on data of the size of MNIST
// and on synthetic data.

namespace {

Task fcn(const std::string& name, const std::vector<std::int64_t>& widths, std::int64_t batch) {
  return shi_task(mlp(name, widths, Activation::sigmoid), batch, 0.05);
}

}  // namespace

Family fcn_family() {
  return {.names = {"fcn-r", "fcn-s"}, .make = [](const std::string& name) {
            return name == "fcn-r" ? fcn(name, {784, 2048, 4096, 1024, 10}, 1024)
                                   : fcn(name, {26752, 2048, 2048, 2048, 26752}, 64);
          }};
}

// ---- heart: the MLP of a notebook on the UCI heart-disease data (29 features, 709 training rows):
// the small real case, in which 71 tiny batches an epoch leave a GPU nothing but its launch and
// copy costs.

Family heart_family() {
  return {.names = {"heart"}, .make = [](const std::string& name) {
            return Task{.model = mlp(name, {29, 32, 16, 2}, Activation::relu),
                        .rows = 709,
                        .batch = 10,
                        .optimizer = AdamWOptions{.learning_rate = 1e-3, .weight_decay = 1e-4},
                        .generate = [](std::int64_t rows) { return uniform_rows({29}, rows, 2); }};
          }};
}

// ---- Fully connected networks that people train without a GPU in mind: policy, the actor of
// reinforcement learning on classic control tasks; surrogate, a deep and narrow one in place of a
// function (as of physics-informed networks); matrix-4, the example of SimpleChains.jl, which
// learns a matrix exponential from one batch of all its rows. Their data is generated.

namespace {

Task small_dense(const Model& model, std::int64_t rows, std::int64_t batch) {
  return uniform_task(model, rows, batch, AdamWOptions{.learning_rate = 1e-3, .weight_decay = 0});
}

}  // namespace

Family small_dense_family() {
  return {.names = {"policy", "surrogate", "matrix-4"}, .make = [](const std::string& name) {
            constexpr auto tanh = Activation::tanh;
            if (name == "policy") {
              return small_dense(mlp(name, {4, 64, 64, 2}, tanh), 2048, 32);
            }
            if (name == "surrogate") {
              const std::vector<std::int64_t> widths{2, 20, 20, 20, 20, 20, 20, 20, 20, 1};
              return small_dense(mlp(name, widths, tanh, LossFunction::mse), 10'000, 2000);
            }
            return small_dense(mlp(name, {4, 32, 16, 4}, tanh, LossFunction::mse), 10'000, 10'000);
          }};
}

// ---- anchor: odd networks, in odd batches: wide and shallow ones, some without a hidden layer,
// some with many classes. What is said of networks that nobody measured (docs/method/prediction.md)
// is fitted to them, too: on the disc ladder alone, with its two classes and one batch size, calls,
// steps and classes cannot be told apart.

namespace {

struct Anchor {
  std::vector<std::int64_t> widths;
  std::int64_t batch;

  [[nodiscard]] std::string name() const {
    std::string name = "mlp";
    for (const std::int64_t width : widths) {
      name.append("-").append(std::to_string(width));
    }
    return name;
  }
};

const std::vector<Anchor>& anchors() {
  static const std::vector<Anchor> all{{{10, 4096, 10}, 100}, {{2400, 4, 150}, 500},
                                       {{400, 2}, 100},       {{44, 54}, 20},
                                       {{3, 300, 7}, 50},     {{60, 5, 18, 13, 30}, 20}};
  return all;
}

}  // namespace

/// Called as --mlp= with these widths is, and trained so but for the batch.
Family anchor_family() {
  Family family;
  for (const Anchor& anchor : anchors()) {
    family.names.push_back(anchor.name());
  }
  family.make = [](const std::string& name) {
    const auto anchor = std::find_if(anchors().begin(), anchors().end(),
                                     [&](const Anchor& one) { return one.name() == name; });
    const std::vector<std::int64_t>& widths = anchor->widths;
    return Task{.model = mlp(name, widths, Activation::relu),
                .rows = 1000,
                .batch = anchor->batch,
                .optimizer = SgdOptions{},
                .generate = [widths](std::int64_t rows) {
                  return uniform_rows({widths.front()}, rows, widths.back());
                }};
  };
  return family;
}

}  // namespace crossover
