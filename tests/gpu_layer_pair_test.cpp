// SPDX-License-Identifier: Apache-2.0
// Two linear layers with a ReLU between them, forward and backward: the products that a mask ties
// together. All numbers are few bits long, so that every precision multiplies them exactly, and
// many inputs of the ReLU are exactly 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "crossover/start.h"
#include "crossover/verify.h"
#include "gpu_variants.h"
#include "support.h"

namespace crossover::test {
namespace {

struct Extents {
  std::int64_t rows, in, hidden, out;
};

std::ostream& operator<<(std::ostream& stream, const Extents& e) {
  return stream << e.rows << "x" << e.in << "x" << e.hidden << "x" << e.out;
}

struct LayerPair {
  OneOp list;
  Id x, w1, bias1, y1, w2, bias2, y2, dy2, dx2, dw2, dbias2, dw1, dbias1;
};

/// `fused`: the ReLU and its derivative are part of the layers.
LayerPair layer_pair(const Extents& e, Precision precision, bool fused) {
  LayerPair p{};
  const Type type = storage_of(precision);
  const auto stored = [&](const char* name, const Shape& shape, Role role = Role::activation) {
    return p.list.tensor(name, shape, role, type);
  };
  p.x = stored("x", {e.rows, e.in});
  p.w1 = stored("w1", {e.hidden, e.in}, Role::parameter);
  p.bias1 = stored("bias1", {e.hidden}, Role::parameter);
  p.y1 = stored("y1", {e.rows, e.hidden});
  p.w2 = stored("w2", {e.out, e.hidden}, Role::parameter);
  p.bias2 = stored("bias2", {e.out}, Role::parameter);
  p.y2 = stored("y2", {e.rows, e.out});
  p.dy2 = stored("dy2", {e.rows, e.out});
  p.dx2 = stored("dx2", {e.rows, e.hidden});
  p.dw2 = p.list.tensor("dw2", {e.out, e.hidden}, Role::gradient);
  p.dbias2 = p.list.tensor("dbias2", {e.out}, Role::gradient);
  p.dw1 = p.list.tensor("dw1", {e.hidden, e.in}, Role::gradient);
  p.dbias1 = p.list.tensor("dbias1", {e.hidden}, Role::gradient);
  const auto relu = fused ? Activation::relu : Activation::identity;
  const Id sums = fused ? p.y1 : stored("sums", {e.rows, e.hidden});
  const Id dy1 = fused ? p.dx2 : stored("dy1", {e.rows, e.hidden});
  p.list.operation(Linear{.x = p.x, .w = p.w1, .bias = p.bias1, .y = sums, .activation = relu});
  std::vector<Op>& ops = p.list.workload.steps[0].ops;
  if (!fused) {
    ops.emplace_back(Activate{.x = sums, .y = p.y1, .activation = Activation::relu});
  }
  ops.emplace_back(Linear{.x = p.y1, .w = p.w2, .bias = p.bias2, .y = p.y2});
  ops.emplace_back(LinearGrad{.x = p.y1,
                              .w = p.w2,
                              .dy = p.dy2,
                              .dx = fused ? p.dx2 : dy1,
                              .dw = p.dw2,
                              .dbias = p.dbias2,
                              .x_activation = relu});
  if (!fused) {
    ops.emplace_back(
        ActivateGrad{.at = p.y1, .dy = dy1, .dx = p.dx2, .activation = Activation::relu});
  }
  ops.emplace_back(
      LinearGrad{.x = p.x, .w = p.w1, .dy = p.dx2, .dx = none, .dw = p.dw1, .dbias = p.dbias1});
  return p;
}

/// Multiples of 1/4 in [-1, 1).
std::vector<double> quarters(std::int64_t count, int salt) {
  std::vector<double> values = numbers(count, salt);
  std::transform(values.begin(), values.end(), values.begin(),
                 [](double v) { return std::floor(v * 4) / 4; });
  return values;
}

using Values = std::map<Id, std::vector<double>>;

/// What the pair makes of the given tensors, operation by operation in float64. Where zero passes,
/// the derivative of the ReLU at 0 is 1.
Reference reference_of(const Workload& plain, const LayerPair& p, const Values& given,
                       bool passes_zero) {
  Reference reference(plain);
  for (const auto& [id, values] : given) {
    std::copy(values.begin(), values.end(), reference[id].begin());
  }
  const Id sums = find(plain, "sums");
  const std::vector<Op>& ops = plain.steps.front().ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    reference.run_operation(0, i);
    if (passes_zero && std::holds_alternative<Activate>(ops[i])) {
      for (std::size_t at = 0; at < reference[sums].size(); ++at) {
        if (reference[sums][at] == 0) {
          reference[p.y1][at] = std::numeric_limits<double>::min();  // as good as 0, and above it
        }
      }
    }
  }
  return reference;
}

class GpuLayerPair : public testing::TestWithParam<
                         std::tuple<GpuVariant, Extents, Precision, bool, ProductChoice>> {};

TEST_P(GpuLayerPair, IsRightWithInputsOfExactlyZero) {
  const auto& [variant, e, precision, fused, products] = GetParam();
  const FoundBackend gpu = gpu_of(variant);
  if (!gpu.backend) {
    GTEST_SKIP() << gpu.reason;
  }
  if (const std::string missing = gpu.backend->missing_for(precision); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  const LayerPair p = layer_pair(e, precision, fused);
  const Workload& workload = p.list.workload;
  Values given;
  for (const Id id : {p.x, p.w1, p.bias1, p.w2, p.bias2, p.dy2}) {
    given[id] = quarters(elements(workload[id].shape), id + 1);
  }
  std::fill_n(given[p.x].begin(), e.in, 0);  // the first row's sums are the bias,
  given[p.bias1][0] = 0;                     // and one of them 0
  const LayerPair plain = layer_pair(e, Precision::f32, /*fused=*/false);

  const double tolerance = storage_of(precision) == Type::f32 ? 2e-6 : 2 * unit_roundoff(precision);
  for (const Execution execution : {Execution::eager, Execution::graph}) {
    std::unique_ptr<Program> program;
    try {
      program = gpu.backend->compile(
          workload, {.precision = precision, .execution = execution, .products = products});
    } catch (const Unsupported& refusal) {
      ASSERT_NE(storage_of(precision), Type::f32) << refusal.what();
      GTEST_SKIP() << refusal.what();
    }
    // Where the library's own mask is not in use, zero passes nothing.
    const bool passes_zero = program->facts().arithmetic.relu_passes_zero;
    EXPECT_FALSE(passes_zero && !fused);
    RecordProperty("relu_passes_zero", passes_zero ? "yes" : "no");
    RecordProperty("tf32_factors", to_string(program->facts().arithmetic.tf32));
    for (const auto& [id, values] : given) {
      upload(*program, workload, id, values);
    }
    program->enqueue(0, 1);
    program->wait();

    Reference expected = reference_of(plain.list.workload, p, given, passes_zero);
    const std::span<double> sums = expected[find(plain.list.workload, "sums")];
    EXPECT_GE(std::count(sums.begin(), sums.end(), 0), 1);
    for (const Id id : {p.y1, p.y2, p.dx2, p.dw2, p.dbias2, p.dw1, p.dbias1}) {
      EXPECT_LE(relative_error(download(*program, workload, id), copy(expected[id])), tolerance)
          << workload[id].name << (passes_zero ? ", zero passes" : ", zero passes nothing");
    }
  }
}

std::vector<GpuLayerPair::ParamType> pairs_to_run() {
  std::vector<GpuLayerPair::ParamType> all;
  for (const GpuVariant& variant : gpu_variants()) {
    for (const Extents& extents :
         {Extents{5, 4, 8, 6}, Extents{100, 2, 4, 2}, Extents{33, 7, 9, 5},
          Extents{64, 32, 128, 16}, Extents{1, 4, 8, 2}, Extents{9, 4, 1, 3}}) {
      for (const Precision precision :
           {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
        for (const bool fused : {false, true}) {
          for (const auto products : {ProductChoice::heuristic, ProductChoice::autotuned}) {
            if (!variant.tf32_only || precision == Precision::tf32) {
              all.emplace_back(variant, extents, precision, fused, products);
            }
          }
        }
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Gpu, GpuLayerPair, testing::ValuesIn(pairs_to_run()), [](const auto& parameters) {
      std::ostringstream name;
      name << std::get<0>(parameters.param) << "_" << std::get<1>(parameters.param) << "_"
           << to_string(std::get<2>(parameters.param))
           << (std::get<3>(parameters.param) ? "_fused" : "_separate")
           << (std::get<4>(parameters.param) == ProductChoice::autotuned ? "_autotuned" : "");
      return name.str();
    });

}  // namespace
}  // namespace crossover::test
