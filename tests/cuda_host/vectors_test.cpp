// SPDX-License-Identifier: Apache-2.0
// Passes that take several neighbours at once, at sizes around their number and at addresses that
// are no multiples of it: what they make, and that they leave alone what lies beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/site.h"
#include "crossover/float16.h"
#include "owners.h"
#include "plan/launches/elementwise.h"

namespace cuda_host::test {
namespace {

using crossover::Activation;
using crossover::Bf16;
using crossover::F16;
using crossover::narrowed;
using crossover::Type;
using crossover::widened;
using crossover::cuda::call;
using crossover::cuda::Called;

/// Whole numbers from -8 to 8, which every type holds, in some order of their own.
float whole(std::int64_t i, int salt) {
  return static_cast<float>((i * 7 + salt * 5 + i * i % 11) % 17 - 8);
}

template <class T>
constexpr Type type_of() {
  return std::is_same_v<T, float> ? Type::f32 : std::is_same_v<T, Bf16> ? Type::bf16 : Type::f16;
}

/// An array in device memory with others beside it, from `offset` elements on.
template <class T>
struct Within {
  static constexpr std::int64_t beside = 16;
  std::int64_t offset, count;
  std::vector<T> before;
  OnDevice<T> memory;

  Within(std::int64_t from, std::int64_t size, int salt)
      : offset(from), count(size), before(filled(from + size + beside, salt)), memory(before) {}

  static std::vector<T> filled(std::int64_t size, int salt) {
    std::vector<T> values;
    for (std::int64_t i = 0; i < size; ++i) {
      values.push_back(narrowed<T>(whole(i, salt)));
    }
    return values;
  }
  [[nodiscard]] crossover::cuda::Address at() const { return {memory.data + offset, type_of<T>()}; }
  /// As it was made, element by element.
  [[nodiscard]] float operator[](std::int64_t i) const {
    return widened(before[static_cast<std::size_t>(offset + i)]);
  }

  /// expected(i) in each element, and everything else as it was.
  template <class Expected>
  void expect(const Expected& expected) const {
    ASSERT_EQ(synchronize(), cudaSuccess);
    const std::vector<T> now = memory.values();
    for (std::int64_t i = 0; i < std::ssize(now); ++i) {
      const bool inside = i >= offset && i < offset + count;
      const T value =
          inside ? narrowed<T>(expected(i - offset)) : before[static_cast<std::size_t>(i)];
      ASSERT_EQ(widened(now[static_cast<std::size_t>(i)]), widened(value))
          << "element " << i - offset << " of " << count << ", " << offset << " behind an address";
    }
  }
};

template <class T>
class EmulatedVectors : public testing::Test {};
using Stored = testing::Types<float, Bf16, F16>;
TYPED_TEST_SUITE(EmulatedVectors, Stored);

/// Around 4 and 8 neighbours, and more than the threads of a block.
const std::vector<std::int64_t> sizes{1, 3, 4, 5, 7, 8, 9, 15, 17, 64, 8 * 256 + 5};
const std::vector<std::int64_t> offsets{0, 1, 4, 8};

TYPED_TEST(EmulatedVectors, OfElementwisePasses) {
  using T = TypeParam;
  for (const std::int64_t size : sizes) {
    for (const std::int64_t offset : offsets) {
      const Within<T> a(0, size, 1);
      const Within<T> b(offset, size, 2);
      const Within<T> sum(0, size, 3);
      call(crossover::cuda::AddArguments<Called>{a.at(), b.at(), sum.at(), size}, {});
      sum.expect([&](std::int64_t i) { return a[i] + b[i]; });

      const Within<T> y(offset, size, 4);
      call(crossover::cuda::ActivateArguments<Called>{a.at(), y.at(), size, Activation::relu}, {});
      y.expect([&](std::int64_t i) { return std::max(0.0F, a[i]); });

      const Within<T> dx(offset, size, 5);  // in place
      call(crossover::cuda::ActivateGradArguments<Called>{b.at(), dx.at(), dx.at(), size,
                                                          Activation::relu},
           {});
      dx.expect([&](std::int64_t i) { return b[i] > 0 ? dx[i] : 0.0F; });
    }
  }
}

TYPED_TEST(EmulatedVectors, OfBiases) {
  using T = TypeParam;
  constexpr std::int64_t rows = 3;
  for (const std::int64_t columns : {1, 4, 7, 8, 12, 24}) {
    for (const std::int64_t offset : offsets) {
      const Within<float> x(offset, rows * columns, 1);
      const Within<T> bias(0, columns, 2);
      const Within<T> y(offset, rows * columns, 3);
      call(crossover::cuda::BiasActivateArguments<Called>{x.at(), bias.at(), y.at(), rows, columns,
                                                          Activation::relu},
           {});
      y.expect([&](std::int64_t i) { return std::max(0.0F, x[i] + bias[i % columns]); });

      const Within<T> of_channels(offset, columns, 4);
      const Within<T> image(0, rows * columns, 5);  // in place
      call(
          crossover::cuda::ChannelBiasArguments<Called>{
              image.at(), of_channels.at(), {.outer = rows, .channels = columns}},
          {});
      image.expect([&](std::int64_t i) { return image[i] + of_channels[i % columns]; });

      constexpr std::int64_t channels = 2;
      const Within<T> plain(offset, rows * channels * columns, 6);  // columns are pixels here
      call(
          crossover::cuda::ChannelBiasArguments<Called>{
              plain.at(), of_channels.at(), {rows, channels, columns}},
          {});
      plain.expect([&](std::int64_t i) { return plain[i] + of_channels[i / columns % channels]; });
    }
  }
}

TYPED_TEST(EmulatedVectors, OfSumsOfColumns) {
  using T = TypeParam;
  for (const std::int64_t rows : {1, 9, 65, 130}) {
    for (const std::int64_t columns : {1, 8, 12, 31, 40, 64}) {
      for (const std::int64_t offset : {0, 1}) {
        const Within<T> matrix(offset, rows * columns, 1);
        const auto sum_of = [&](std::int64_t column, std::int64_t first, std::int64_t last) {
          float sum = 0;
          for (std::int64_t row = first; row < std::min(last, rows); ++row) {
            sum += matrix[row * columns + column];
          }
          return sum;
        };
        for (const bool accumulate : {false, true}) {
          const Within<float> sums(0, columns, 2);
          call(crossover::cuda::ColumnSumsArguments<Called>{matrix.at(), sums.at(), rows, columns,
                                                            accumulate},
               {});
          sums.expect(
              [&](std::int64_t i) { return (accumulate ? sums[i] : 0.0F) + sum_of(i, 0, rows); });
        }
        const std::int64_t of_a_part = (rows + 1) / 2;
        const Within<float> parts(0, 2 * columns, 3);
        call(crossover::cuda::ColumnSumsArguments<Called>{matrix.at(), parts.at(), rows, columns,
                                                          false, 2},
             {});
        parts.expect([&](std::int64_t i) {
          const std::int64_t part = i / columns;
          return sum_of(i % columns, part * of_a_part, (part + 1) * of_a_part);
        });
      }
    }
  }
}

TEST(EmulatedVectorsOfF32, OfSumsOfRows) {
  for (const std::int64_t rows : {1, 9, 300}) {
    for (const std::int64_t columns : {2, 12, 49, 300}) {
      for (const std::int64_t offset : {0, 1}) {
        const Within<float> matrix(offset, rows * columns, 1);
        const Within<float> sums(0, rows, 2);
        call(crossover::cuda::RowSumsArguments<Called>{matrix.at(), sums.at(), rows, columns}, {});
        sums.expect([&](std::int64_t row) {
          float sum = 0;
          for (std::int64_t column = 0; column < columns; ++column) {
            sum += matrix[row * columns + column];
          }
          return sum;
        });
      }
    }
  }
}

TYPED_TEST(EmulatedVectors, OfCasts) {
  using T = TypeParam;
  for (const std::int64_t size : sizes) {
    for (const std::int64_t offset : offsets) {
      const Within<float> x(offset, size, 1);
      const Within<T> narrow(0, size, 2);
      crossover::cuda::CastArguments<Called> cast;
      cast.casts.span[cast.casts.count++] = {x.at(), narrow.at(), size};
      call(cast, {});
      narrow.expect([&](std::int64_t i) { return x[i]; });

      const Within<T> same(offset, size, 3);
      cast.casts.span[0] = {narrow.at(), same.at(), size};
      call(cast, {});
      same.expect([&](std::int64_t i) { return x[i]; });
    }
  }
}

}  // namespace
}  // namespace cuda_host::test
