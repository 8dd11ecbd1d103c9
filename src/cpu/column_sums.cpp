// SPDX-License-Identifier: Apache-2.0
#include "column_sums.h"

#include <algorithm>

#include "crossover/float16.h"
#include "split.h"

namespace crossover::cpu {
namespace {

template <class T>
void column_sums(int threads, const T* matrix, std::int64_t rows, std::int64_t columns,
                 bool accumulate, float* sums) {
  split(threads, columns, [=](std::int64_t begin, std::int64_t end) {
    if (!accumulate) {
      std::fill(sums + begin, sums + end, 0.0F);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* row = matrix + r * columns;
      for (std::int64_t c = begin; c < end; ++c) {
        sums[c] += widened(row[c]);
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
