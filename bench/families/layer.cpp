// SPDX-License-Identifier: Apache-2.0
// Family Layer: a linear layer with bias and activation, forward and backward, as one operation and
// as separate ones.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "crossover/functions.h"
#include "crossover/names.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "crossover/training.h"
#include "crossover/verify.h"
#include "families/families.h"
#include "families/operation_rows.h"

namespace crossover::bench {
namespace {

struct LayerPlan {
  std::int64_t width = 0, batch = 0;
  Activation activation = Activation::relu;
  bool backward = false;
  bool fused = false;
  Precision precision = Precision::f32;
};

/// x and dy as they come from the neighbouring layers: x is what an activation made, and backward
/// that activation's derivative is taken, as training does. Stored as there: gradients of weights
/// and bias in f32, all else as the precision says.
Workload layer(const LayerPlan& plan, std::int64_t times) {
  Workload workload;
  const auto tensor = [&](const char* name, const Shape& shape, Role role) {
    const Type type = role == Role::gradient ? Type::f32 : storage_of(plan.precision);
    workload.tensors.push_back({.name = name, .shape = shape, .type = type, .role = role});
    return static_cast<Id>(workload.tensors.size()) - 1;
  };
  const Shape values{plan.batch, plan.width};
  const Shape weights{plan.width, plan.width};
  const Id x = tensor("x", values, Role::data);
  const Id w = tensor("w", weights, Role::parameter);
  Step step;
  if (plan.backward) {
    const Id dy = tensor("dy", values, Role::data);
    const Id dx = tensor("dx", values, Role::activation);
    const Id dx_before = tensor("dx before the activation", values, Role::activation);
    step.ops = {LinearGrad{.x = x,
                           .w = w,
                           .dy = dy,
                           .dx = dx,
                           .dw = tensor("dw", weights, Role::gradient),
                           .dbias = tensor("dbias", {plan.width}, Role::gradient)},
                ActivateGrad{.at = x, .dy = dx, .dx = dx_before, .activation = plan.activation}};
  } else {
    const Id bias = tensor("bias", {plan.width}, Role::parameter);
    const Id z = tensor("z", values, Role::activation);
    const Id y = tensor("y", values, Role::activation);
    step.ops = {Linear{.x = x, .w = w, .bias = bias, .y = z},
                Activate{.x = z, .y = y, .activation = plan.activation}};
  }
  workload.steps = {std::move(step)};
  workload.order.resize(static_cast<std::size_t>(times));
  return plan.fused ? fuse(std::move(workload)) : workload;
}

RowSpec spec_of(const LayerPlan& plan) {
  return {.family = RowFamily::layer,
          .width = plan.width,
          .batch = plan.batch,
          .activation = plan.activation,
          .pass = plan.backward ? LayerPass::backward : LayerPass::forward,
          .form = plan.fused ? LayerForm::fused : LayerForm::separate,
          .precision = plan.precision};
}

LayerPlan layer_in(const RowSpec& row) {
  return {.width = value_of(row, &RowSpec::width),
          .batch = value_of(row, &RowSpec::batch),
          .activation = value_of(row, &RowSpec::activation),
          .backward = value_of(row, &RowSpec::pass) == LayerPass::backward,
          .fused = value_of(row, &RowSpec::form) == LayerForm::fused,
          .precision = options_of(row).precision};
}

/// Puts the same numbers into both, as they are stored.
void set_operands(const LayerPlan& plan, PreparedOperation& row, Reference& reference) {
  const Workload& workload = row.workload();
  for (const Role role : {Role::data, Role::parameter}) {
    for (const Id id : tensors_of(workload, role)) {
      std::vector<double> values = operand_values(elements(workload[id].shape), id);
      if (workload[id].name == "x") {
        std::ranges::transform(values, values.begin(),
                               [&](double v) { return activate(plan.activation, v); });
      }
      upload(row.program(), workload, id, values);
      values = download(row.program(), workload, id);
      std::ranges::copy(values, reference[id].begin());
    }
  }
}

std::vector<LayerPlan> plans_of(const Arguments& arguments) {
  constexpr std::int64_t usual_batch = 100;
  const std::vector<std::int64_t>& with_sigmoid = arguments.sweep.sigmoid_widths;
  std::vector<LayerPlan> plans;
  for (const std::int64_t width : arguments.sweep.layer_widths) {
    const bool has_sigmoid = contains(with_sigmoid, width);
    for (const std::int64_t batch : batches_of(arguments, usual_batch)) {
      for (const Activation activation : {Activation::relu, Activation::sigmoid}) {
        for (const bool backward : {false, true}) {
          for (const bool fused : {true, false}) {
            const LayerPlan plan{.width = width,
                                 .batch = batch,
                                 .activation = activation,
                                 .backward = backward,
                                 .fused = fused};
            if (activation == Activation::relu || has_sigmoid) {
              plans.push_back(plan);
            }
          }
        }
      }
    }
  }
  return plans;
}

}  // namespace

/// In other precisions one form shows enough.
bool is_layer_worth_minutes(const Row& row, int /*most_threads*/) {
  return is_in_f32(row) || row.spec.form == LayerForm::fused;
}

std::unique_ptr<PreparedBenchmark> make_layer(RowContext& context, const RowSpec& row,
                                              Result& result) {
  const LayerPlan plan = layer_in(row);
  const Target target = target_of(row, context.devices);
  const Cost one = cost(layer(plan, 1));
  Workload workload = layer(plan, repeats(one));
  const auto largest =
      static_cast<double>(elements({std::max(plan.batch, plan.width), plan.width}));
  constexpr double on_the_way = 2 * sizeof(double);  // of a tensor that is compared
  const double verified_bytes =
      static_cast<double>(reference_bytes(workload)) + on_the_way * largest;
  auto made =
      std::make_unique<PreparedOperation>(std::move(workload), target, context.arguments,
                                          verified_bytes, "for the layer and its verification");
  verify_or_note(result, [&] {
    Reference reference(made->workload());
    set_operands(plan, *made, reference);
    made->run();
    reference.run(0, 1);
    const TensorVerification verified = verify_results(made->program(), reference, plan.precision);
    result.verification = {.reference = "float64 interpreter",
                           .unit = "entries",
                           .compared = verified.entries,
                           .of = verified.entries,
                           .tolerance = verified.tolerance,
                           .error = verified.error};
  });
  made->count(one, target, result);
  result.counters["batch"] = static_cast<double>(plan.batch);
  result.counters["width"] = static_cast<double>(plan.width);
  return made;
}

void register_layers(const Arguments& arguments, Devices& devices, Rows& rows) try {
  for (LayerPlan plan : plans_of(arguments)) {
    for (const Precision precision : arguments.precisions) {
      plan.precision = precision;
      const Cost one = cost(layer(plan, 1));
      for (const RowSpec& spec : operation_rows(arguments, devices, spec_of(plan), one)) {
        const Target target = target_of(spec, devices);
        Row row = row_on(target);
        const auto times = static_cast<double>(repeats(one));
        constexpr double launches = 4;  // at most, of one pass
        set_effort(row, arguments,
                   {.flops = times * one.flops,
                    .launches = times * launches,
                    .bytes_prepared = 4 * one.bytes,
                    .flops_of_reference = one.flops},
                   target.options.threads);
        rows.add(std::move(row));
      }
    }
  }
} catch (const std::overflow_error& error) {
  throw UsageError("Layer: " + std::string(error.what()));
}

}  // namespace crossover::bench
