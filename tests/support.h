// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "cases/operation_cases.h"
#include "crossover/backend.h"
#include "crossover/dataset.h"
#include "crossover/reference.h"
#include "crossover/training.h"

namespace crossover::test {

// ---- What several tests need: a training and its start, the ways of a GPU, and a comparison.

/// |got - expected| over |expected|, Euclidean norms; the plain norm of `got` where `expected` is
/// zero.
double relative_error(const std::vector<double>& got, const std::vector<double>& expected);

/// The last rows of an epoch's data for a model, and its parameters, put into both.
struct Training {
  Workload workload;
  Dataset data;
};

/// A Training whose data is uniform, and the Program that is to run it, at its start.
std::unique_ptr<Program> started(const Backend& backend, const Training& training, int threads);
std::unique_ptr<Program> started(const Backend& backend, const Training& training,
                                 const CompileOptions& options);

/// How a GPU can run a Program, and a name for it that a test may have.
struct GpuMode {
  std::string name;
  CompileOptions options;

  friend std::ostream& operator<<(std::ostream& out, const GpuMode& mode) {
    return out << mode.name;
  }
};
std::vector<GpuMode> gpu_modes();

std::vector<double> copy(std::span<double> values);

/// "Linear", "SoftmaxCrossEntropy", ...: the operations of a step in their order.
std::vector<std::string> names_of(const Step& step);

/// Losses and then parameters after an epoch of the reference.
std::vector<double> trained(const Workload& workload, const Dataset& data);

/// Whether tests that thin out their cases are to run all of them: `./test --all`, which sets
/// CROSSOVER_TEST_ALL.
bool test_all();

/// Whether one of many like cases is enough: sanitizers learn nothing from more of the same. Not
/// with test_all().
inline bool thinned() { return CROSSOVER_SANITIZED && !test_all(); }

/// A parameter of a test as the test's name can bear it: how it is called; of a tuple the parts',
/// joined. One of its type must be declared before.
std::string label(std::string name);
std::string label(Precision precision);
std::string label(Execution execution);
std::string label(int threads);
template <class Named>
requires requires(const Named& of) { std::string(of.name); }
std::string label(const Named& of) { return label(std::string(of.name)); }
template <class... Parts>
std::string label(const std::tuple<Parts...>& parts) {
  std::string all;
  std::apply([&](const auto&... part) { (all.append("_").append(label(part)), ...); }, parts);
  return all.substr(1);
}
/// For INSTANTIATE_TEST_SUITE_P.
inline constexpr auto labelled = [](const auto& parameters) { return label(parameters.param); };

/// What the work says where it throws such an error; empty where it throws none.
template <class Error, class Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// What comes behind the beginning that a message must have; of an empty one nothing.
std::string behind(const std::string& beginning, const std::string& message);

/// Networks of the catalogue's kinds, of few numbers.
Model small_alexnet();
Model small_alexnet_s();
Model small_resnet();
Model small_resnet_s();
Model small_language_model();

/// A model with a value that three layers read, joined again by sums: gradients must add up.
Model residual_model();

/// Values joined with the data and with others, and gates of all kinds.
Model joined_model();

/// Images made smaller and, in each way that there is, larger again: as many numbers out as pixels
/// in.
Model upsampled_model();

/// Images of height 1, as those of Conv1d, and windows that differ in both directions.
Model line_model();

/// With zeros around images and lines, cuts, functions, and normalizations that lack parameters.
Model padded_model();

/// Strides of every kind, by the CPU's layouts and time; layers that share parameters.
Model strided_model();

/// Patches behind a trained one, of which the first, the last and the mean are read.
Model places_model();

/// Two inputs of tokens in one, and parts of what layers give.
Model parts_model();

/// Products of sequences, softmax and gated recurrent units.
Model asking_model();

/// The same with each second one frozen of the layers that have parameters, from the first or the
/// second on.
Model half_frozen(Model model, bool first = false);

// ---- What a backend makes of the cases of operations.

/// errors_of() the case are within their tolerances.
void expect_operation(const OperationCase& c, Program& program, Precision precision);

/// What a backend says that has no such operation yet; else nothing.
std::string missing(const OperationCase& c, const Backend& backend);

/// Compiles the case and expects it to be right. A library may lack products of 16 bits: then the
/// sentence that says so, which is to name the product; or what missing() says; else nothing.
std::string expect_operation_or_refusal(const OperationCase& c, const Backend& backend,
                                        const CompileOptions& options);

}  // namespace crossover::test
