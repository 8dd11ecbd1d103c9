// SPDX-License-Identifier: Apache-2.0
// What each launch of the plan calls.
#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <variant>
#include <vector>

#include "kernels/cast.cuh"
#include "kernels/elementwise.cuh"
#include "kernels/loss.cuh"
#include "kernels/reduction.cuh"
#include "measure_arithmetic.h"
#include "program.h"

namespace crossover::cuda {
namespace {

std::vector<ProductLaunch> products_of(const Plan& plan) {
  std::vector<ProductLaunch> products;
  for (const StepPlan& step : plan.steps) {
    for (const Launch& launch : step.launches) {
      if (const auto* product = std::get_if<ProductLaunch>(&launch)) {
        products.push_back(*product);
      }
    }
  }
  return products;
}

}  // namespace

ProductOperands CudaProgram::operands(const ProductLaunch& l, const Position& now) const {
  const auto maybe = [&](const Operand& o) { return o.exists() ? address(o.at(now)) : nullptr; };
  return {.a = address(l.a.at(now)),
          .b = address(l.b.at(now)),
          .d = address(l.d.at(now)),
          .vector = maybe(l.vector),
          .mask = maybe(l.mask),
          .workspace = address(plan_.workspace),
          .workspace_bytes = plan_.workspace_bytes};
}

void CudaProgram::choose_products() {
  for (const ProductLaunch& product : products_of(plan_)) {
    products_->choose(product.form, operands(product, {.buffer = 0}), compute_.get(),
                      options_.products);
  }
}

Arithmetic CudaProgram::measured_arithmetic() {
  Arithmetic found{.tf32 = Tf32Factors::exact};
  std::set<ProductForm> measured;
  for (const ProductLaunch& launch : products_of(plan_)) {
    if (!measured.insert(launch.form).second) {
      continue;
    }
    const ProductOperands its = operands(launch, {.buffer = 0});
    const auto product = products_->make(launch.form, its.vector, its.mask);
    if (options_.precision == Precision::tf32) {
      found.tf32 =
          std::max(found.tf32, measure_tf32_factors(*product, launch.form, its, compute_.get()));
    }
    if (writes_mask(launch.form.epilogue)) {
      found.relu_passes_zero = measure_mask_at_zero(*product, launch.form, its, compute_.get()) ||
                               found.relu_passes_zero;
    }
  }
  return found;
}

Call CudaProgram::bind(const ProductLaunch& l) {
  const ProductOperands fixed = operands(l, {.buffer = 0});
  const std::shared_ptr<Product> product = products_->make(l.form, fixed.vector, fixed.mask);
  return [this, product, l](const Position& now) {
    product->execute(compute_.get(), address(l.a.at(now)), address(l.b.at(now)),
                     address(l.d.at(now)), address(plan_.workspace), plan_.workspace_bytes);
  };
}

Call CudaProgram::bind(const BiasActivateLaunch& l) {
  return [this, l, x = at<float>(l.x), bias = at<void>(l.bias),
          y = at<void>(l.y)](const Position& now) {
    bias_activate(compute_.get(), l.activation, l.y.type, x(now), bias(now), y(now), l.rows,
                  l.columns);
  };
}

Call CudaProgram::bind(const CastLaunch& l) {
  return [this, l](const Position& now) {
    CastSpans spans;
    for (const CastLaunch::One& one : l.casts) {
      spans.span[spans.count++] = {address(one.x.at(now)), address(one.y.at(now)), one.count};
    }
    cuda::cast(compute_.get(), l.casts.front().x.type, l.casts.front().y.type, spans);
  };
}

Call CudaProgram::bind(const ActivateLaunch& l) {
  return [this, l, x = at<void>(l.x), y = at<void>(l.y)](const Position& now) {
    cuda::activate(compute_.get(), l.activation, l.x.type, x(now), y(now), l.count);
  };
}

Call CudaProgram::bind(const ActivateGradLaunch& l) {
  return
      [this, l, y = at<void>(l.y), dy = at<void>(l.dy), dx = at<void>(l.dx)](const Position& now) {
        activate_grad(compute_.get(), l.activation, l.y.type, y(now), dy(now), dx(now), l.count);
      };
}

Call CudaProgram::bind(const AddLaunch& l) {
  return [this, l, a = at<void>(l.a), b = at<void>(l.b), y = at<void>(l.y)](const Position& now) {
    cuda::add(compute_.get(), l.y.type, a(now), b(now), y(now), l.count);
  };
}

Call CudaProgram::bind(const ColumnSumsLaunch& l) {
  return [this, l, matrix = at<void>(l.matrix), sums = at<float>(l.sums)](const Position& now) {
    column_sums(compute_.get(), l.matrix.type, matrix(now), l.rows, l.columns, l.accumulate,
                sums(now));
  };
}

Call CudaProgram::bind(const LossLaunch& l) {
  return [this, l, logits = at<float>(l.logits), labels = at<std::int32_t>(l.labels),
          dlogits = at<void>(l.dlogits), loss = at<float>(l.loss)](const Position& now) {
    softmax_cross_entropy(compute_.get(), l.dlogits.type,
                          {.logits = logits(now),
                           .labels = labels(now),
                           .dlogits = dlogits(now),
                           .loss = loss(now),
                           .run = run_counter(),
                           .row_losses = address_as<float>(plan_.row_losses),
                           .rows = l.rows,
                           .classes = l.classes,
                           .factor = l.factor,
                           .advance = l.advance});
  };
}

Call CudaProgram::bind(const AdvanceLaunch& /*unused*/) {
  return [this](const Position& /*unused*/) { advance_run(compute_.get(), run_counter()); };
}

Call CudaProgram::bind(const SgdLaunch& l) {
  return [this, spans = update_spans(l.spans, l.learning_rate),
          rate = static_cast<float>(l.learning_rate)](const Position& /*unused*/) {
    cuda::sgd(compute_.get(), spans, rate);
  };
}

Call CudaProgram::bind(const AdamWTimeLaunch& l) {
  const AdamWConstants constants{.learning_rate = l.learning_rate,
                                 .beta1 = l.beta1,
                                 .beta2 = l.beta2,
                                 .epsilon = l.epsilon,
                                 .gradient_factor = l.gradient_factor};
  return [this, constants, time = at<std::int32_t>(l.time)](const Position& now) {
    adamw_time(compute_.get(), constants, time(now), factors());
  };
}

Call CudaProgram::bind(const AdamWLaunch& l) {
  return [this, spans = update_spans(l.spans, l.learning_rate)](const Position& /*unused*/) {
    cuda::adamw(compute_.get(), spans, factors());
  };
}

AdamWFactors<float>* CudaProgram::factors() const {
  static_assert(sizeof(AdamWFactors<float>) <= factors_bytes);
  return address_as<AdamWFactors<float>>(plan_.factors);
}

UpdateSpans CudaProgram::update_spans(const std::vector<Span>& spans, double learning_rate) const {
  UpdateSpans all;
  for (const Span& span : spans) {
    std::array<float*, 4> arrays{};  // parameters, gradients, AdamW's m and v
    std::transform(span.offsets.begin(), span.offsets.end(), arrays.begin(),
                   [this](std::int64_t offset) { return address_as<float>(offset); });
    all.span[all.count++] = {.w = arrays[0],
                             .g = arrays[1],
                             .m = arrays[2],
                             .v = arrays[3],
                             .count = span.count,
                             .keep = static_cast<float>(1 - learning_rate * span.weight_decay)};
  }
  return all;
}

}  // namespace crossover::cuda
