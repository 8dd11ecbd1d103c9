// SPDX-License-Identifier: Apache-2.0
// What kernels calculate in float and in 16 bits, where few digits would do harm.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "crossover/float16.h"
#include "crossover/start.h"
#include "gpu_variants.h"
#include "support.h"

namespace crossover::test {
namespace {

class GpuFloat : public OnGpu {};

/// The loss of rows whose label leads the other classes by `lead`.
double loss_of_a_lead(const Backend& gpu, std::int64_t rows, std::int64_t classes, double lead) {
  OneOp one;
  const Id logits = one.tensor("logits", {rows, classes});
  const Id labels = one.tensor("labels", {rows}, Role::activation, Type::i32);
  const Id loss = one.tensor("loss", {1}, Role::loss);
  const Id dlogits = one.tensor("dlogits", {rows, classes});
  one.operation(
      SoftmaxCrossEntropy{.logits = logits, .labels = labels, .loss = loss, .dlogits = dlogits});
  const auto program = gpu.compile(one.workload, {});
  std::vector<double> values(static_cast<std::size_t>(rows * classes), 3);
  std::vector<double> chosen(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t label = row % classes;
    chosen[static_cast<std::size_t>(row)] = static_cast<double>(label);
    values[static_cast<std::size_t>(row * classes + label)] += lead;
  }
  upload(*program, one.workload, logits, values);
  upload(*program, one.workload, labels, chosen);
  program->enqueue(0, 1);
  return download(*program, one.workload, loss).front();
}

TEST_P(GpuFloat, LossesAreRightHoweverSmall) {
  for (const auto& [rows, classes] :
       {std::pair{1, 2}, {100, 2}, {3000, 2}, {7, 33}, {100, 16}, {300, 100}}) {
    for (const double lead : {0.0, 1.0, 10.0, 20.0, 60.0, -20.0}) {
      const double expected = lead >= 0 ? std::log1p((classes - 1) * std::exp(-lead))
                                        : std::log(std::exp(lead) + (classes - 1)) - lead;
      EXPECT_NEAR(loss_of_a_lead(gpu(), rows, classes, lead) / expected, 1, 1e-6)
          << rows << " rows of " << classes << " classes, lead " << lead;
    }
  }
}

TEST_P(GpuFloat, AdamWIsRightAtAnyTime) {
  for (const int time : {0, 1, 9, 999, 12345, 99'999, 999'999}) {
    OneOp one;
    const Id w = one.tensor("w", {300}, Role::parameter);
    const Id g = one.tensor("g", {300}, Role::gradient);
    const Id m = one.tensor("m", {300}, Role::state);
    const Id v = one.tensor("v", {300}, Role::state);
    const Id t = one.tensor("t", {1}, Role::state, Type::i32);
    one.operation(Update{.rule = AdamWOptions{.learning_rate = 0.1},
                         .parameters = {w},
                         .gradients = {g},
                         .states = {{m}, {v}},
                         .weight_decay = {0.01},
                         .step = t});
    const auto program = gpu().compile(one.workload, {});
    Reference reference(one.workload);
    for (const Id id : {w, g, m, v, t}) {
      std::vector<double> values = id == t ? std::vector<double>{double(time)} : numbers(300, id);
      for (double& value : values) {
        value = id == v ? value * value : value;
        value = static_cast<float>(value);
      }
      upload(*program, one.workload, id, values);
      std::copy(values.begin(), values.end(), reference[id].begin());
    }
    program->enqueue(0, 1);
    reference.run(0, 1);
    for (const Id id : {w, m, v, t}) {
      EXPECT_LE(relative_error(download(*program, one.workload, id), copy(reference[id])), 1e-6)
          << one.workload[id].name << " at time " << time;
    }
  }
}

/// All 2^16 numbers of the type, then what float has at their borders: the halves between
/// neighbours and the floats next to those.
std::vector<float> interesting(Type type) {
  std::vector<float> values;
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, float>) {
      for (unsigned bits = 0; bits < 1U << 16U; ++bits) {
        const float value = widened(T{static_cast<std::uint16_t>(bits)});
        const float next = widened(T{static_cast<std::uint16_t>(bits + 1)});
        const float half = value / 2 + next / 2;
        values.push_back(value);
        for (const float toward : {-std::numeric_limits<float>::infinity(), half,
                                   std::numeric_limits<float>::infinity()}) {
          values.push_back(std::nextafter(half, toward));
        }
      }
    }
  });
  return values;
}

TEST_P(GpuFloat, ConvertsEveryNumberOf16BitsAndWhatLiesBetween) {
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    const Type type = storage_of(precision);
    const std::vector<float> values = interesting(type);
    const auto count = std::ssize(values);
    OneOp one;
    const Id x = one.tensor("x", {count});
    const Id y = one.tensor("y", {count}, Role::activation, type);
    const Id back = one.tensor("back", {count});
    one.operation(Cast{.x = x, .y = y});
    one.workload.steps[0].ops.emplace_back(Cast{.x = y, .y = back});
    const auto program = gpu().compile(one.workload, {.precision = precision});
    program->upload(x, std::as_bytes(std::span(values)));
    program->enqueue(0, 1);
    std::vector<float> got(values.size());
    program->download(back, std::as_writable_bytes(std::span(got)));
    std::int64_t wrong = 0;
    with_float(type, [&](auto zero) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const float expected = widened(narrowed<decltype(zero)>(values[i]));
        const bool same = std::isnan(expected) ? std::isnan(got[i]) : got[i] == expected;
        if (!same && ++wrong <= 5) {
          ADD_FAILURE() << values[i] << " in " << to_string(type) << " is " << expected << ", not "
                        << got[i];
        }
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuFloat, testing::ValuesIn(gpu_variants()), labelled);

}  // namespace
}  // namespace crossover::test
