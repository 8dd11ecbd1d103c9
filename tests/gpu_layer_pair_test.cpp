// SPDX-License-Identifier: Apache-2.0
// Two linear layers with a ReLU between them, forward and backward: the products that a mask ties
// together. All numbers are few bits long, so that every precision multiplies them exactly, and
// many inputs of the ReLU are exactly 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

/// Rows-major [rows, columns].
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;

  Matrix(std::int64_t r, std::int64_t c, std::vector<double> v = {})
      : rows(r), columns(c), values(std::move(v)) {
    values.resize(static_cast<std::size_t>(r * c));
  }
  double& at(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

/// sums over i of left(r, i) right(i, c).
template <class Left, class Right>
Matrix product(std::int64_t rows, std::int64_t columns, std::int64_t inner, const Left& left,
               const Right& right) {
  Matrix result(rows, columns);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t i = 0; i < inner; ++i) {
        result.at(r, c) += left(r, i) * right(i, c);
      }
    }
  }
  return result;
}

class GpuLayerPair : public testing::TestWithParam<
                         std::tuple<GpuVariant, Extents, Precision, bool, ProductChoice>> {};

TEST_P(GpuLayerPair, IsRightWithInputsOfExactlyZero) {
  const auto& [variant, e, precision, fused, products] = GetParam();
  const CudaBackend gpu = gpu_of(variant);
  if (!gpu.backend) {
    GTEST_SKIP() << gpu.reason;
  }
  if (const std::string missing = gpu.backend->missing_for(precision); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  const LayerPair p = layer_pair(e, precision, fused);
  const Workload& workload = p.list.workload;
  const auto filled = [&](Id id, std::int64_t rows, std::int64_t columns) {
    return Matrix(rows, columns, quarters(rows * columns, id + 1));
  };
  Matrix x = filled(p.x, e.rows, e.in);
  Matrix w1 = filled(p.w1, e.hidden, e.in);
  Matrix bias1 = filled(p.bias1, 1, e.hidden);
  Matrix w2 = filled(p.w2, e.out, e.hidden);
  Matrix bias2 = filled(p.bias2, 1, e.out);
  Matrix dy2 = filled(p.dy2, e.rows, e.out);
  std::fill(x.values.begin(), x.values.begin() + e.in, 0);  // the first row's sums are the bias,
  bias1.values[0] = 0;                                      // and one of them 0

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
    for (const auto& [id, matrix] : {std::pair{p.x, &x},
                                     {p.w1, &w1},
                                     {p.bias1, &bias1},
                                     {p.w2, &w2},
                                     {p.bias2, &bias2},
                                     {p.dy2, &dy2}}) {
      upload(*program, workload, id, matrix->values);
    }
    program->enqueue(0, 1);
    program->wait();

    Matrix y1 = product(
        e.rows, e.hidden, e.in, [&](auto r, auto i) { return x.at(r, i); },
        [&](auto i, auto c) { return w1.at(c, i); });
    Matrix dx2 = product(
        e.rows, e.hidden, e.out, [&](auto r, auto i) { return dy2.at(r, i); },
        [&](auto i, auto c) { return w2.at(i, c); });
    std::int64_t zeros = 0;
    for (std::int64_t r = 0; r < e.rows; ++r) {
      for (std::int64_t c = 0; c < e.hidden; ++c) {
        const double input = y1.at(r, c) + bias1.at(0, c);
        zeros += input == 0 ? 1 : 0;
        y1.at(r, c) = std::max(input, 0.0);
        dx2.at(r, c) *= input > 0 || (input == 0 && passes_zero) ? 1 : 0;
      }
    }
    EXPECT_GE(zeros, 1);
    Matrix y2 = product(
        e.rows, e.out, e.hidden, [&](auto r, auto i) { return y1.at(r, i); },
        [&](auto i, auto c) { return w2.at(c, i); });
    for (std::int64_t r = 0; r < e.rows; ++r) {
      for (std::int64_t c = 0; c < e.out; ++c) {
        y2.at(r, c) += bias2.at(0, c);
      }
    }
    const auto one = [](auto, auto) { return 1.0; };
    const auto dy2_transposed = [&](auto r, auto i) { return dy2.at(i, r); };
    const auto dx2_transposed = [&](auto r, auto i) { return dx2.at(i, r); };
    const std::vector<std::pair<Id, Matrix>> expected{
        {p.y1, y1},
        {p.y2, y2},
        {p.dx2, dx2},
        {p.dw2, product(e.out, e.hidden, e.rows, dy2_transposed,
                        [&](auto i, auto c) { return y1.at(i, c); })},
        {p.dbias2, product(e.out, 1, e.rows, dy2_transposed, one)},
        {p.dw1, product(e.hidden, e.in, e.rows, dx2_transposed,
                        [&](auto i, auto c) { return x.at(i, c); })},
        {p.dbias1, product(e.hidden, 1, e.rows, dx2_transposed, one)}};
    for (const auto& [id, matrix] : expected) {
      EXPECT_LE(relative_error(download(*program, workload, id), matrix.values), tolerance)
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
