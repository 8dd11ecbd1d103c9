// SPDX-License-Identifier: Apache-2.0
#include "operation_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../src/step/overload.h"
#include "crossover/float16.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "crossover/window.h"
#include "support.h"

namespace crossover::test {
namespace {

using Case = OperationCase;

Case linear(const Shape& x, std::int64_t out, bool bias, Activation activation,
            const std::string& name) {
  OneOp one;
  Shape y = x;
  y.back() = out;
  const Id in = one.tensor("x", x);
  const Id w = one.tensor("w", {out, x.back()}, Role::parameter);
  const Id b = bias ? one.tensor("bias", {out}, Role::parameter) : none;
  one.operation(
      Linear{.x = in, .w = w, .bias = b, .y = one.tensor("y", y), .activation = activation});
  return {name, one.workload};
}

Case linear_grad(const Shape& x, std::int64_t out, bool bias, bool dx, Activation activation,
                 bool accumulate, const std::string& name) {
  OneOp one;
  Shape y = x;
  y.back() = out;
  LinearGrad op{.x = one.tensor("x", x),
                .w = one.tensor("w", {out, x.back()}, Role::parameter),
                .dy = one.tensor("dy", y),
                .dx = none,
                .dw = one.tensor("dw", {out, x.back()}, Role::gradient),
                .dbias = none,
                .x_activation = activation,
                .accumulate = accumulate};
  if (bias) {
    op.dbias = one.tensor("dbias", {out}, Role::gradient);
  }
  if (dx) {
    op.dx = one.tensor("dx", x);
  }
  return {name, one.operation(op).workload};
}

Case activate_case(const Shape& shape, Activation activation, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", shape);
  return {name,
          one.operation(Activate{.x = x, .y = one.tensor("y", shape), .activation = activation})
              .workload};
}

Case activate_grad_case(const Shape& shape, Activation activation, const std::string& name) {
  OneOp one;
  const Id y = one.tensor("y", shape);
  const Id dy = one.tensor("dy", shape);
  return {name, one
                    .operation(ActivateGrad{
                        .y = y, .dy = dy, .dx = one.tensor("dx", shape), .activation = activation})
                    .workload};
}

Case add_case(const Shape& shape, const std::string& name) {
  OneOp one;
  const Id a = one.tensor("a", shape);
  const Id b = one.tensor("b", shape);
  return {name, one.operation(Add{.a = a, .b = b, .y = one.tensor("y", shape)}).workload};
}

Case cast_case(const Shape& shape, Type from, Type to, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", shape, Role::activation, from);
  const Id y = one.tensor("y", shape, Role::activation, to);
  return {name, one.operation(Cast{.x = x, .y = y}).workload};
}

/// Two casts, the second of which reads what the first one makes.
Case cast_back_case(Type type, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", {7, 5});
  const Id y = one.tensor("y", {7, 5}, Role::activation, type);
  const Id back = one.tensor("back", {7, 5});
  one.operation(Cast{.x = x, .y = y});
  one.workload.steps[0].ops.emplace_back(Cast{.x = y, .y = back});
  return {name, one.workload};
}

/// What an operation stores as f32 or in 16 bits, as the Workload's precision says.
std::vector<Id> numbers_of(const Op& op) {
  return std::visit(Overload{
                        [](const Linear& o) {
                          return std::vector{o.x, o.w, o.bias, o.y};
                        },
                        [](const LinearGrad& o) {
                          return std::vector{o.x, o.w, o.dy, o.dx};
                        },
                        [](const Activate& o) {
                          return std::vector{o.x, o.y};
                        },
                        [](const ActivateGrad& o) {
                          return std::vector{o.y, o.dy, o.dx};
                        },
                        [](const Add& o) {
                          return std::vector{o.a, o.b, o.y};
                        },
                        [](const Gemm& o) {
                          return std::vector{o.a, o.b, o.c};
                        },
                        [](const SoftmaxCrossEntropy& o) { return std::vector{o.dlogits}; },
                        [](const Convolution& o) {
                          return std::vector{o.x, o.w, o.y};
                        },
                        [](const ConvolutionGrad& o) {
                          return std::vector{o.x, o.w, o.dy, o.dx};
                        },
                        [](const MaxPool& o) {
                          return std::vector{o.x, o.y};
                        },
                        [](const MaxPoolGrad& o) {
                          return std::vector{o.y, o.dy, o.dx};
                        },
                        [](const AveragePool& o) {
                          return std::vector{o.x, o.y};
                        },
                        [](const AveragePoolGrad& o) {
                          return std::vector{o.x, o.dy, o.dx};
                        },
                        [](const GlobalAveragePool& o) {
                          return std::vector{o.x, o.y};
                        },
                        [](const GlobalAveragePoolGrad& o) {
                          return std::vector{o.dy, o.dx};
                        },
                        [](const BatchNorm& o) {
                          return std::vector{o.x, o.addend, o.y};
                        },
                        [](const BatchNormGrad& o) {
                          return std::vector{o.x, o.y, o.dy, o.dy_more, o.dx, o.daddend};
                        },
                        [](const Dropout& o) {
                          return std::vector{o.x, o.y};
                        },
                        [](const DropoutGrad& o) {
                          return std::vector{o.dy, o.dx};
                        },
                        [](const Embedding& o) {
                          return std::vector{o.table, o.y};
                        },
                        [](const EmbeddingGrad& o) { return std::vector{o.dy}; },
                        [](const Lstm& o) {
                          return std::vector{o.x, o.w_ih, o.w_hh, o.h, o.gates};
                        },
                        [](const LstmGrad& o) {
                          return std::vector{o.x,     o.w_ih, o.w_hh,   o.h,
                                             o.gates, o.dh,   o.dgates, o.dx};
                        },
                        [](const Reshape& o) {
                          return std::vector{o.x, o.y};
                        },
                        [](const auto& /*f32 in any precision*/) { return std::vector<Id>{}; },
                    },
                    op);
}

/// The case with all in 16 bits that can be; `f32_result`: but for what a Linear makes.
Case in_type(Case c, Type type, bool f32_result = false) {
  Op& op = c.workload.steps[0].ops[0];
  for (const Id id : numbers_of(op)) {
    if (id != none) {
      c.workload.tensors[static_cast<std::size_t>(id)].type = type;
    }
  }
  if (const auto* linear = std::get_if<Linear>(&op); linear != nullptr && f32_result) {
    for (const Id id : {linear->bias, linear->y}) {
      if (id != none) {
        c.workload.tensors[static_cast<std::size_t>(id)].type = Type::f32;
      }
    }
  }
  if (auto* loss = std::get_if<SoftmaxCrossEntropy>(&op)) {
    loss->scale *= 1024;
  }
  c.name += '_';
  c.name += to_string(type);
  c.name += f32_result ? "_to_f32" : "";
  return c;
}

Case loss_case(std::int64_t batch, std::int64_t classes, double scale, const std::string& name) {
  OneOp one;
  const Id logits = one.tensor("logits", {batch, classes});
  const Id labels = one.tensor("labels", {batch}, Role::activation, Type::i32);
  const Id loss = one.tensor("loss", {1}, Role::loss);
  return {name,
          one.operation(SoftmaxCrossEntropy{.logits = logits,
                                            .labels = labels,
                                            .loss = loss,
                                            .dlogits = one.tensor("dlogits", {batch, classes}),
                                            .scale = scale})
              .workload,
          classes};
}

/// Of sequences, time first; labels batch first.
Case loss_over_time(std::int64_t time, std::int64_t batch, std::int64_t classes,
                    const std::string& name) {
  OneOp one;
  const Shape shape{time, batch, classes};
  const Id logits = one.tensor("logits", shape);
  const Id labels = one.tensor("labels", {batch, time}, Role::activation, Type::i32);
  const Id loss = one.tensor("loss", {1}, Role::loss);
  one.operation(SoftmaxCrossEntropy{
      .logits = logits, .labels = labels, .loss = loss, .dlogits = one.tensor("dlogits", shape)});
  return {name, one.workload, classes};
}

// ---- images

Shape result_shape(const Shape& x, std::int64_t channels, const Window& window) {
  return {x[0], channels, positions(window, x[2]), positions(window, x[3])};
}

Case convolution(const Shape& x, std::int64_t out, const Window& window, bool bias,
                 Activation activation, const std::string& name) {
  OneOp one;
  const Id in = one.tensor("x", x);
  const Id w = one.tensor("w", {out, x[1], window.size, window.size}, Role::parameter);
  const Id b = bias ? one.tensor("bias", {out}, Role::parameter) : none;
  one.operation(Convolution{.x = in,
                            .w = w,
                            .bias = b,
                            .y = one.tensor("y", result_shape(x, out, window)),
                            .window = window,
                            .activation = activation});
  return {"Convolution_" + name, one.workload};
}

Case convolution_grad(const Shape& x, std::int64_t out, const Window& window, bool bias, bool dx,
                      const std::string& name) {
  OneOp one;
  const Shape w{out, x[1], window.size, window.size};
  ConvolutionGrad op{.x = one.tensor("x", x),
                     .w = one.tensor("w", w, Role::parameter),
                     .dy = one.tensor("dy", result_shape(x, out, window)),
                     .dx = none,
                     .dw = one.tensor("dw", w, Role::gradient),
                     .dbias = none,
                     .window = window};
  if (bias) {
    op.dbias = one.tensor("dbias", {out}, Role::gradient);
  }
  if (dx) {
    op.dx = one.tensor("dx", x);
  }
  return {"ConvolutionGrad_" + name, one.operation(op).workload};
}

Case max_pool(const Shape& x, const Window& window, const std::string& name,
              const std::string& x_name = "x") {
  OneOp one;
  const Shape y = result_shape(x, x[1], window);
  const Id in = one.tensor(x_name, x);
  const Id where = one.tensor("where", y, Role::activation, Type::u8);
  one.operation(MaxPool{.x = in, .y = one.tensor("y", y), .where = where, .window = window});
  return {"MaxPool_" + name, one.workload};
}

Case max_pool_grad(const Shape& x, const Window& window, Activation activation,
                   const std::string& name) {
  OneOp one;
  const Shape y = result_shape(x, x[1], window);
  MaxPoolGrad op{.y = none,
                 .where = one.tensor("where", y, Role::activation, Type::u8),
                 .dy = one.tensor("dy", y),
                 .dx = one.tensor("dx", x),
                 .window = window,
                 .x_activation = activation};
  if (activation != Activation::identity) {
    op.y = one.tensor("y", y);
  }
  return {"MaxPoolGrad_" + name, one.operation(op).workload};
}

Case average_pool(const Shape& x, const Window& window, const std::string& name) {
  OneOp one;
  const Id in = one.tensor("x", x);
  const Id y = one.tensor("y", result_shape(x, x[1], window));
  one.operation(AveragePool{.x = in, .y = y, .window = window});
  return {"AveragePool_" + name, one.workload};
}

Case average_pool_grad(const Shape& x, const Window& window, Activation activation,
                       const std::string& name) {
  OneOp one;
  AveragePoolGrad op{.x = none,
                     .dy = one.tensor("dy", result_shape(x, x[1], window)),
                     .dx = one.tensor("dx", x),
                     .window = window,
                     .x_activation = activation};
  if (activation != Activation::identity) {
    op.x = one.tensor("x", x);
  }
  return {"AveragePoolGrad_" + name, one.operation(op).workload};
}

Case global_average_pool(const Shape& x, const std::string& name) {
  OneOp one;
  const Id in = one.tensor("x", x);
  one.operation(GlobalAveragePool{.x = in, .y = one.tensor("y", {x[0], x[1]})});
  return {"GlobalAveragePool_" + name, one.workload};
}

Case global_average_pool_grad(const Shape& x, const std::string& name) {
  OneOp one;
  const Id dy = one.tensor("dy", {x[0], x[1]});
  one.operation(GlobalAveragePoolGrad{.dy = dy, .dx = one.tensor("dx", x)});
  return {"GlobalAveragePoolGrad_" + name, one.workload};
}

Case batch_norm(const Shape& x, bool addend, Activation activation, const std::string& name) {
  OneOp one;
  const Shape channels{x[1]};
  BatchNorm op{.x = one.tensor("x", x),
               .scale = one.tensor("scale", channels, Role::parameter),
               .shift = one.tensor("shift", channels, Role::parameter),
               .addend = none,
               .y = one.tensor("y", x),
               .mean = one.tensor("mean", channels),
               .inverse_deviation = one.tensor("inverse deviation", channels),
               .activation = activation};
  if (addend) {
    op.addend = one.tensor("addend", x);
  }
  return {"BatchNorm_" + name, one.operation(op).workload};
}

Case batch_norm_grad(const Shape& x, bool more, bool addend, Activation activation,
                     const std::string& name) {
  OneOp one;
  const Shape channels{x[1]};
  BatchNormGrad op{.x = one.tensor("x", x),
                   .scale = one.tensor("scale", channels, Role::parameter),
                   .mean = one.tensor("mean", channels),
                   .inverse_deviation = one.tensor("inverse deviation positive", channels),
                   .y = none,
                   .dy = one.tensor("dy", x),
                   .dy_more = none,
                   .dx = one.tensor("dx", x),
                   .dscale = one.tensor("dscale", channels, Role::gradient),
                   .dshift = one.tensor("dshift", channels, Role::gradient),
                   .daddend = none,
                   .activation = activation};
  if (activation != Activation::identity) {
    op.y = one.tensor("y", x);
  }
  if (more) {
    op.dy_more = one.tensor("dy more", x);
  }
  if (addend) {
    op.daddend = one.tensor("daddend", x);
  }
  return {"BatchNormGrad_" + name, one.operation(op).workload};
}

Case dropout(const Shape& shape, double probability, std::int64_t seed, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", shape);
  const Id step = one.tensor("step", {1}, Role::state, Type::i32);
  one.operation(Dropout{
      .x = x, .y = one.tensor("y", shape), .step = step, .probability = probability, .seed = seed});
  return {"Dropout_" + name, one.workload, 50};
}

Case dropout_grad(const Shape& shape, double probability, std::int64_t seed,
                  const std::string& name) {
  OneOp one;
  const Id dy = one.tensor("dy", shape);
  const Id step = one.tensor("step", {1}, Role::state, Type::i32);
  one.operation(DropoutGrad{.dy = dy,
                            .dx = one.tensor("dx", shape),
                            .step = step,
                            .probability = probability,
                            .seed = seed});
  return {"DropoutGrad_" + name, one.workload, 50};
}

Case reshape(const Shape& from, const Shape& to, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", from);
  one.operation(Reshape{.x = x, .y = one.tensor("y", to)});
  return {"Reshape_" + name, one.workload};
}

// ---- sequences

Case embedding(std::int64_t time, std::int64_t batch, std::int64_t vocabulary, std::int64_t width,
               const std::string& name) {
  OneOp one;
  const Id tokens = one.tensor("tokens", {batch, time}, Role::activation, Type::i32);
  const Id table = one.tensor("table", {vocabulary, width}, Role::parameter);
  one.operation(
      Embedding{.tokens = tokens, .table = table, .y = one.tensor("y", {time, batch, width})});
  return {"Embedding_" + name, one.workload, vocabulary};
}

Case embedding_grad(std::int64_t time, std::int64_t batch, std::int64_t vocabulary,
                    std::int64_t width, const std::string& name) {
  OneOp one;
  const Id tokens = one.tensor("tokens", {batch, time}, Role::activation, Type::i32);
  const Id dy = one.tensor("dy", {time, batch, width});
  const Id dtable = one.tensor("dtable", {vocabulary, width}, Role::gradient);
  one.operation(EmbeddingGrad{.tokens = tokens, .dy = dy, .dtable = dtable});
  return {"EmbeddingGrad_" + name, one.workload, vocabulary};
}

Case lstm(std::int64_t time, std::int64_t batch, std::int64_t in, std::int64_t hidden,
          const std::string& name) {
  OneOp one;
  const std::int64_t wide = 4 * hidden;
  Lstm op{.x = one.tensor("x", {time, batch, in}),
          .w_ih = one.tensor("w_ih", {wide, in}, Role::parameter),
          .w_hh = one.tensor("w_hh", {wide, hidden}, Role::parameter),
          .b_ih = one.tensor("b_ih", {wide}, Role::parameter),
          .b_hh = one.tensor("b_hh", {wide}, Role::parameter),
          .h = one.tensor("h", {time, batch, hidden}),
          .gates = one.tensor("gates", {time, batch, wide}),
          .c = one.tensor("c", {time, batch, hidden})};
  return {"Lstm_" + name, one.operation(op).workload};
}

Case lstm_grad(std::int64_t time, std::int64_t batch, std::int64_t in, std::int64_t hidden, bool dx,
               const std::string& name) {
  OneOp one;
  const std::int64_t wide = 4 * hidden;
  LstmGrad op{.x = one.tensor("x", {time, batch, in}),
              .w_ih = one.tensor("w_ih", {wide, in}, Role::parameter),
              .w_hh = one.tensor("w_hh", {wide, hidden}, Role::parameter),
              .h = one.tensor("h", {time, batch, hidden}),
              .gates = one.tensor("gates positive", {time, batch, wide}),
              .c = one.tensor("c", {time, batch, hidden}),
              .dh = one.tensor("dh", {time, batch, hidden}),
              .dgates = one.tensor("dgates", {time, batch, wide}),
              .carry = one.tensor("carry", {2, batch, hidden}),
              .dx = none,
              .dw_ih = one.tensor("dw_ih", {wide, in}, Role::gradient),
              .dw_hh = one.tensor("dw_hh", {wide, hidden}, Role::gradient),
              .db_ih = one.tensor("db_ih", {wide}, Role::gradient),
              .db_hh = one.tensor("db_hh", {wide}, Role::gradient)};
  if (dx) {
    op.dx = one.tensor("dx", {time, batch, in});
  }
  return {"LstmGrad_" + name, one.operation(op).workload};
}

/// Transposes as BLAS names them: "nt" multiplies a by b transposed.
Case gemm(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& transposes) {
  OneOp one;
  const bool ta = transposes[0] == 't';
  const bool tb = transposes[1] == 't';
  const Id a = one.tensor("a", ta ? Shape{k, m} : Shape{m, k});
  const Id b = one.tensor("b", tb ? Shape{n, k} : Shape{k, n});
  one.operation(
      Gemm{.a = a, .b = b, .c = one.tensor("c", {m, n}), .transpose_a = ta, .transpose_b = tb});
  return {"Gemm_" + transposes + "_" + std::to_string(m) + "x" + std::to_string(n) + "x" +
              std::to_string(k),
          one.workload};
}

/// Three parameters, so that some are joined into one pass and some are not.
struct Updated {
  OneOp one;
  std::vector<Id> parameters, gradients;

  Updated(std::int64_t out, std::int64_t in) {
    const std::vector<Shape> shapes{{out, in}, {out}, {3, out}};
    for (const Shape& shape : shapes) {
      parameters.push_back(one.tensor("w", shape, Role::parameter));
    }
    for (const Shape& shape : shapes) {
      gradients.push_back(one.tensor("g", shape, Role::gradient));
    }
  }

  std::vector<Id> states(const std::string& name) {
    std::vector<Id> ids;
    for (const Id parameter : parameters) {
      ids.push_back(one.tensor(name, Shape(one.workload[parameter].shape), Role::state));
    }
    return ids;
  }
};

Case sgd_case(std::int64_t out, std::int64_t in, const std::string& name,
              double gradient_factor = 1) {
  Updated updated(out, in);
  return {name,
          updated.one.operation(Sgd{updated.parameters, updated.gradients, 0.1, gradient_factor})
              .workload};
}

Case adamw_case(std::int64_t out, std::int64_t in, const std::string& name,
                double gradient_factor = 1) {
  Updated updated(out, in);
  const auto m = updated.states("m");
  const auto v = updated.states("v positive");
  const Id t = updated.one.tensor("t", {1}, Role::state, Type::i32);
  return {name, updated.one
                    .operation(AdamW{.parameters = updated.parameters,
                                     .gradients = updated.gradients,
                                     .m = m,
                                     .v = v,
                                     .weight_decay = {0.01, 0, 0.01},
                                     .step = t,
                                     .learning_rate = 0.1,
                                     .beta1 = 0.9,
                                     .beta2 = 0.999,
                                     .epsilon = 1e-8,
                                     .gradient_factor = gradient_factor})
                    .workload};
}

/// Of images and sequences.
std::vector<Case> network_cases() {
  constexpr auto identity = Activation::identity;
  constexpr auto relu = Activation::relu;
  constexpr auto sigmoid = Activation::sigmoid;
  const Window one{.size = 1};
  const Window one_of_two{.size = 1, .stride = 2};
  const Window same3{.size = 3, .padding = 1};
  const Window same5{.size = 5, .padding = 2};
  const Window half3{.size = 3, .stride = 2, .padding = 1};
  const Window half3_ceil{.size = 3, .stride = 2, .ceil = true};
  const Window pairs{.size = 2, .stride = 2};
  return {
      convolution({1, 1, 1, 1}, 1, one, true, identity, "1x1"),
      convolution({2, 5, 4, 7}, 3, one, false, identity, "of_points"),
      convolution({2, 6, 7, 5}, 9, one_of_two, false, identity, "of_every_other_point"),
      convolution({3, 3, 9, 8}, 16, same5, true, relu, "first_layer"),
      convolution({2, 16, 6, 6}, 32, same3, true, relu, "of_whole_blocks"),
      convolution({2, 17, 7, 9}, 23, same3, true, sigmoid, "odd"),
      convolution({2, 16, 11, 8}, 16, half3, false, identity, "half"),
      convolution({1, 3, 23, 27}, 8, {.size = 7, .stride = 2, .padding = 3}, false, relu, "wide"),
      convolution({1, 3, 35, 35}, 5, {.size = 11, .stride = 4, .padding = 2}, true, identity,
                  "wider"),
      convolution({2, 4, 5, 5}, 6, {.size = 5}, true, identity, "whole_image"),
      convolution({2, 1, 3, 3}, 2, {.size = 3, .padding = 2}, true, identity, "mostly_padding"),
      convolution({4, 16, 24, 24}, 32, same3, true, relu, "large"),
      convolution_grad({1, 1, 1, 1}, 1, one, true, true, "1x1"),
      convolution_grad({2, 5, 4, 7}, 3, one, false, true, "of_points"),
      convolution_grad({2, 6, 7, 5}, 9, one_of_two, false, true, "of_every_other_point"),
      convolution_grad({3, 3, 9, 8}, 16, same5, true, false, "first_layer"),
      convolution_grad({2, 16, 6, 6}, 32, same3, true, true, "of_whole_blocks"),
      convolution_grad({2, 17, 7, 9}, 23, same3, true, true, "odd"),
      convolution_grad({2, 16, 11, 8}, 16, half3, false, true, "half"),
      convolution_grad({1, 3, 23, 27}, 8, {.size = 7, .stride = 2, .padding = 3}, false, false,
                       "wide"),
      convolution_grad({1, 3, 35, 35}, 5, {.size = 11, .stride = 4, .padding = 2}, true, true,
                       "wider"),
      convolution_grad({2, 4, 5, 5}, 6, {.size = 5}, true, true, "whole_image"),
      convolution_grad({2, 1, 3, 3}, 2, {.size = 3, .padding = 2}, true, true, "mostly_padding"),
      convolution_grad({4, 16, 24, 24}, 32, same3, true, true, "large"),
      max_pool({1, 1, 1, 1}, one, "1x1"),
      max_pool({2, 5, 8, 6}, pairs, "pairs"),
      max_pool({2, 16, 8, 8}, half3_ceil, "ceil"),
      max_pool({3, 3, 7, 10}, half3_ceil, "uneven_ceil"),
      max_pool({2, 17, 9, 6}, half3, "padding"),
      max_pool({2, 4, 9, 9}, half3, "equals", "x ties"),
      max_pool({1, 2, 7, 7}, {.size = 2, .stride = 3}, "gaps"),
      max_pool({2, 3, 16, 17}, {.size = 15, .stride = 1, .padding = 7}, "largest"),
      max_pool({8, 16, 33, 31}, half3_ceil, "large"),
      max_pool_grad({1, 1, 1, 1}, one, identity, "1x1"),
      max_pool_grad({2, 5, 8, 6}, pairs, relu, "pairs"),
      max_pool_grad({2, 16, 8, 8}, half3_ceil, identity, "ceil"),
      max_pool_grad({3, 3, 7, 10}, half3_ceil, relu, "uneven_ceil"),
      max_pool_grad({2, 17, 9, 6}, half3, sigmoid, "padding"),
      max_pool_grad({1, 2, 7, 7}, {.size = 2, .stride = 3}, identity, "gaps"),
      max_pool_grad({2, 3, 16, 17}, {.size = 15, .stride = 1, .padding = 7}, relu, "largest"),
      max_pool_grad({8, 16, 33, 31}, half3_ceil, relu, "large"),
      average_pool({1, 1, 1, 1}, one, "1x1"),
      average_pool({2, 5, 8, 6}, pairs, "pairs"),
      average_pool({2, 16, 8, 8}, half3_ceil, "ceil"),
      average_pool({3, 3, 7, 10}, half3_ceil, "uneven_ceil"),
      average_pool({2, 17, 9, 6}, {.size = 4, .stride = 3, .padding = 2, .ceil = true}, "padding"),
      average_pool({1, 2, 7, 7}, {.size = 2, .stride = 3}, "gaps"),
      average_pool({8, 16, 33, 31}, half3_ceil, "large"),
      average_pool_grad({1, 1, 1, 1}, one, identity, "1x1"),
      average_pool_grad({2, 5, 8, 6}, pairs, identity, "pairs"),
      average_pool_grad({2, 16, 8, 8}, half3_ceil, relu, "ceil"),
      average_pool_grad({3, 3, 7, 10}, half3_ceil, sigmoid, "uneven_ceil"),
      average_pool_grad({2, 17, 9, 6}, {.size = 4, .stride = 3, .padding = 2, .ceil = true},
                        identity, "padding"),
      average_pool_grad({1, 2, 7, 7}, {.size = 2, .stride = 3}, identity, "gaps"),
      average_pool_grad({8, 16, 33, 31}, half3_ceil, relu, "large"),
      global_average_pool({1, 1, 1, 1}, "1x1"),
      global_average_pool({3, 17, 7, 5}, "odd"),
      global_average_pool({8, 64, 16, 16}, "large"),
      global_average_pool_grad({1, 1, 1, 1}, "1x1"),
      global_average_pool_grad({3, 17, 7, 5}, "odd"),
      global_average_pool_grad({8, 64, 16, 16}, "large"),
      batch_norm({2, 1, 1, 1}, false, identity, "one_channel"),
      batch_norm({3, 5, 4, 7}, false, identity, "odd"),
      batch_norm({3, 17, 5, 5}, false, relu, "relu"),
      batch_norm({2, 16, 6, 3}, true, relu, "addend"),
      batch_norm({1, 9, 5, 6}, true, identity, "one_image"),
      batch_norm({8, 32, 20, 20}, true, relu, "large"),
      batch_norm_grad({2, 1, 1, 1}, false, false, identity, "one_channel"),
      batch_norm_grad({3, 5, 4, 7}, false, false, identity, "odd"),
      batch_norm_grad({3, 17, 5, 5}, false, false, relu, "relu"),
      batch_norm_grad({2, 16, 6, 3}, false, true, relu, "addend"),
      batch_norm_grad({2, 9, 5, 6}, true, true, relu, "two_gradients"),
      batch_norm_grad({1, 9, 5, 6}, true, false, identity, "one_image"),
      batch_norm_grad({8, 32, 20, 20}, true, true, relu, "large"),
      dropout({1}, 0.5, 0, "one"),
      dropout({7, 5}, 0.5, 3, "half"),
      dropout({3, 5, 4, 7}, 0.25, 1, "of_images"),
      dropout({7, 5}, 0, 1, "of_nothing"),
      dropout({257, 513}, 0.5, 2, "large"),
      dropout_grad({1}, 0.5, 0, "one"),
      dropout_grad({7, 5}, 0.5, 3, "half"),
      dropout_grad({3, 5, 4, 7}, 0.25, 1, "of_images"),
      dropout_grad({257, 513}, 0.5, 2, "large"),
      reshape({2, 3, 4, 5}, {2, 60}, "flatten"),
      reshape({6, 35}, {2, 3, 5, 7}, "to_images"),
      reshape({33, 65, 41}, {65, 41, 33}, "large"),
      embedding(1, 1, 1, 1, "one"),
      embedding(5, 3, 11, 7, "odd"),
      embedding(9, 2, 3, 17, "repeated"),
      embedding(32, 16, 1000, 200, "large"),
      embedding_grad(1, 1, 1, 1, "one"),
      embedding_grad(5, 3, 11, 7, "odd"),
      embedding_grad(9, 2, 3, 17, "repeated"),
      embedding_grad(32, 16, 1000, 200, "large"),
      lstm(1, 1, 1, 1, "one"),
      lstm(1, 3, 5, 4, "one_time_step"),
      lstm(4, 3, 5, 7, "odd"),
      lstm(5, 1, 9, 6, "one_sequence"),
      lstm(3, 32, 96, 64, "large"),
      lstm_grad(1, 1, 1, 1, true, "one"),
      lstm_grad(1, 3, 5, 4, true, "one_time_step"),
      lstm_grad(4, 3, 5, 7, true, "odd"),
      lstm_grad(5, 1, 9, 6, false, "one_sequence"),
      lstm_grad(3, 32, 96, 64, true, "large"),
      loss_over_time(3, 5, 7, "SoftmaxCrossEntropy_over_time"),
      loss_over_time(32, 4, 1003, "SoftmaxCrossEntropy_over_time_large"),
  };
}

/// f32, as they are.
std::vector<Case> plain_cases() {
  constexpr auto identity = Activation::identity;
  constexpr auto relu = Activation::relu;
  constexpr auto sigmoid = Activation::sigmoid;
  std::vector<Case> all{
      linear({1, 1}, 1, true, identity, "Linear_1x1"),
      linear({3, 5}, 4, false, identity, "Linear_no_bias"),
      linear({100, 2}, 4, true, relu, "Linear_disc"),
      linear({9, 29}, 32, true, relu, "Linear_heart_short_batch"),
      linear({33, 65}, 127, true, sigmoid, "Linear_odd"),
      linear({128, 512}, 256, true, relu, "Linear_large"),
      linear({2, 3, 5}, 4, true, relu, "Linear_three_dimensions"),
      linear({100, 1023}, 2, true, identity, "Linear_few_outputs"),
      linear_grad({1, 1}, 1, true, true, identity, false, "LinearGrad_1x1"),
      linear_grad({100, 2}, 4, true, false, identity, false, "LinearGrad_first_layer"),
      linear_grad({9, 32}, 16, true, true, relu, false, "LinearGrad_heart_short_batch"),
      linear_grad({33, 65}, 127, true, true, sigmoid, false, "LinearGrad_odd"),
      linear_grad({33, 65}, 127, true, true, relu, true, "LinearGrad_accumulate"),
      linear_grad({7, 6}, 5, false, true, identity, true, "LinearGrad_no_bias"),
      linear_grad({128, 512}, 256, true, true, relu, false, "LinearGrad_large"),
      linear_grad({128, 512}, 256, true, true, relu, true, "LinearGrad_large_accumulate"),
      linear_grad({2, 3, 5}, 4, true, true, relu, false, "LinearGrad_three_dimensions"),
      activate_case({3, 5}, relu, "Activate_relu"),
      activate_case({3, 5}, sigmoid, "Activate_sigmoid"),
      activate_case({513, 1023}, sigmoid, "Activate_large"),
      activate_case({3, 5}, identity, "Activate_identity"),
      activate_grad_case({3, 5}, relu, "ActivateGrad_relu"),
      activate_grad_case({513, 1023}, sigmoid, "ActivateGrad_large"),
      activate_grad_case({3, 5}, identity, "ActivateGrad_identity"),
      add_case({2, 3, 4}, "Add"),
      add_case({513, 1023}, "Add_large"),
      loss_case(1, 2, 1, "SoftmaxCrossEntropy_one_row"),
      loss_case(100, 2, 1, "SoftmaxCrossEntropy_disc"),
      loss_case(10, 33, 0.25, "SoftmaxCrossEntropy_scaled"),
      loss_case(64, 5003, 1, "SoftmaxCrossEntropy_large"),
      sgd_case(4, 2, "Sgd"),
      sgd_case(513, 257, "Sgd_large"),
      adamw_case(32, 29, "AdamW"),
      adamw_case(513, 257, "AdamW_large"),
      gemm(1, 1, 1, "nn"),
      gemm(1, 7, 5, "tn"),
      gemm(7, 1, 5, "nt"),
      gemm(33, 65, 127, "nn"),
      gemm(33, 65, 127, "nt"),
      gemm(33, 65, 127, "tn"),
      gemm(33, 65, 127, "tt"),
      gemm(129, 257, 100, "nn"),  // large enough for several threads
      gemm(129, 257, 100, "nt"),
      gemm(129, 257, 100, "tn"),
      gemm(129, 257, 100, "tt"),
      // Several blocks of a GPU's kernel, and the last one not full.
      activate_case({31, 41}, sigmoid, "Activate_blocks"),
      activate_grad_case({31, 41}, relu, "ActivateGrad_blocks"),
      add_case({31, 41}, "Add_blocks"),
      // A multiple of what one load takes, and one less and one more; 4 of f32, 8 of 16 bits.
      activate_case({1, 15}, sigmoid, "Activate_under_vectors"),
      activate_case({1, 16}, sigmoid, "Activate_of_vectors"),
      activate_case({1, 17}, sigmoid, "Activate_over_vectors"),
      activate_grad_case({1, 15}, sigmoid, "ActivateGrad_under_vectors"),
      activate_grad_case({1, 16}, sigmoid, "ActivateGrad_of_vectors"),
      activate_grad_case({1, 17}, sigmoid, "ActivateGrad_over_vectors"),
      add_case({1, 15}, "Add_under_vectors"),
      add_case({1, 16}, "Add_of_vectors"),
      add_case({1, 17}, "Add_over_vectors"),
      loss_case(2001, 2, 1, "SoftmaxCrossEntropy_blocks_of_threads"),
      loss_case(301, 41, 1, "SoftmaxCrossEntropy_blocks_of_warps"),
      loss_case(3, 1028, 1, "SoftmaxCrossEntropy_blocks_of_rows"),  // by fours
      loss_case(2, 1031, 1, "SoftmaxCrossEntropy_blocks_of_rows_odd"),
      sgd_case(31, 41, "Sgd_blocks"),
      adamw_case(31, 41, "AdamW_blocks"),
      sgd_case(4, 2, "Sgd_scaled", 1.0 / 1024),
      adamw_case(32, 29, "AdamW_scaled", 1.0 / 1024),
  };
  const std::vector<Case> others = network_cases();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace

std::vector<Case> operation_cases() {
  std::vector<Case> all = plain_cases();
  for (const Type type : {Type::bf16, Type::f16}) {
    const std::string name = to_string(type);
    all.push_back(cast_case({3, 5}, Type::f32, type, "Cast_to_" + name));
    all.push_back(cast_case({513, 1023}, Type::f32, type, "Cast_to_" + name + "_large"));
    all.push_back(cast_case({513, 1023}, type, Type::f32, "Cast_from_" + name));
    all.push_back(cast_case({31, 41}, Type::f32, type, "Cast_to_" + name + "_blocks"));
    all.push_back(cast_case({31, 41}, type, Type::f32, "Cast_from_" + name + "_blocks"));
    all.push_back(cast_back_case(type, "Cast_to_" + name + "_and_back"));
    for (const Case& plain : plain_cases()) {
      const Op& op = plain.workload.steps[0].ops[0];
      if (std::holds_alternative<Sgd>(op) || std::holds_alternative<AdamW>(op)) {
        continue;  // f32 in any precision
      }
      all.push_back(in_type(plain, type));
      if (std::holds_alternative<Linear>(op)) {
        all.push_back(in_type(plain, type, true));
      }
    }
  }
  return all;
}

namespace {

/// f32: what summing in another order makes of it. 16 bits: the reference rounds a result once; a
/// sigmoid or its derivative behind a product finds that rounded as well. tf32: both factors are
/// rounded.
double tolerance_of(const Case& c, Id id, Precision precision, const Arithmetic& arithmetic) {
  const Op& op = c.workload.steps[0].ops[0];
  const bool rounds_within =  // what it stores in 16 bits at one time step, the next one reads
      std::holds_alternative<Lstm>(op) || std::holds_alternative<LstmGrad>(op);
  const Type type = rounds_within ? storage_of(precision) : c.workload[id].type;
  if (type == Type::bf16 || type == Type::f16) {
    return 2 * unit_roundoff(type == Type::bf16 ? Precision::bf16 : Precision::f16);
  }
  return precision == Precision::tf32 ? 2 * unit_roundoff(precision, arithmetic) : 2e-6;
}

/// What a MaxPool of other numbers leaves to its gradient: `where` or y.
std::vector<double> pooled(const Workload& workload, const MaxPoolGrad& op, bool where) {
  Case c = max_pool(workload[op.dx].shape, op.window, "before");
  if (is_16_bit(workload[op.dx].type)) {
    c = in_type(c, workload[op.dx].type);
  }
  const auto& pool = std::get<MaxPool>(c.workload.steps[0].ops[0]);
  Reference reference(c.workload);
  const std::vector<double> x = values_for(c, pool.x);
  std::copy(x.begin(), x.end(), reference[pool.x].begin());
  reference.run(0, 1);
  return copy(reference[where ? pool.where : pool.y]);
}

}  // namespace

std::vector<double> values_for(const Case& c, Id id) {
  const Tensor& tensor = c.workload[id];
  if (const auto* op = std::get_if<MaxPoolGrad>(&c.workload.steps[0].ops[0]);
      op != nullptr && (id == op->where || id == op->y)) {
    return pooled(c.workload, *op, id == op->where);
  }
  const std::int64_t count = elements(tensor.shape);
  std::vector<double> values = numbers(count, id + 1);
  if (tensor.type == Type::i32) {
    for (double& v : values) {  // a label; as the time of an optimizer, a small number of steps
      v = std::floor((v + 1) / 2 * static_cast<double>(c.classes));
    }
    return values;
  }
  if (tensor.name.ends_with("positive")) {
    for (double& v : values) {
      v = (v + 1) / 2;
    }
  } else if (tensor.name.ends_with("ties")) {
    for (double& v : values) {
      v = std::round(2 * v) / 2;
    }
  }
  if (tensor.type == Type::bf16) {
    std::transform(values.begin(), values.end(), values.begin(), rounded_to_bf16);
  } else if (tensor.type == Type::f16) {
    std::transform(values.begin(), values.end(), values.begin(), rounded_to_f16);
  }
  return values;
}

void expect_operation(const Case& c, Program& program, Precision precision) {
  Reference reference(c.workload);
  const auto count = static_cast<Id>(c.workload.tensors.size());
  for (Id id = 0; id < count; ++id) {
    const std::vector<double> values = values_for(c, id);
    upload(program, c.workload, id, values);
    std::copy(values.begin(), values.end(), reference[id].begin());
  }

  program.enqueue(0, 1);
  program.wait();
  reference.run(0, 1);

  for (Id id = 0; id < count; ++id) {  // what is not written must be left alone, too
    EXPECT_LE(relative_error(download(program, c.workload, id), copy(reference[id])),
              tolerance_of(c, id, precision, program.facts().arithmetic))
        << "tensor '" << c.workload[id].name << "'";
  }
}

bool multiplies(const Case& c) {
  return category(c.workload.steps.front().ops.front()) == OpCategory::product;
}

namespace {

bool is_missing(const Unsupported& refusal, const Case& c) {
  return std::string(refusal.what())
      .ends_with(std::string(" backend has no ") + name(c.workload.steps[0].ops[0]) + " yet");
}

}  // namespace

std::string missing(const Case& c, const Backend& backend) {
  try {
    static_cast<void>(backend.compile(c.workload, {.precision = stored_precision(c.workload)}));
  } catch (const Unsupported& refusal) {
    if (is_missing(refusal, c)) {
      return refusal.what();
    }
  }
  return "";
}

std::string expect_operation_or_refusal(const Case& c, const Backend& backend,
                                        const CompileOptions& options) {
  std::unique_ptr<Program> program;
  try {
    program = backend.compile(c.workload, options);
  } catch (const Unsupported& refusal) {
    if (is_missing(refusal, c)) {
      return refusal.what();
    }
    EXPECT_NE(stored_precision(c.workload), Precision::f32) << refusal.what();
    EXPECT_NE(std::string(refusal.what()), "");
    return refusal.what();
  }
  expect_operation(c, *program, options.precision);
  return "";
}

}  // namespace crossover::test
