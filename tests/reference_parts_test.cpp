// SPDX-License-Identifier: Apache-2.0
// What the reference's operations are made of: its matrix product, and the windows of images.
#include <gtest/gtest.h>

#include <algorithm>

#include "../src/reference/products.h"
#include "support.h"

namespace crossover::test {
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
