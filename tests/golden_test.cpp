// SPDX-License-Identifier: Apache-2.0
// Whole training runs, loss by loss, against PyTorch in float64 (fixtures/golden_mlp.json).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "crossover/catalogue.h"
#include "crossover/cost.h"
#include "crossover/start.h"
#include "support.h"

namespace crossover::test {
namespace {

const std::string fixtures = CROSSOVER_FIXTURES;

/// What the lowered epoch goes through before it is compiled.
enum class Form { plain, fused, update_fused };

struct Golden {
  std::string name;
  std::vector<std::int64_t> dims;
  Activation activation = Activation::relu;
  std::int64_t params = 0;
  TrainingOptions options;
  std::vector<double> losses;
  double sum_after = 0, norm_after = 0;

  friend std::ostream& operator<<(std::ostream& out, const Golden& golden) {
    return out << golden.name;
  }

  [[nodiscard]] Dataset data() const {
    if (name.starts_with("disc")) {
      return disc_points(options.rows);
    }
    if (name.starts_with("heart")) {
      return read_csv(fixtures + "/heart_train.csv", dims.front(), dims.back());
    }
    return uniform_rows({dims.front()}, options.rows, dims.back());
  }

  [[nodiscard]] Training training(Form form) const {
    Workload workload = training_epoch(mlp(name, dims, activation), options);
    if (form != Form::plain) {
      workload = fuse(std::move(workload));
    }
    if (form == Form::update_fused) {
      workload = fuse_update(std::move(workload));
    }
    return {std::move(workload), data()};
  }
};

std::vector<Golden> all_golden() {
  std::ifstream file(fixtures + "/golden_mlp.json");
  std::vector<Golden> all;
  const auto json = nlohmann::json::parse(file);
  for (const auto& c : json.at("cases")) {
    Golden golden{.name = c.at("name"),
                  .dims = c.at("dims"),
                  .params = c.at("params"),
                  .losses = c.at("losses"),
                  .sum_after = c.at("params_sum_after"),
                  .norm_after = c.at("params_norm_after")};
    golden.activation =
        c.value("activation", "relu") == "sigmoid" ? Activation::sigmoid : Activation::relu;
    const double rate = c.at("lr");
    golden.options = {
        .rows = c.at("rows"), .batch = c.at("batch"), .accumulate = c.at("accumulate")};
    if (c.at("optimizer") == "adamw") {
      golden.options.optimizer = AdamWOptions{.learning_rate = rate};
    } else {
      golden.options.optimizer = SgdOptions{.learning_rate = rate};
    }
    all.push_back(golden);
  }
  return all;
}

struct Checksums {
  double sum = 0, squares = 0;

  void take(const std::vector<double>& values) {
    for (const double v : values) {
      sum += v;
      squares += v * v;
    }
  }
};

/// Trains for as many steps as there are losses, epoch after epoch, and compares. `run(first,
/// count)` runs part of an epoch, `losses()` and `values(id)` read back.
template <class Run, class Losses, class Values>
void expect_golden(const Golden& golden, const Workload& workload, double tolerance,
                   double sum_tolerance, double norm_tolerance, const Run& run,
                   const Losses& losses, const Values& values) {
  const auto epoch = static_cast<std::int64_t>(workload.order.size());
  const auto total = static_cast<std::int64_t>(golden.losses.size());
  for (std::int64_t start = 0; start < total; start += epoch) {
    const std::int64_t count = std::min(epoch, total - start);
    run(0, count);
    const std::vector<double> got = losses();
    for (std::int64_t i = 0; i < count; ++i) {
      const double expected = golden.losses[static_cast<std::size_t>(start + i)];
      EXPECT_NEAR(got[static_cast<std::size_t>(i)] / expected, 1, tolerance)
          << "step " << start + i + 1;
    }
  }
  Checksums checksums;
  for (const Id id : tensors_of(workload, Role::parameter)) {
    checksums.take(values(id));
  }
  EXPECT_NEAR(std::sqrt(checksums.squares) / golden.norm_after, 1, norm_tolerance);
  EXPECT_NEAR(checksums.sum, golden.sum_after, sum_tolerance * golden.norm_after);
  EXPECT_EQ(parameter_count(workload), golden.params);
}

class ReferenceGolden : public testing::TestWithParam<Golden> {};

TEST_P(ReferenceGolden, Trajectory) {
  const Golden& golden = GetParam();
  const Training training = golden.training(Form::plain);
  const double flops = cost(training.workload).flops /
                       static_cast<double>(training.workload.order.size()) *
                       static_cast<double>(golden.losses.size());
  if (CROSSOVER_SANITIZED && flops > 2e9) {
    GTEST_SKIP() << "too slow under sanitizers; runs in the default build";
  }
  Reference reference(training.workload);
  set_data(reference, training.data);
  restart(reference);
  const Id loss = find(training.workload, "loss");
  // Both compute in float64; what is left is the order of their sums.
  expect_golden(
      golden, training.workload, 1e-9, 1e-8, 1e-9,
      [&](std::int64_t first, std::int64_t count) { reference.run(first, count); },
      [&] { return copy(reference[loss]); }, [&](Id id) { return copy(reference[id]); });
}

INSTANTIATE_TEST_SUITE_P(Mlp, ReferenceGolden, testing::ValuesIn(all_golden()),
                         [](const auto& parameters) {
                           std::string name = parameters.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class CpuGolden : public testing::TestWithParam<std::tuple<Golden, Form, int>> {};

TEST_P(CpuGolden, Trajectory) {
  const auto& [golden, form, threads] = GetParam();
  const Training training = golden.training(form);
  const auto backend = make_cpu_backend();
  const auto program = started(*backend, training, threads);
  const Id loss = find(training.workload, "loss");
  const bool adamw = std::holds_alternative<AdamWOptions>(golden.options.optimizer);
  expect_golden(
      golden, training.workload, adamw ? 5e-5 : 1e-5, 1e-4, 1e-4,
      [&](std::int64_t first, std::int64_t count) {
        program->enqueue(first, count);
        program->wait();
      },
      [&] { return download(*program, training.workload, loss); },
      [&](Id id) { return download(*program, training.workload, id); });
}

std::string form_name(Form form) {
  switch (form) {
    case Form::plain:
      return "plain";
    case Form::fused:
      return "fused";
    case Form::update_fused:
      return "update_fused";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Mlp, CpuGolden,
                         testing::Combine(testing::ValuesIn(all_golden()),
                                          testing::Values(Form::plain, Form::fused,
                                                          Form::update_fused),
                                          testing::Values(1, 2)),
                         [](const auto& parameters) {
                           std::string name = std::get<0>(parameters.param).name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + "_" + form_name(std::get<1>(parameters.param)) + "_" +
                                  std::to_string(std::get<2>(parameters.param)) + "_threads";
                         });

}  // namespace
}  // namespace crossover::test
