// SPDX-License-Identifier: Apache-2.0
// Products of sequences as one product of oneDNN's: samples and heads are dimensions of it, and
// sequences are read as they lie.
#include "crossover/operations/matmul.h"

#include "../post_operations.h"
#include "../product.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

dnnl::memory::desc matrices(const MatricesOf& of, std::int64_t heads, Type type) {
  return {{of.samples, heads, of.rows, of.columns},
          onednn_type(type),
          dnnl::memory::dims{of.sample_step, of.head_step, of.row_step, of.column_step}};
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
