// SPDX-License-Identifier: Apache-2.0
#include "column_sums.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "crossover/float16.h"
#include "threads.h"

namespace crossover::cpu {
namespace {

/// Of a few columns at a time, so that their sums stay in registers and what they are added to is
/// rounded once.
template <class T>
void column_sums(int threads, const T* matrix, std::int64_t rows, std::int64_t columns,
                 bool accumulate, float* sums) {
  split(threads, columns, [=](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t together = 64;
    for (std::int64_t first = begin; first < end; first += together) {
      const std::int64_t width = std::min(together, end - first);
      std::array<float, together> sum{};
      const auto add_rows = [&](auto count) {
        for (std::int64_t r = 0; r < rows; ++r) {
          const T* row = matrix + r * columns + first;
          for (std::int64_t c = 0; c < count; ++c) {
            sum[static_cast<std::size_t>(c)] += widened(row[c]);
          }
        }
      };
      if (width == together) {
        add_rows(std::integral_constant<std::int64_t, together>{});
      } else {
        add_rows(width);
      }
      for (std::int64_t c = 0; c < width; ++c) {
        sums[first + c] = (accumulate ? sums[first + c] : 0) + sum[static_cast<std::size_t>(c)];
      }
    }
  });
}

}  // namespace

void add_column_sums(Lowering& to, Id matrix, Id sums, bool accumulate) {
  with_float(to[matrix].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(matrix),
           {reads(matrix), accumulate ? updates(sums) : writes(sums)},
           [rows = leading(to[matrix].shape), columns = to[matrix].shape.back(),
            accumulate](const Invocation& call) {
             column_sums(call.threads, call.operand<const T>(0), rows, columns, accumulate,
                         call.operand<float>(1));
           });
  });
}

}  // namespace crossover::cpu
