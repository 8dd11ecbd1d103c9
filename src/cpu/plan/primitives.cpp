// SPDX-License-Identifier: Apache-2.0
#include "primitives.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "../base/layout.h"
#include "../base/product_tiles.h"
#include "../base/threads.h"
#include "../base/vector.h"

namespace crossover::cpu {

// ---- Primitive

std::int64_t scratchpad_bytes(const dnnl::primitive_desc_base& description) {
  return static_cast<std::int64_t>(
      description.query_md(dnnl::query::exec_arg_md, DNNL_ARG_SCRATCHPAD).get_size());
}

BoundPrimitive::BoundPrimitive(const dnnl::primitive_desc_base& description,
                               const dnnl::engine& engine, dnnl::stream stream,
                               std::span<const int> arguments, std::span<const Operand> operands,
                               void* scratchpad)
    : stream_(std::move(stream)), primitive_(description.get()) {
  const auto add = [&](int argument, void* data) {
    memories_.emplace_back(description.query_md(dnnl::query::exec_arg_md, argument), engine, data);
    arguments_.push_back({argument, memories_.back().get()});
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    add(arguments[i], operands[i].at({}));
    if (operands[i].moves()) {
      moving_.push_back({memories_.back().get(), operands[i]});
    }
  }
  add(DNNL_ARG_SCRATCHPAD, scratchpad);
}

void BoundPrimitive::execute(const Position& now) {
  for (const Moving& moving : moving_) {
    dnnl::error::wrap_c_api(dnnl_memory_set_data_handle(moving.memory, moving.operand.at(now)),
                            "oneDNN could not move an operand");
  }
  // The C function, because the C++ one collects its arguments in a vector on every call.
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()),
                             arguments_.data()),
      "oneDNN could not execute a primitive");
}

// ---- Product

namespace {

dnnl::memory::desc matrix(Type type, std::int64_t rows, std::int64_t columns,
                          const std::array<std::int64_t, 2>& strides) {
  return {{rows, columns}, onednn_type(type), dnnl::memory::dims{strides[0], strides[1]}};
}

}  // namespace

std::string missing_for_products(Precision precision) {
  if (precision == Precision::f32) {
    return "";
  }
  if (precision != Precision::bf16) {
    return "the CPU backend multiplies f32 and bf16, not " + to_string(precision);
  }
  // oneDNN has a bf16 product from AVX-512 on; without the instructions it converts to f32, slowly.
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  for (const dnnl::cpu_isa with_bf16 :
       {dnnl::cpu_isa::avx512_core_bf16, dnnl::cpu_isa::avx512_core_fp16,
        dnnl::cpu_isa::avx512_core_amx, dnnl::cpu_isa::avx512_core_amx_fp16}) {
    if (isa == with_bf16) {
      return "";
    }
  }
  return "the CPU has no bf16 instructions (AVX512_BF16 or AMX), or oneDNN does "
         "not use them";
}

void require_products(Type type) {
  const Precision precision = type == Type::bf16  ? Precision::bf16
                              : type == Type::f16 ? Precision::f16
                                                  : Precision::f32;
  if (const std::string missing = missing_for_products(precision); !missing.empty()) {
    throw Unsupported(missing);
  }
}

namespace {

/// As it lies in a tensor.
dnnl::memory::desc plain_b(const ProductShape& shape) {
  return matrix(shape.operand_type, shape.k, shape.n, shape.b_strides);
}

/// As oneDNN likes it best.
dnnl::memory::desc any_b(const ProductShape& shape) {
  return {{shape.k, shape.n}, onednn_type(shape.operand_type), dnnl::memory::format_tag::any};
}

dnnl::matmul::primitive_desc describe_with(const dnnl::memory::desc& b, const dnnl::engine& engine,
                                           const ProductShape& shape) {
  require_products(shape.operand_type);
  const auto a = matrix(shape.operand_type, shape.m, shape.k, shape.a_strides);
  const auto c = matrix(shape.result_type, shape.m, shape.n, {shape.n, 1});
  if (!shape.bias) {
    return {engine, a, b, c, attributes(shape.activation, shape.accumulate)};
  }
  const auto bias = matrix(shape.result_type, 1, shape.n, {shape.n, 1});
  return {engine, a, b, bias, c, attributes(shape.activation, shape.accumulate)};
}

}  // namespace

dnnl::matmul::primitive_desc describe_product(const dnnl::engine& engine,
                                              const ProductShape& shape) {
  return describe_with(plain_b(shape), engine, shape);
}

namespace {

/// Whether c has to wait for the sum of the terms. Of one row or column oneDNN adds each term to
/// what c has, and of other sums each block of them, of some 384 terms without AVX-512. Each
/// addition rounds as c does, and of what is far smaller little is left. Beside so many terms
/// another pass over c should cost little: not yet measured on an idle machine.
bool sums_before_it_adds(const ProductShape& shape) {
  const std::int64_t few = std::min(shape.m, shape.n) == 1 ? 64 : 1024;
  return shape.accumulate && shape.k > few && shape.result_type == Type::f32;
}

void add_sum(Lowering& to, const Argument& sum, Argument c, std::int64_t count) {
  c.read = c.written = true;
  const int threads = to.threads_for_bytes(static_cast<double>(count * bytes(Type::f32)));
  to.add(OpCategory::product, threads, {sum, c}, [count](const Invocation& call) {
    const auto* from = call.operand<const float>(0);
    auto* into = call.operand<float>(1);
    split(call.threads, count, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        into[i] += from[i];
      }
    });
  });
}

/// b in memory of its own, laid there once.
Argument laid_once(Lowering& to, const ProductShape& shape, Argument b,
                   const dnnl::memory::desc& laid, int threads) {
  Argument kept = to.keep(static_cast<std::int64_t>(laid.get_size()));
  const auto describe = [plain = plain_b(shape), laid](const dnnl::engine& engine) {
    return dnnl::reorder::primitive_desc(engine, plain, engine, laid, attributes());
  };
  b.read = true;
  to.add_once(OpCategory::product, threads, {b, kept},
              Primitive{.describe = describe, .arguments = {DNNL_ARG_FROM, DNNL_ARG_TO}});
  return kept;
}

/// Whether our own loop takes less time: gradients of a narrow layer, where oneDNN's call takes as
/// long as the work, or copies a first factor that lies transposed. Up to so many operations it
/// took a tenth to all of oneDNN's time, with AVX-512 and AVX2, beyond them soon more. A second
/// factor that lies transposed, which it would have to copy, stays with oneDNN, and so do all
/// products of a build whose vectors are narrower than oneDNN's.
bool is_small(const ProductShape& shape, double flops) {
  constexpr double most_flops = 1e6;
  constexpr int least_lanes = 8;
  const bool has_best_vectors = lanes >= least_lanes && lanes >= onednn_lanes();
  const bool is_f32 = shape.operand_type == Type::f32 && shape.result_type == Type::f32;
  const bool is_plain =
      !shape.bias && !shape.accumulate && shape.activation == Activation::identity;
  const bool has_whole_tiles =
      shape.m >= tile_rows && shape.n % lanes == 0 && shape.b_strides[1] == 1;
  return has_best_vectors && is_f32 && is_plain && has_whole_tiles && flops <= most_flops;
}

/// The last rows, fewer than a tile's, are computed along with those before them once more.
void add_small_product(Lowering& to, const ProductShape& shape, ProductOperands operands) {
  operands.a.read = operands.b.read = operands.c.written = true;
  to.add(
      OpCategory::product, 1, {operands.a, operands.b, operands.c},
      [m = shape.m, n = shape.n, k = shape.k, of_a = shape.a_strides,
       of_b = shape.b_strides[0]](const Invocation& call) {
        const auto* a = call.operand<const float>(0);
        const auto* b = call.operand<const float>(1);
        auto* c = call.operand<float>(2);
        for (std::int64_t first = 0; first < m; first += tile_rows) {
          const std::int64_t row = std::min(first, m - tile_rows);
          multiply_rows({a + row * of_a[0], of_a[0], of_a[1]}, {b, of_b}, k, n, {c + row * n, n});
        }
      });
}

}  // namespace

void add_product(Lowering& to, const ProductShape& shape, ProductOperands operands) {
  const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                       static_cast<double>(shape.k);
  const int threads = to.threads_for_flops(flops);
  if (threads == 1 && is_small(shape, flops)) {
    add_small_product(to, shape, operands);
    return;
  }
  if (sums_before_it_adds(shape)) {
    const std::int64_t count = shape.m * shape.n;
    const Argument sum = to.reserve(count * bytes(Type::f32));
    ProductShape alone = shape;
    alone.accumulate = false;
    ProductOperands into = operands;
    into.c = sum;
    add_product(to, alone, into);
    add_sum(to, sum, operands.c, count);
    return;
  }
  dnnl::memory::desc b = plain_b(shape);
  if (shape.b_is_constant) {
    const Threads made_for(threads);
    const auto best = describe_with(any_b(shape), to.engine(), shape).weights_desc();
    // For AVX2 oneDNN 3.2 likes row-major best, which is slower where rows are 4 KiB apart.
    if (best.get_inner_nblks() > 0) {
      operands.b = laid_once(to, shape, operands.b, best, threads);
      b = best;
    }
  }
  Primitive matmul{
      .describe = [shape,
                   b](const dnnl::engine& engine) { return describe_with(b, engine, shape); },
      .arguments = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}};
  operands.a.read = operands.b.read = operands.bias.read = true;
  operands.c.written = true;
  operands.c.read |= shape.accumulate;
  std::vector<Argument> arguments{operands.a, operands.b, operands.c};
  if (shape.bias) {
    matmul.arguments.push_back(DNNL_ARG_BIAS);
    arguments.push_back(operands.bias);
  }
  to.add(OpCategory::product, threads, arguments, std::move(matmul));
}

// ---- Convolution

namespace {

using Description = dnnl::memory::desc;

/// The tensors of a convolution, whichever pass it is.
struct ConvolutionTensors {
  Id x, w, y;
};

/// What of oneDNN's arguments is the same in all passes.
struct Geometry {
  explicit Geometry(const Window& window)
      : strides{window.stride.down, window.stride.across},
        dilates{window.dilation.down - 1, window.dilation.across - 1},
        padding{window.padding.down, window.padding.across} {}

  dnnl::memory::dims strides, dilates, padding;
};

Description any_layout(const Tensor& tensor) {
  return {tensor.shape, onednn_type(tensor.type), dnnl::memory::format_tag::any};
}

/// The weights as oneDNN sees them: those of several groups have a first extent more.
Tensor weights(const Tensor& x, Tensor w) {
  const std::int64_t groups = groups_of(x, w);
  if (groups != 1) {
    w.shape = {groups, w.shape[0] / groups, w.shape[1], w.shape[2], w.shape[3]};
  }
  return w;
}

Description vector(const Tensor& bias) {
  return {bias.shape, onednn_type(bias.type), dnnl::memory::format_tag::a};
}

bool is_slow(const dnnl::primitive_desc_base& description) {
  const std::string name = description.impl_info_str();
  return name.rfind("ref", 0) == 0 || name.rfind("gemm", 0) == 0;
}

/// The images where they lie and the weights too, if oneDNN has a kernel for it; else it chooses
/// the layout of the weights, and if that does not help, images get copies with channels last,
/// for which it has a kernel for any number of channels. `describe` takes x, w and y.
template <class Describe>
auto fastest(const ConvolutionTensors& of, const Layout* w_layout, const Lowering& to,
             const Describe& describe) {
  using Result = decltype(describe(Description{}, Description{}, Description{}));
  const Threads made_for(convolution_threads(to[of.w], to[of.y], to));
  const Tensor weights_of_groups = weights(to[of.x], to[of.w]);
  const Description any = any_layout(weights_of_groups);
  const auto attempt = [&](const Description& x, const Description& w,
                           const Description& y) -> std::optional<Result> {
    try {
      Result result = describe(x, w, y);
      return is_slow(result) ? std::optional<Result>() : result;
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) {
        throw;
      }
      return {};  // a layout that it has no kernel for, or that is none of four dimensions
    }
  };
  const Description x = to.layout(of.x).description(to[of.x]);
  const Description y = to.layout(of.y).description(to[of.y]);
  if (w_layout != nullptr) {
    if (auto found = attempt(x, w_layout->description(weights_of_groups), y)) {
      return *found;
    }
  }
  if (auto found = attempt(x, any, y)) {
    return *found;
  }
  return describe(channels_last(to[of.x]), any, channels_last(to[of.y]));
}

dnnl::convolution_forward::primitive_desc forward(const Convolution& op, const Layout* w_layout,
                                                  const Lowering& to) {
  require_products(to[op.x].type);
  const Geometry geometry(op.window);
  return fastest({op.x, op.w, op.y}, w_layout, to,
                 [&](const Description& x, const Description& w, const Description& y) {
                   const auto bias = op.bias == none ? Description() : vector(to[op.bias]);
                   return dnnl::convolution_forward::primitive_desc(
                       to.engine(), dnnl::prop_kind::forward_training,
                       dnnl::algorithm::convolution_direct, x, w, bias, y, geometry.strides,
                       geometry.dilates, geometry.padding, geometry.padding,
                       attributes(op.activation));
                 });
}

/// What oneDNN wants to know of the forward pass.
dnnl::convolution_forward::primitive_desc hint(const ConvolutionGrad& op, const Lowering& to,
                                               const Description& x, const Description& y) {
  const Geometry geometry(op.window);
  return {to.engine(),
          dnnl::prop_kind::forward_training,
          dnnl::algorithm::convolution_direct,
          x,
          any_layout(weights(to[op.image()], to[op.w])),
          y,
          geometry.strides,
          geometry.dilates,
          geometry.padding,
          geometry.padding};
}

/// Kernels of oneDNN's that are known to go wrong. Those of single pixels that step over others
/// write behind their scratchpad where channels lie last and are fewer than a vector's lanes (its
/// issue 6035; 3.13 still does). Arm's for each channel leave rows of padded images out where they
/// step over others (issue 4124).
bool is_faulty(const dnnl::primitive_desc_base& description, const ConvolutionGrad& op,
               const Lowering& to) {
  const bool steps = op.window.stride.down > 1 || op.window.stride.across > 1;
  const std::string name = description.impl_info_str();
  const auto says = [&](const char* what) { return name.find(what) != std::string::npos; };
  if (!steps || !says("jit")) {
    return false;
  }
#if defined(__aarch64__)
  if (says("_dw")) {
    return true;
  }
#endif
  return says("_1x1") && to[op.dw].shape[1] < onednn_lanes();  // jit_bf16_1x1 as well
}

dnnl::convolution_backward_weights::primitive_desc backward_weights(const ConvolutionGrad& op,
                                                                    const Layout* dw_layout,
                                                                    const Lowering& to) {
  require_products(to[op.x].type);
  const Geometry geometry(op.window);
  return fastest({op.x, op.dw, op.dy}, dw_layout, to,
                 [&](const Description& x, const Description& dw, const Description& y) {
                   const auto bias = op.dbias == none ? Description() : vector(to[op.dbias]);
                   const auto known = hint(op, to, x, y);  // next_impl() reads it again
                   dnnl::convolution_backward_weights::primitive_desc described(
                       to.engine(), dnnl::algorithm::convolution_direct, x, dw, bias, y,
                       geometry.strides, geometry.dilates, geometry.padding, geometry.padding,
                       known, attributes());
                   while (is_faulty(described, op, to)) {
                     if (!described.next_impl()) {
                       throw dnnl::error(dnnl_unimplemented, "no other kernel");
                     }
                   }
                   return described;
                 });
}

}  // namespace

dnnl::convolution_forward::primitive_desc describe_forward(const Convolution& op,
                                                           const Lowering& to) {
  return forward(op, &to.layout(op.w), to);
}

dnnl::convolution_backward_data::primitive_desc describe_backward_data(const ConvolutionGrad& op,
                                                                       const Lowering& to) {
  require_products(to[op.dy].type);
  const Geometry geometry(op.window);
  return fastest({op.dx, op.w, op.dy}, nullptr, to,
                 [&](const Description& x, const Description& w, const Description& y) {
                   return dnnl::convolution_backward_data::primitive_desc(
                       to.engine(), dnnl::algorithm::convolution_direct, x, w, y, geometry.strides,
                       geometry.dilates, geometry.padding, geometry.padding, hint(op, to, x, y),
                       attributes());
                 });
}

dnnl::convolution_backward_weights::primitive_desc describe_backward_weights(
    const ConvolutionGrad& op, const Lowering& to) {
  return backward_weights(op, &to.layout(op.dw), to);
}

int convolution_threads(const Tensor& w, const Tensor& y, const Lowering& to) {
  const double products_of_an_output =
      static_cast<double>(elements(w.shape)) / static_cast<double>(w.shape[0]);
  return to.threads_for_flops(2 * static_cast<double>(elements(y.shape)) * products_of_an_output);
}

Layout weight_gradient_layout(const ConvolutionGrad& op, const Lowering& to) {
  return Layout(backward_weights(op, nullptr, to).diff_weights_desc());
}

Layout forward_weights_layout(const Convolution& op, const Lowering& to) {
  return Layout(forward(op, nullptr, to).weights_desc());
}

}  // namespace crossover::cpu
