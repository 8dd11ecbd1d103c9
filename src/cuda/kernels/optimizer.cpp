// SPDX-License-Identifier: Apache-2.0
#include "optimizer.cuh"

#include <algorithm>
#include <array>

#include "bind.h"

namespace crossover::cuda {
namespace {

AdamWFactors<float>* factors(const Binding& binding) {
  static_assert(sizeof(AdamWFactors<float>) <= factors_bytes);
  return binding.address<AdamWFactors<float>>(binding.plan->factors);
}

UpdateSpans update_spans(const std::vector<Span>& spans, double learning_rate,
                         const Binding& binding) {
  UpdateSpans all;
  for (const Span& span : spans) {
    if (span.copy.exists()) {
      all.copies = span.copy.type;
    }
    std::array<float*, 4> arrays{};  // parameters, gradients, AdamW's m and v
    std::transform(span.offsets.begin(), span.offsets.end(), arrays.begin(),
                   [&](std::int64_t offset) { return binding.address<float>(offset); });
    all.span[all.count++] = {.w = arrays[0],
                             .g = arrays[1],
                             .m = arrays[2],
                             .v = arrays[3],
                             .copy = binding.maybe(span.copy, somewhere),
                             .count = span.count,
                             .keep = static_cast<float>(1 - learning_rate * span.weight_decay)};
  }
  return all;
}

}  // namespace

BoundLaunch bind(const SgdLaunch& launch, const Binding& binding) {
  return {OpCategory::update,
          [binding, spans = update_spans(launch.spans, launch.learning_rate, binding),
           rate = static_cast<float>(launch.learning_rate)](const Position& /*unused*/) {
            cuda::sgd(binding.stream, spans, rate);
          }};
}

BoundLaunch bind(const AdamWTimeLaunch& launch, const Binding& binding) {
  const AdamWConstants constants{.learning_rate = launch.learning_rate,
                                 .beta1 = launch.beta1,
                                 .beta2 = launch.beta2,
                                 .epsilon = launch.epsilon,
                                 .gradient_factor = launch.gradient_factor};
  return {OpCategory::update, [binding, constants, time = launch.time](const Position& now) {
            adamw_time(binding.stream, constants, binding.address<std::int32_t>(time, now),
                       factors(binding));
          }};
}

BoundLaunch bind(const AdamWLaunch& launch, const Binding& binding) {
  return {OpCategory::update, [binding, spans = update_spans(launch.spans, launch.learning_rate,
                                                             binding)](const Position& /*unused*/) {
            cuda::adamw(binding.stream, spans, factors(binding));
          }};
}

}  // namespace crossover::cuda
