// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <type_traits>
#include <utility>

#include "../base/threads.h"
#include "../fused/kernels.h"
#include "../plan/primitives.h"
#include "crossover/float16.h"
#include "crossover/operations/dense.h"
#include "operations.h"

namespace crossover::cpu {

// ---- Sums of columns

namespace {

/// Of a few columns at a time, so that their sums stay in registers, and of a few rows, so that no
/// term meets a sum that is far larger. What they are added to is rounded once.
template <class T>
void column_sums(int threads, const T* matrix, std::int64_t rows, std::int64_t columns,
                 bool accumulate, float* sums) {
  split(threads, columns, [=](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t together = 64;
    constexpr std::int64_t rows_together = 512;
    for (std::int64_t first = begin; first < end; first += together) {
      const std::int64_t width = std::min(together, end - first);
      std::array<float, together> total{};
      const auto add_rows = [&](std::int64_t from, std::int64_t to, auto count) {
        std::array<float, together> sum{};
        for (std::int64_t r = from; r < to; ++r) {
          const T* row = matrix + r * columns + first;
          for (std::int64_t c = 0; c < count; ++c) {
            sum[static_cast<std::size_t>(c)] += widened(row[c]);
          }
        }
        std::transform(total.begin(), total.end(), sum.begin(), total.begin(), std::plus<>());
      };
      for (std::int64_t from = 0; from < rows; from += rows_together) {
        const std::int64_t to = std::min(rows, from + rows_together);
        if (width == together) {
          add_rows(from, to, std::integral_constant<std::int64_t, together>{});
        } else {
          add_rows(from, to, width);
        }
      }
      for (std::int64_t c = 0; c < width; ++c) {
        sums[first + c] = (accumulate ? sums[first + c] : 0) + total[static_cast<std::size_t>(c)];
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

// ---- A linear layer: one product forward; two, and a sum for the bias, backward.

namespace {

/// Of one sample on one thread, where a call of oneDNN's takes longer than the work of a small
/// layer.
void add_row(const Linear& op, Lowering& to) {
  const std::int64_t in = to[op.w].shape[1];
  const std::int64_t out = to[op.w].shape[0];
  const fused::PassLayer layer{.in = in,
                               .out = out,
                               .activation = op.activation,
                               .by_inputs = true,
                               .ld = in,
                               .x_stride = in,
                               .y_stride = out};
  Loop run = [layer, has_bias = op.bias != none,
              pass = fused::best_kernels().pass](const Invocation& invocation) {
    fused::PassLayer now = layer;
    now.weights = invocation.operand<const float>(1);
    now.bias = has_bias ? invocation.operand<const float>(3) : nullptr;
    pass(now, invocation.operand<const float>(0), invocation.operand<float>(2), 1);
  };
  if (op.bias == none) {
    to.add(OpCategory::product, 1, {reads(op.x), reads(op.w), writes(op.y)}, std::move(run));
  } else {
    to.add(OpCategory::product, 1, {reads(op.x), reads(op.w), writes(op.y), reads(op.bias)},
           std::move(run));
  }
}

}  // namespace

void lower(const Linear& op, Lowering& to) {
  const std::int64_t in = to[op.w].shape[1];
  const std::int64_t out = to[op.w].shape[0];
  const bool is_f32 =
      to[op.x].type == Type::f32 && to[op.w].type == Type::f32 && to[op.y].type == Type::f32;
  if (is_f32 && leading(to[op.x].shape) == 1 &&
      to.threads_for_flops(2 * static_cast<double>(in * out)) == 1) {
    add_row(op, to);
    return;
  }
  add_product(to,
              {.m = leading(to[op.x].shape),
               .n = out,
               .k = in,
               .a_strides = {in, 1},
               .b_strides = {1, in},
               .bias = op.bias != none,
               .activation = op.activation,
               .b_is_constant = is_constant(to, op.w),
               .operand_type = to[op.x].type,
               .result_type = to[op.y].type},
              {.a = {op.x}, .b = {op.w}, .bias = {op.bias}, .c = {op.y}});
}

void lower(const LinearGrad& op, Lowering& to) {
  const std::int64_t in = to[op.w].shape[1];
  const std::int64_t out = to[op.w].shape[0];
  const std::int64_t batch = leading(to[op.x].shape);
  if (op.dx != none) {
    add_product(to,
                {.m = batch,
                 .n = in,
                 .k = out,
                 .a_strides = {out, 1},
                 .b_strides = {in, 1},
                 .operand_type = to[op.x].type,
                 .result_type = to[op.dx].type},
                {.a = {op.dy}, .b = {op.w}, .c = {op.dx}});
    if (op.x_activation != Activation::identity) {
      lower(ActivateGrad{.at = op.x, .dy = op.dx, .dx = op.dx, .activation = op.x_activation}, to);
    }
  }
  if (op.dbias != none) {
    add_column_sums(to, op.dy, op.dbias, op.accumulate);
  }
  if (op.dw == none) {
    return;
  }
  add_product(to,
              {.m = out,
               .n = in,
               .k = batch,
               .a_strides = {1, out},
               .b_strides = {in, 1},
               .accumulate = op.accumulate,
               .operand_type = to[op.x].type,
               .result_type = to[op.dw].type},
              {.a = {op.dy}, .b = {op.x}, .c = {op.dw}});
}

// ---- Gemm

void lower(const Gemm& op, Lowering& to) {
  const std::int64_t m = to[op.c].shape[0];
  const std::int64_t n = to[op.c].shape[1];
  const std::int64_t k = to[op.a].shape[op.transpose_a ? 0 : 1];
  ProductShape shape{.m = m,
                     .n = n,
                     .k = k,
                     .a_strides = {k, 1},
                     .b_strides = {n, 1},
                     .operand_type = to[op.a].type,
                     .result_type = to[op.c].type};
  if (op.transpose_a) {
    shape.a_strides = {1, m};
  }
  if (op.transpose_b) {
    shape.b_strides = {1, k};
  }
  add_product(to, shape, {.a = {op.a}, .b = {op.b}, .c = {op.c}});
}

// ---- Products of sequences as one product of oneDNN's: samples and heads are dimensions of it,
// and sequences are read as they lie.

namespace {

/// A single sample is no dimension: oneDNN 3.7's product for SVE reads the heads of one wrongly.
dnnl::memory::desc matrices(const MatricesOf& of, std::int64_t heads, Type type) {
  dnnl::memory::dims sizes{of.samples, heads, of.rows, of.columns};
  dnnl::memory::dims steps{of.sample_step, of.head_step, of.row_step, of.column_step};
  if (of.samples == 1) {
    sizes.erase(sizes.begin());
    steps.erase(steps.begin());
  }
  return {sizes, onednn_type(type), steps};
}

}  // namespace

void lower(const Matmul& op, Lowering& to) {
  const Type type = to[op.y].type;
  const MatricesOf left(to[op.a].shape, op.heads, op.transpose_a);
  const dnnl::memory::desc a = matrices(left, op.heads, type);
  const auto b = matrices({to[op.b].shape, op.heads, op.transpose_b}, op.heads, type);
  const auto y = matrices({to[op.y].shape, op.heads, false}, op.heads, type);
  Primitive product{
      .describe =
          [a, b, y, type, scale = static_cast<float>(op.scale)](const dnnl::engine& engine) {
            require_products(type);
            dnnl::primitive_attr attributes = cpu::attributes();
            if (scale != 1) {
              dnnl::post_ops after;
              after.append_eltwise(dnnl::algorithm::eltwise_linear, scale, 0);
              attributes.set_post_ops(after);
            }
            return dnnl::matmul::primitive_desc(engine, a, b, y, attributes);
          },
      .arguments = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}};
  const double flops = 2.0 * static_cast<double>(to.count(op.y) * left.columns);
  to.add(OpCategory::product, to.threads_for_flops(flops), {reads(op.a), reads(op.b), writes(op.y)},
         std::move(product));
}

}  // namespace crossover::cpu
