// SPDX-License-Identifier: Apache-2.0
#include "convolution.h"

#include <optional>
#include <string>

#include "image.h"
#include "post_operations.h"
#include "product.h"
#include "threads.h"
#include "winograd/passes.h"

namespace crossover::cpu {
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

dnnl::convolution_backward_weights::primitive_desc backward_weights(const ConvolutionGrad& op,
                                                                    const Layout* dw_layout,
                                                                    const Lowering& to) {
  require_products(to[op.x].type);
  const Geometry geometry(op.window);
  return fastest({op.x, op.dw, op.dy}, dw_layout, to,
                 [&](const Description& x, const Description& dw, const Description& y) {
                   const auto bias = op.dbias == none ? Description() : vector(to[op.dbias]);
                   return dnnl::convolution_backward_weights::primitive_desc(
                       to.engine(), dnnl::algorithm::convolution_direct, x, dw, bias, y,
                       geometry.strides, geometry.dilates, geometry.padding, geometry.padding,
                       hint(op, to, x, y), attributes());
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
  return winograd::takes(op, to) ? Layout()
                                 : Layout(backward_weights(op, nullptr, to).diff_weights_desc());
}

Layout forward_weights_layout(const Convolution& op, const Lowering& to) {
  return winograd::takes(op, to) ? Layout() : Layout(forward(op, nullptr, to).weights_desc());
}

}  // namespace crossover::cpu
