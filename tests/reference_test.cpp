// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "../src/reference/products.h"
#include "crossover/alive.h"
#include "crossover/float16.h"
#include "crossover/random.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "support.h"

namespace crossover::test {

// ---- The operations of the reference itself: against plain loops and, where golden runs do not
// show it, numbers worked out by hand.

namespace {

/// What the operation makes of the values, which are given for the tensors in their order.
std::vector<double> result_of(const OneOp& one, const std::vector<std::vector<double>>& values,
                              Id result) {
  Reference reference(one.workload);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::copy(values[i].begin(), values[i].end(), reference[static_cast<Id>(i)].begin());
  }
  reference.run(0, 1);
  return copy(reference[result]);
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], 1e-12) << "element " << i;
  }
}

struct ConvolutionCase {
  Shape x;
  std::int64_t out;
  Window window;
};

/// Each product of an element and a weight, one after the other.
struct PlainConvolution {
  std::vector<double> y, dx, dw;

  PlainConvolution(const ConvolutionCase& c, const std::vector<double>& x,
                   const std::vector<double>& w, const std::vector<double>& dy)
      : y(dy.size()), dx(x.size()), dw(w.size()) {
    const std::int64_t down = positions(c.window.down(), c.x[2]);
    const std::int64_t across = positions(c.window.across(), c.x[3]);
    const auto& [size, stride, padding, ceil, dilation] = c.window;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t image = at / (c.out * down * across);
      const std::int64_t out = at / (down * across) % c.out;
      const std::int64_t top = at / across % down * stride.down - padding.down;
      const std::int64_t left = at % across * stride.across - padding.across;
      for (std::size_t of_channel = 0; of_channel < w.size() / static_cast<std::size_t>(c.out);
           ++of_channel) {
        const auto place = static_cast<std::int64_t>(of_channel);
        const std::int64_t channel = place / size.product();
        const std::int64_t row = top + place / size.across % size.down * dilation.down;
        const std::int64_t column = left + place % size.across * dilation.across;
        if (row < 0 || row >= c.x[2] || column < 0 || column >= c.x[3]) {
          continue;
        }
        const auto from =
            static_cast<std::size_t>(((image * c.x[1] + channel) * c.x[2] + row) * c.x[3] + column);
        const auto by = static_cast<std::size_t>(out * c.x[1] * size.product() + place);
        y[i] += x[from] * w[by];
        dx[from] += dy[i] * w[by];
        dw[by] += dy[i] * x[from];
      }
    }
  }
};

TEST(ReferenceConvolution, IsThePlainSum) {
  const std::vector<ConvolutionCase> cases{
      {{1, 1, 1, 1}, 1, {}},
      {{3, 2, 5, 7}, 3, {.size = 3, .stride = 2, .padding = 1}},
      {{2, 5, 9, 6}, 7, {.size = 5, .padding = 2}},
      {{2, 3, 23, 30}, 4, {.size = 11, .stride = 4, .padding = 2}},
      {{2, 3, 6, 300}, 2, {.size = 3, .padding = 1}},                // lines of one image apart
      {{2, 2, 40, 33}, 2, {.size = 4, .stride = 1, .padding = 3}},   // blocks of lines
      {{70, 2, 4, 4}, 3, {.size = 3, .padding = 1}},                 // groups of images
      {{9, 30, 5, 5}, 300, {.size = 6, .stride = 2, .padding = 2}},  // too many weights for parts
      {{3, 4, 1, 40}, 5, {.size = {1, 5}, .stride = {1, 2}, .padding = {0, 2}}},
      {{2, 3, 9, 12}, 4, {.size = {3, 2}, .stride = {2, 1}, .padding = {2, 0}, .dilation = {1, 3}}},
  };
  for (const ConvolutionCase& c : cases) {
    OneOp one;
    const Shape weights{c.out, c.x[1], c.window.size.down, c.window.size.across};
    const Shape result = windowed(c.window, c.x, c.out);
    SCOPED_TRACE(to_string(c.x) + " by " + to_string(weights));
    const Id x = one.tensor("x", c.x);
    const Id w = one.tensor("w", weights);
    const Id dy = one.tensor("dy", result);
    const Id y = one.tensor("y", result);
    const Id dx = one.tensor("dx", c.x);
    const Id dw = one.tensor("dw", weights);
    one.operation(Convolution{.x = x, .w = w, .y = y, .window = c.window});
    one.workload.steps[0].ops.emplace_back(
        ConvolutionGrad{.x = x, .w = w, .dy = dy, .dx = dx, .dw = dw, .window = c.window});
    const std::vector<std::vector<double>> values{
        numbers(elements(c.x), 1), numbers(elements(weights), 2), numbers(elements(result), 3)};
    const PlainConvolution plain(c, values[0], values[1], values[2]);
    EXPECT_LE(relative_error(result_of(one, values, y), plain.y), 1e-14);
    EXPECT_LE(relative_error(result_of(one, values, dx), plain.dx), 1e-14);
    EXPECT_LE(relative_error(result_of(one, values, dw), plain.dw), 1e-14);
  }
}

TEST(ReferenceConvolution, AddsTheBiasBeforeTheActivation) {
  OneOp one;
  const Id x = one.tensor("x", {1, 1, 1, 3});
  const Id w = one.tensor("w", {2, 1, 1, 1});
  const Id bias = one.tensor("bias", {2});
  const Id y = one.tensor("y", {1, 2, 1, 3});
  one.operation(Convolution{.x = x, .w = w, .bias = bias, .y = y, .activation = Activation::relu});
  expect_near(result_of(one, {{1, 2, 3}, {1, -1}, {-2, 2}}, y), {0, 0, 1, 1, 0, 0});
}

TEST(ReferenceMaxPool, TakesTheFirstOfTheLargestInTheImage) {
  const Window window{.size = 2, .stride = 2, .padding = 1, .ceil = true};
  OneOp one;
  const Id x = one.tensor("x", {1, 1, 3, 3});
  const Id y = one.tensor("y", {1, 1, 2, 2});
  const Id where = one.tensor("where", {1, 1, 2, 2}, Role::activation, Type::u8);
  one.operation(Pool{.x = x, .y = y, .where = where, .window = window});
  const std::vector<double> image{-1, -2, -2,  //
                                  -3, -5, -4,  //
                                  -3, -4, -4};
  // The first window has one element of the image, at its last place; among equal ones the first.
  expect_near(result_of(one, {image}, y), {-1, -2, -3, -4});
  expect_near(result_of(one, {image}, where), {3, 2, 1, 1});
}

TEST(ReferenceMaxPool, GivesEachGradientToOneElement) {
  OneOp one;
  const Id y = one.tensor("y", {1, 1, 1, 2});
  const Id where = one.tensor("where", {1, 1, 1, 2}, Role::activation, Type::u8);
  const Id dy = one.tensor("dy", {1, 1, 1, 2});
  const Id dx = one.tensor("dx", {1, 1, 2, 3});
  one.operation(
      PoolGrad{.made = y, .where = where, .dy = dy, .dx = dx, .window = {.size = 2, .stride = 1}});
  // Place 1 of the first window, place 0 of the second: both the element above, in the middle.
  expect_near(result_of(one, {{7, 7}, {1, 0}, {0.5, 2}}, dx), {0, 2.5, 0, 0, 0, 0});
  std::get<PoolGrad>(one.workload.steps[0].ops[0]).x_activation = Activation::relu;
  expect_near(result_of(one, {{0, 0}, {1, 3}, {0.5, 2}}, dx), {0, 0, 0, 0, 0, 0});
  expect_near(result_of(one, {{7, 3}, {1, 3}, {0.5, 2}}, dx), {0, 0.5, 0, 0, 0, 2});
}

TEST(ReferenceAveragePool, CountsThePaddingButNotWhatIsBeyondIt) {
  const Window window{.size = 3, .stride = 2, .padding = 1, .ceil = true};
  OneOp one;
  const Id x = one.tensor("x", {1, 1, 1, 4});
  const Id y = one.tensor("y", {1, 1, 1, 3});
  one.operation(Pool{.kind = PoolKind::average, .x = x, .y = y, .window = window});
  // All three rows are of the image or the padding. Columns: -1 to 1, 1 to 3, 3 and the padding.
  expect_near(result_of(one, {{9, 18, 36, 72}}, y), {27.0 / 9, 126.0 / 9, 72.0 / 6});
}

TEST(ReferenceDropout, KeepsWhatTheGeneratorSays) {
  OneOp one;
  const Id x = one.tensor("x", {1000});
  const Id step = one.tensor("step", {1}, Role::state, Type::i32);
  const Id y = one.tensor("y", {1000});
  one.operation(Dropout{.x = x, .y = y, .step = step, .probability = 0.2, .seed = 6});
  const std::vector<double> ones(1000, 1.0);
  const std::vector<double> kept = result_of(one, {ones, {4}}, y);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_DOUBLE_EQ(kept[i], dropout_uniform(6, 5, i) >= 0.2 ? 1.25 : 0);
    count += kept[i] > 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(count), 800, 40);  // three standard deviations
  expect_near(result_of(one, {ones, {4}}, step), {5});
  EXPECT_NE(result_of(one, {ones, {5}}, y), kept) << "the same elements in every step";
}

/// Of an LSTM of one unit: what the second time step reads of the first one is rounded.
TEST(ReferenceLstm, ReadsStatesAsTheyAreStored) {
  const std::vector<double> x{0.5, -1};
  const std::vector<double> w_ih{0.1, 0.2, 0.3, 0.4};
  const std::vector<double> w_hh{-0.5, 0.6, 0.7, -0.8};
  const std::vector<double> bias{0.05, 0.06, 0.07, 0.08};
  OneOp one;
  const auto stored = [&](const char* name, const Shape& shape) {
    return one.tensor(name, shape, Role::activation, Type::bf16);
  };
  Recurrent op{.cell = LstmCell{}};
  op.x = stored("x", {2, 1, 1});
  op.w_ih = stored("w_ih", {4, 1});
  op.w_hh = stored("w_hh", {4, 1});
  op.b_ih = one.tensor("b_ih", {4});
  op.b_hh = one.tensor("b_hh", {4});
  op.h = stored("h", {2, 1, 1});
  op.gates = stored("gates", {2, 1, 4});
  op.kept = one.tensor("c", {2, 1, 1});
  one.operation(op);
  const auto sigmoid = [](double sum) { return 1 / (1 + std::exp(-sum)); };
  const auto sum = [&](std::size_t time, std::size_t gate, double before) {  // i, f, g, o
    return w_ih[gate] * x[time] + w_hh[gate] * before + 2 * bias[gate];
  };
  const double c0 = sigmoid(sum(0, 0, 0)) * std::tanh(sum(0, 2, 0));
  const double exact = sigmoid(sum(0, 3, 0)) * std::tanh(c0);
  const double h0 = rounded_to_bf16(exact);
  ASSERT_NE(h0, exact);
  expect_near(
      result_of(one, {x, w_ih, w_hh, bias, bias}, op.kept),
      {c0, sigmoid(sum(1, 1, h0)) * c0 + sigmoid(sum(1, 0, h0)) * std::tanh(sum(1, 2, h0))});
}

/// How often it is said while that is done; who waits would have patience anew each time.
template <class Work>
int times_alive(const Work& work) {
  std::atomic<int> heard = 0;
  const AliveListener listener([&] { ++heard; }, 0);
  work();
  return heard;
}

TEST(Alive, IsSaidWithinLongWork) {
  constexpr int few = 4;  // of threads that would say so at once, one does
  constexpr std::int64_t many = 1 << 20;
  const std::vector<double> matrix(512 * 512);
  std::vector<double> product(512 * 512);
  EXPECT_GE(times_alive([&] {
              const MatrixView view{matrix.data(), 512, 1};
              multiply(512, 512, 512, view, view, product.data(), false);
            }),
            few);
  EXPECT_GE(times_alive([&] { uniform_rows({many}, 1, 2); }), few);
  const Training training{
      training_epoch(mlp("m", {1 << 9, 1 << 11, 2}, Activation::relu), {.rows = 4, .batch = 2}),
      uniform_rows({1 << 9}, 4, 2)};
  Reference reference(training.workload);
  set_data(reference, training.data);
  EXPECT_GE(times_alive([&] { restart(reference); }), few);
  const auto program = started(*make_cpu_backend(), training, 1);
  EXPECT_GE(times_alive([&] { restart(*program, training.workload); }), few);
  const Trajectory trajectory = reference_trajectory(training.workload, training.data, 2);
  EXPECT_GE(times_alive([&] { verify(*program, training.workload, trajectory); }), 2 * few);
}

TEST(Alive, IsToldNoMoreOftenThanAskedForAndNotInTimedLoops) {
  int told = 0;
  AliveListener listener([&] { ++told; }, 3600);
  alive();
  listener.wait_anew();
  alive();
  EXPECT_EQ(told, 0);
  const Training training{
      training_epoch(mlp("m", {4, 4, 2}, Activation::relu), {.rows = 4, .batch = 2}),
      uniform_rows({4}, 4, 2)};
  const auto program = started(*make_cpu_backend(), training, 1);
  EXPECT_EQ(times_alive([&] {
              program->enqueue(0, 2);
              program->wait();
            }),
            0);
}

}  // namespace

// ---- What the reference's operations are made of: its matrix product, and the windows of images.

namespace {

// ---- products

void expect_product(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a,
                    bool transpose_b, bool accumulate) {
  const std::vector<double> a = numbers(m * k, 1);
  const std::vector<double> b = numbers(k * n, 2);
  const MatrixView left = transpose_a ? MatrixView{a.data(), 1, m} : MatrixView{a.data(), k, 1};
  const MatrixView right = transpose_b ? MatrixView{b.data(), 1, k} : MatrixView{b.data(), n, 1};
  std::vector<double> c = numbers(m * n, 3);
  std::vector<double> expected = c;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double& sum = expected[static_cast<std::size_t>(i * n + j)];
      sum = accumulate ? sum : 0;
      for (std::int64_t p = 0; p < k; ++p) {
        sum += left.data[i * left.row + p * left.column] *
               right.data[p * right.row + j * right.column];
      }
    }
  }
  multiply(m, n, k, left, right, c.data(), accumulate);
  EXPECT_LE(relative_error(c, expected), 1e-14) << m << "x" << n << "x" << k;
}

TEST(Multiply, IsThePlainSum) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const bool accumulate : {false, true}) {
        expect_product(1, 1, 1, transpose_a, transpose_b, accumulate);
        expect_product(3, 5, 0, transpose_a, transpose_b, accumulate);
        expect_product(7, 23, 5, transpose_a, transpose_b, accumulate);
        expect_product(8, 24, 128, transpose_a, transpose_b, accumulate);
        expect_product(9, 25, 129, transpose_a, transpose_b, accumulate);
        expect_product(131, 197, 257, transpose_a, transpose_b, accumulate);
      }
    }
  }
}

// ---- windows

TEST(Window, HasAsManyPositionsAsInPyTorch) {
  const auto count = [](std::int64_t extent, std::int64_t size, std::int64_t stride,
                        std::int64_t padding, bool ceil) {
    return positions({.size = size, .stride = stride, .padding = padding, .ceil = ceil}, extent);
  };
  EXPECT_EQ(count(32, 5, 1, 2, false), 32);
  EXPECT_EQ(count(224, 11, 4, 2, false), 55);
  EXPECT_EQ(count(55, 3, 2, 0, false), 27);
  EXPECT_EQ(count(112, 3, 2, 1, false), 56);
  EXPECT_EQ(count(32, 3, 2, 0, false), 15);
  EXPECT_EQ(count(32, 3, 2, 0, true), 16);
  EXPECT_EQ(count(16, 3, 2, 0, true), 8);
  EXPECT_EQ(count(7, 3, 2, 0, true), 3);  // divides: nothing to round
  EXPECT_EQ(count(5, 5, 1, 0, false), 1);
  EXPECT_EQ(count(4, 5, 1, 0, false), 0);
  EXPECT_EQ(count(4, 5, 1, 0, true), 0);
  // Rounded up, the last window would begin behind the image: at row 3 of 2, and in the padding
  // behind it, at row 2 of 2.
  EXPECT_EQ(count(2, 1, 3, 0, true), 1);
  EXPECT_EQ(count(2, 2, 3, 1, true), 1);
  EXPECT_EQ(count(3, 2, 3, 1, true), 2);  // at row 2 of 3
}

TEST(Windows, LieInGroupsOfWholeImages) {
  for (const Shape& shape : {Shape{5, 2, 3, 3}, Shape{2000, 1, 2, 2}, Shape{3, 2, 100, 90},
                             Shape{1, 1, 2, 1000}, Shape{3, 4, 16, 16}}) {
    const Windows windows(shape, {.size = 3, .padding = 1});
    std::vector<int> covered(static_cast<std::size_t>(shape[0] * shape[2]));
    std::int64_t next_image = 0;
    for (const auto& group : windows.groups()) {
      EXPECT_EQ(group.front().image, next_image);
      next_image += group.front().images;
      for (const WindowBlock& block : group) {
        EXPECT_EQ(block.image, group.front().image);
        EXPECT_EQ(block.images, group.front().images);
        EXPECT_LE(windows.positions(block), std::max<std::int64_t>(256, shape[3]));
        for (std::int64_t image = 0; image < block.images; ++image) {
          for (std::int64_t line = 0; line < block.lines; ++line) {
            ++covered[static_cast<std::size_t>((block.image + image) * shape[2] + block.line +
                                               line)];
          }
        }
      }
    }
    EXPECT_EQ(next_image, shape[0]);
    EXPECT_EQ(covered, std::vector<int>(covered.size(), 1));
  }
}

}  // namespace

}  // namespace crossover::test
