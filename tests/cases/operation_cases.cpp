// SPDX-License-Identifier: Apache-2.0
#include "operation_cases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "../../src/reference/differences.h"
#include "cases.h"
#include "crossover/float16.h"
#include "crossover/random.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "crossover/verify.h"

namespace crossover {
namespace {

using Case = OperationCase;

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

/// What is f32 in any precision, or no such number: gradients of parameters and losses, and what
/// these names begin.
bool stays_as_it_is(const Tensor& tensor) {
  constexpr std::array names{"b_ih",  "b_hh",     "carry",  "dbias", "inverse deviation",
                             "kept",  "log sums", "logits", "mean",  "scale",
                             "shift", "targets"};
  return tensor.type != Type::f32 || tensor.role == Role::gradient || tensor.role == Role::loss ||
         std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return tensor.name.starts_with(name); });
}

/// The case with all in 16 bits that can be; `f32_result`: but for what a Linear makes.
Case in_type(Case c, Type type, bool f32_result = false) {
  Op& op = c.workload.steps[0].ops[0];
  for (Tensor& tensor : c.workload.tensors) {
    tensor.type = stays_as_it_is(tensor) ? tensor.type : type;
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
  } else if (auto* loss_of_each = std::get_if<ElementwiseLoss>(&op)) {
    loss_of_each->scale *= 1024;
  }
  c.name += '_';
  c.name += to_string(type);
  c.name += f32_result ? "_to_f32" : "";
  return c;
}

/// f32, as they are.
std::vector<Case> plain_cases() {
  std::vector<Case> all = layer_cases();
  for (const std::vector<Case>& more :
       {convolution_cases(), image_cases(), sequence_cases(), product_cases()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace

Id OneOp::tensor(const std::string& name, const Shape& shape, Role role, Type type) {
  workload.tensors.push_back({.name = name, .shape = shape, .type = type, .role = role});
  return static_cast<Id>(workload.tensors.size()) - 1;
}

OneOp& OneOp::operation(Op op) {
  workload.steps = {Step{{std::move(op)}}};
  workload.order = {Run{.step = 0, .first_row = 0}};
  return *this;
}

std::vector<double> numbers(std::int64_t count, int salt) {
  constexpr std::uint64_t apart = 1000003;
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 2 * uniform(Stream::inputs, i + apart * static_cast<std::uint64_t>(salt)) - 1;
  }
  return values;
}

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
      if (category(op) == OpCategory::update || std::holds_alternative<Zero>(op)) {
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

/// Matrix units cut a sum of 16-bit factors off where they should round it (Fasi et al. 2021,
/// Numerical behavior of NVIDIA tensor cores): half a unit in the last place for each instruction,
/// which adds 16 terms, and always downwards. A gradient of weights has a term for each position:
/// an H200's were off by a third of this, from 2,304 terms to 589,824.
double cut_off(const Case& c, Id id) {
  const auto* grad = std::get_if<ConvolutionGrad>(&c.workload.steps[0].ops[0]);
  if (grad == nullptr || id != grad->dw || !is_16_bit(c.workload[grad->x].type)) {
    return 0;
  }
  const std::int64_t channels = c.workload[grad->w].shape.front();
  const auto terms = static_cast<double>(elements(c.workload[grad->dy].shape) / channels);
  constexpr double terms_of_instruction = 16;
  return terms / terms_of_instruction * unit_roundoff(Precision::f32);
}

/// f32: what summing in another order makes of it. 16 bits: the reference rounds a result once; a
/// sigmoid or its derivative behind a product finds that rounded as well. tf32: both factors are
/// rounded.
double tolerance_of(const Case& c, Id id, Precision precision, const Arithmetic& arithmetic) {
  const Op& op = c.workload.steps[0].ops[0];
  const bool rounds_within =  // what it stores in 16 bits at one time step, the next one reads
      std::holds_alternative<Recurrent>(op) || std::holds_alternative<RecurrentGrad>(op);
  const Type type = rounds_within ? storage_of(precision) : c.workload[id].type;
  if (type == Type::bf16 || type == Type::f16) {
    return 2 * unit_roundoff(type == Type::bf16 ? Precision::bf16 : Precision::f16);
  }
  return precision == Precision::tf32 ? 2 * unit_roundoff(precision, arithmetic)
                                      : 2e-6 + cut_off(c, id);
}

/// What a pool of the largest of other numbers leaves to its gradient: `where` or y.
std::vector<double> pooled(const Workload& workload, const PoolGrad& op, bool where) {
  Case c = max_pool(workload[op.dx].shape, op.window, "before");
  if (is_16_bit(workload[op.dx].type)) {
    c = in_type(c, workload[op.dx].type);
  }
  const auto& pool = std::get<Pool>(c.workload.steps[0].ops[0]);
  Reference reference(c.workload);
  const std::vector<double> x = values_for(c, pool.x);
  std::copy(x.begin(), x.end(), reference[pool.x].begin());
  reference.run(0, 1);
  const auto result = reference[where ? pool.where : pool.y];
  return {result.begin(), result.end()};
}

}  // namespace

std::vector<double> values_for(const Case& c, Id id) {
  const Tensor& tensor = c.workload[id];
  if (const auto* op = std::get_if<PoolGrad>(&c.workload.steps.front().ops.front());
      op != nullptr && op->kind == PoolKind::max && (id == op->where || id == op->made)) {
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
  } else if (tensor.name.ends_with("wide")) {
    for (double& v : values) {
      v *= 8;
    }
  } else if (tensor.name.ends_with("far")) {  // 8 to 24, in float32 exactly
    for (double& v : values) {
      v = 16 + std::round(16 * v) / 2;
    }
  } else if (tensor.name.ends_with("led")) {  // in each row by the first, in float32 exactly
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool leads = static_cast<std::int64_t>(i) % tensor.shape.back() == 0;
      values[i] = std::round(16 * values[i]) / 16 + (leads ? 20 : 0);
    }
  } else if (tensor.name.ends_with("one")) {
    std::fill(values.begin(), values.end(), 1.0);
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

std::vector<TensorError> errors_of(const Case& c, Program& program, Precision precision) {
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

  std::vector<TensorError> all;
  for (Id id = 0; id < count; ++id) {  // what is not written must be left alone, too
    const double of_zero = 1;
    const double size = norm(reference[id]);
    all.push_back({.id = id,
                   .error = distance(download(program, c.workload, id), reference[id]) /
                            (size > 0 ? size : of_zero),
                   .tolerance = tolerance_of(c, id, precision, program.facts().arithmetic)});
  }
  return all;
}

bool multiplies(const Case& c) {
  return category(c.workload.steps.front().ops.front()) == OpCategory::product;
}

bool is_large(const Case& c) { return c.name.find("_large") != std::string::npos; }

}  // namespace crossover
