// SPDX-License-Identifier: Apache-2.0
// Layers of numbers, losses, products and updates.
#include <tuple>
#include <utility>
#include <variant>

#include "cases.h"

namespace crossover {
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
  const bool is_wide = derivative_takes_input(activation) || activation == Activation::relu6;
  const Id at = one.tensor(is_wide ? "at wide" : "at", shape);
  const Id dy = one.tensor("dy", shape);
  return {name,
          one
              .operation(ActivateGrad{
                  .at = at, .dy = dy, .dx = one.tensor("dx", shape), .activation = activation})
              .workload};
}

/// Each activation by itself and behind a product, with numbers on both sides of what is special to
/// it, and its gradient.
std::vector<Case> activation_cases() {
  std::vector<Case> all;
  for (const auto& [of, activation] : named_activations) {
    const std::string name = of;
    OneOp one;
    const Id x = one.tensor("x wide", {9, 65});
    const Id y = one.tensor("y", {9, 65});
    all.push_back({"Activate_wide_" + name,
                   one.operation(Activate{.x = x, .y = y, .activation = activation}).workload});
    all.push_back(activate_grad_case({9, 65}, activation, "ActivateGrad_wide_" + name));
    all.push_back(linear({9, 65}, 33, true, activation, "Linear_wide_" + name));
  }
  return all;
}

/// Above 0 where the function wants that.
const char* input_of(const Function& function) {
  return std::visit(
      []<class Of>(const Of& /*of*/) { return IsOfPositive<Of> ? "x far" : "x wide"; }, function);
}

Case map_case(const Shape& shape, const Function& function, const std::string& name) {
  OneOp one;
  const Id x = one.tensor(input_of(function), shape);
  const Id y = one.tensor("y", shape);
  return {"Map_" + name, one.operation(Map{.x = x, .y = y, .function = function}).workload};
}

Case map_grad_case(const Shape& shape, const Function& function, const std::string& name) {
  OneOp one;
  const Id x = one.tensor(input_of(function), shape);
  const Id dy = one.tensor("dy", shape);
  const Id dx = one.tensor("dx", shape);
  return {"MapGrad_" + name,
          one.operation(MapGrad{.x = x, .dy = dy, .dx = dx, .function = function}).workload};
}

/// Each function and its gradient, on both sides of what is special to it; and numbers as few as
/// less than a load takes, and as many as several blocks and threads do.
std::vector<Case> function_cases() {
  std::vector<Case> all;
  for (const Function& function : function_examples()) {
    const std::string name = std::visit([](const auto& of) { return of.name; }, function);
    all.push_back(map_case({9, 65}, function, name));
    all.push_back(map_grad_case({9, 65}, function, name));
  }
  for (const auto& [shape, name] : {std::pair(Shape{1, 15}, "few"), {{513, 1023}, "large"}}) {
    all.push_back(map_case(shape, functions::Elu(), name));
    all.push_back(map_grad_case(shape, functions::Elu(), name));
  }
  return all;
}

Case add_case(const Shape& shape, const std::string& name) {
  OneOp one;
  const Id a = one.tensor("a", shape);
  const Id b = one.tensor("b", shape);
  return {name, one.operation(Add{.a = a, .b = b, .y = one.tensor("y", shape)}).workload};
}

/// `saturated`: each row's label is class 0, which leads by far.
Case loss_case(std::int64_t batch, std::int64_t classes, double scale, const std::string& name,
               bool saturated = false) {
  OneOp one;
  const Id logits = one.tensor(saturated ? "logits led" : "logits", {batch, classes});
  const Id labels = one.tensor("labels", {batch}, Role::activation, Type::i32);
  const Id loss = one.tensor("loss", {1}, Role::loss);
  return {name,
          one.operation(SoftmaxCrossEntropy{.logits = logits,
                                            .labels = labels,
                                            .loss = loss,
                                            .dlogits = one.tensor("dlogits", {batch, classes}),
                                            .scale = scale})
              .workload,
          saturated ? 1 : classes};
}

/// `saturated`: each logit is far on the side of its target, where the gradient is next to nothing.
Case elementwise_loss_case(const Shape& shape, LossFunction function, const std::string& name,
                           bool saturated = false) {
  OneOp one;
  const Id logits = one.tensor(saturated ? "logits far" : "logits wide", shape);
  const Id targets = one.tensor(saturated ? "targets one" : "targets positive", shape);
  const Id loss = one.tensor("loss", {1}, Role::loss);
  return {name, one.operation(ElementwiseLoss{.logits = logits,
                                              .targets = targets,
                                              .loss = loss,
                                              .dlogits = one.tensor("dlogits", shape),
                                              .function = function,
                                              .scale = 0.5})
                    .workload};
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

Case update_case(std::int64_t out, std::int64_t in, const Optimizer& rule, const std::string& name,
                 double gradient_factor = 1) {
  Updated updated(out, in);
  Update op{.rule = rule,
            .parameters = updated.parameters,
            .gradients = updated.gradients,
            .states = {},
            .weight_decay = {},
            .gradient_factor = gradient_factor};
  if (std::holds_alternative<MomentumOptions>(rule)) {
    op.states = {updated.states("velocity")};
  } else if (std::holds_alternative<AdamWOptions>(rule)) {
    op.states = {updated.states("m"), updated.states("v positive")};
    op.weight_decay = {0.01, 0, 0.01};
    op.step = updated.one.tensor("t", {1}, Role::state, Type::i32);
  }
  return {name, updated.one.operation(op).workload};
}

Case zero_case(std::int64_t out, std::int64_t in, const std::string& name) {
  Updated updated(out, in);
  return {name, updated.one.operation(Zero{updated.gradients}).workload};
}

}  // namespace

std::vector<Function> function_examples() {
  return {functions::LeakyRelu{.negative_slope = 0.2},
          functions::Elu{.alpha = 0.5},
          functions::Softplus{},
          functions::Sine{},
          functions::Exponential{},
          functions::Logarithm{},
          functions::SquareRoot{},
          functions::Reciprocal{},
          functions::Absolute{},
          functions::Hardtanh{.min_val = -0.5, .max_val = 2},
          functions::Affine{.scale = -1.5, .shift = 0.25}};
}

std::vector<Case> layer_cases() {
  constexpr auto identity = Activation::identity;
  constexpr auto relu = Activation::relu;
  constexpr auto sigmoid = Activation::sigmoid;
  constexpr SgdOptions sgd{.learning_rate = 0.1};
  constexpr MomentumOptions momentum{.learning_rate = 0.1};
  constexpr AdamWOptions adamw{.learning_rate = 0.1};
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
      linear_grad({19, 32}, 48, false, true, relu, false, "LinearGrad_whole_vectors"),
      linear_grad({129, 48}, 35, true, true, identity, false, "LinearGrad_of_a_narrow_output"),
      linear_grad({33, 65}, 127, true, true, sigmoid, false, "LinearGrad_odd"),
      linear_grad({33, 65}, 127, true, true, Activation::tanh, false, "LinearGrad_tanh"),
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
      loss_case(33, 5, 1, "SoftmaxCrossEntropy_saturated", true),
      loss_case(3, 1028, 1, "SoftmaxCrossEntropy_rows_saturated", true),
      elementwise_loss_case({33, 5}, LossFunction::bce, "ElementwiseLoss_bce_saturated", true),
      update_case(4, 2, sgd, "Sgd"),
      update_case(32, 29, momentum, "Momentum"),
      update_case(32, 29, adamw, "AdamW"),
      update_case(4, 2, sgd, "Sgd_scaled", 1.0 / 1024),
      update_case(32, 29, momentum, "Momentum_scaled", 1.0 / 1024),
      update_case(32, 29, adamw, "AdamW_scaled", 1.0 / 1024),
      zero_case(4, 2, "Zero"),
      gemm(1, 1, 1, "nn"),
      gemm(1, 7, 5, "tn"),
      gemm(7, 1, 5, "nt"),
      // Several blocks of a GPU's kernel, and the last one not full.
      activate_case({31, 41}, sigmoid, "Activate_blocks"),
      activate_grad_case({31, 41}, relu, "ActivateGrad_blocks"),
      add_case({31, 41}, "Add_blocks"),
      loss_case(2001, 2, 1, "SoftmaxCrossEntropy_blocks_of_threads"),
      loss_case(301, 41, 1, "SoftmaxCrossEntropy_blocks_of_warps"),
      loss_case(3, 1028, 1, "SoftmaxCrossEntropy_blocks_of_rows"),  // by fours
      loss_case(2, 1031, 1, "SoftmaxCrossEntropy_blocks_of_rows_odd"),
  };
  for (const std::string transposes : {"nn", "nt", "tn", "tt"}) {
    all.push_back(gemm(33, 65, 127, transposes));
    all.push_back(gemm(129, 257, 100, transposes));  // large enough for several threads
  }
  for (const auto& [out, in, size] : {std::tuple{513, 257, "_large"}, {31, 41, "_blocks"}}) {
    all.push_back(update_case(out, in, sgd, std::string("Sgd") + size));
    all.push_back(update_case(out, in, momentum, std::string("Momentum") + size));
    all.push_back(update_case(out, in, adamw, std::string("AdamW") + size));
    all.push_back(zero_case(out, in, std::string("Zero") + size));
  }
  // A multiple of what one load takes, and one less and one more; 4 of f32, 8 of 16 bits.
  for (const auto& [count, size] :
       {std::pair{15, "_under_vectors"}, {16, "_of_vectors"}, {17, "_over_vectors"}}) {
    all.push_back(activate_case({1, count}, sigmoid, std::string("Activate") + size));
    all.push_back(activate_grad_case({1, count}, sigmoid, std::string("ActivateGrad") + size));
    all.push_back(add_case({1, count}, std::string("Add") + size));
  }
  for (const auto& [function, name] :
       {std::pair{LossFunction::mse, "mse"}, {LossFunction::bce, "bce"}}) {
    const std::string of = std::string("ElementwiseLoss_") + name;
    all.push_back(elementwise_loss_case({1, 1}, function, of + "_one"));
    all.push_back(elementwise_loss_case({33, 5}, function, of));
    all.push_back(elementwise_loss_case({129, 517}, function, of + "_large"));
  }
  const std::vector<Case> activations = activation_cases();
  all.insert(all.end(), activations.begin(), activations.end());
  const std::vector<Case> functions = function_cases();
  all.insert(all.end(), functions.begin(), functions.end());
  return all;
}

}  // namespace crossover
