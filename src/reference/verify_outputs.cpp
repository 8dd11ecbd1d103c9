// SPDX-License-Identifier: Apache-2.0
// What a program writes without training: the outputs of a forward pass, and the results of
// operations.
#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <stdexcept>

#include "crossover/product.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "crossover/training.h"
#include "crossover/verify.h"
#include "differences.h"

namespace crossover {

namespace {

/// Of [batch, classes], or [time, batch, classes], those of the first `count` numbers of all.
std::vector<double> of_first_rows(const std::vector<double>& outputs, const Shape& shape,
                                  std::size_t count) {
  const auto row = static_cast<std::size_t>(shape.back());
  const auto of_all = static_cast<std::size_t>(shape[shape.size() - 2]) * row;
  const std::size_t of_first = count / (outputs.size() / of_all);
  std::vector<double> first;
  for (std::size_t begin = 0; begin < outputs.size(); begin += of_all) {
    const auto from = outputs.begin() + static_cast<std::ptrdiff_t>(begin);
    first.insert(first.end(), from, from + static_cast<std::ptrdiff_t>(of_first));
  }
  return first;
}

}  // namespace

double tolerance_of_result(Type stored, Precision precision, const Arithmetic& arithmetic) {
  constexpr double of_sums = 1e-5;
  const Rounding rounding = rounding_of(precision, arithmetic);
  return of_sums + 2 * rounding.factor + (stored == Type::f32 ? 0 : rounding.result);
}

std::vector<double> reference_outputs(const Workload& forward, const Dataset& dataset) {
  Reference reference(forward);
  set_inputs(reference, dataset);
  restart(reference);
  reference.run(0, std::ssize(forward.order));
  const std::span<double> outputs = reference[find(forward, "outputs")];
  if (!std::all_of(outputs.begin(), outputs.end(), [](double v) { return std::isfinite(v); })) {
    throw std::runtime_error("the outputs are not finite in the reference either");
  }
  return {outputs.begin(), outputs.end()};
}

double tolerance_of_outputs(const Workload& forward, Precision precision,
                            const Arithmetic& arithmetic) {
  std::int64_t rounded = 0;
  for (const Op& op : forward.steps.front().ops) {
    const OpCategory kind = category(op);
    rounded += kind == OpCategory::product || kind == OpCategory::convolution ? 1 : 0;
  }
  return tolerance_of_result(storage_of(precision), precision, arithmetic) *
         std::sqrt(static_cast<double>(std::max<std::int64_t>(1, rounded)));
}

TensorVerification verify_outputs(Program& program, const Workload& forward,
                                  std::span<const double> expected, Precision precision) {
  const Id id = find(forward, "outputs");
  const std::vector<double> outputs = download(program, forward, id);
  if (!std::all_of(outputs.begin(), outputs.end(), [](double v) { return std::isfinite(v); })) {
    throw Mismatch("the outputs are not finite here, but in float64 they are");
  }
  TensorVerification result{
      .entries = std::ssize(expected),
      .tolerance = tolerance_of_outputs(forward, precision, program.facts().arithmetic)};
  take(relative_error(of_first_rows(outputs, forward[id].shape, expected.size()), expected),
       result.tolerance, "the vector of outputs", result.error);
  return result;
}

TensorVerification verify_results(Program& program, Reference& reference, Precision precision) {
  const Workload& workload = reference.workload();
  std::set<Id> written;
  for (const Step& step : workload.steps) {
    for (const Op& op : step.ops) {
      const Operands used = operands(op);
      written.insert(used.writes.begin(), used.writes.end());
    }
  }
  TensorVerification result;
  for (const Id id : written) {
    const std::span<double> expected = reference[id];
    const double tolerance =
        tolerance_of_result(workload[id].type, precision, program.facts().arithmetic);
    result.tolerance = std::max(result.tolerance, tolerance);
    take(relative_error(download(program, workload, id), expected), tolerance,
         "tensor '" + workload[id].name + "'", result.error);
    result.entries += std::ssize(expected);
  }
  return result;
}

}  // namespace crossover
