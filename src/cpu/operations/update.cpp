// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../threads.h"
#include "crossover/backend.h"
#include "crossover/elementwise.h"
#include "crossover/memory.h"
#include "crossover/ranks.h"
#include "operations.h"
#include "update_spans.h"

namespace crossover::cpu {

// ---- Update spans

namespace {

/// Whether plan_memory() lays b right after a, but for padding: tensors of one role in the order of
/// their numbers.
bool are_neighbours(const Workload& workload, Id a, Id b) {
  const Role role = workload[a].role;
  const bool in_order = role == Role::parameter || role == Role::gradient || role == Role::state;
  if (!in_order || workload[b].role != role || b <= a) {
    return false;
  }
  return std::none_of(workload.tensors.begin() + a + 1, workload.tensors.begin() + b,
                      [role](const Tensor& between) { return between.role == role; });
}

std::int64_t floats_to_next(std::int64_t floats) {
  constexpr std::int64_t line = MemoryPlan::alignment / static_cast<std::int64_t>(sizeof(float));
  return (floats + line - 1) / line * line;
}

}  // namespace

std::vector<UpdateSpan> update_spans(Lowering& to,
                                     const std::vector<const std::vector<Id>*>& arrays,
                                     const std::vector<double>& weight_decay) {
  std::vector<UpdateSpan> spans;
  std::vector<Id> last;  // the tensors at the end of the last span; empty where nothing may follow
  for (std::size_t p = 0; p < arrays[0]->size(); ++p) {
    std::vector<Id> ids;
    ids.reserve(arrays.size());
    for (const std::vector<Id>* array : arrays) {
      ids.push_back((*array)[p]);
      if (to[ids.back()].type != Type::f32) {
        throw Unsupported("the CPU backend's optimizers read f32, not '" + to[ids.back()].name +
                          "' in " + to_string(to[ids.back()].type));
      }
    }
    const Layout layout = to.settle(ids[0], {});
    const double decay = weight_decay.empty() ? 0 : weight_decay[p];
    const std::int64_t floats = layout.bytes(to[ids[0]]) / static_cast<std::int64_t>(sizeof(float));
    const bool lie_alike =
        std::all_of(ids.begin(), ids.end(), [&](Id id) { return to.settle(id, layout) == layout; });
    const bool follows = lie_alike && !last.empty() && spans.back().weight_decay == decay &&
                         std::equal(last.begin(), last.end(), ids.begin(), [&](Id a, Id b) {
                           return are_neighbours(to.workload(), a, b);
                         });
    if (follows) {
      spans.back().floats = floats_to_next(spans.back().floats) + floats;
    } else {
      spans.push_back({.first = ids, .layout = layout, .floats = floats, .weight_decay = decay});
    }
    last = lie_alike ? ids : std::vector<Id>{};
  }
  return spans;
}

// ---- SGD

namespace {

void sgd(int threads, float* w, const float* g, std::int64_t count, float learning_rate) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      w[i] = crossover::sgd(w[i], g[i], learning_rate);
    }
  });
}

}  // namespace

void lower(const Sgd& op, Lowering& to) {
  const auto rate = static_cast<float>(op.learning_rate * op.gradient_factor);
  for (const UpdateSpan& span : update_spans(to, {&op.parameters, &op.gradients}, {})) {
    to.add(OpCategory::update, span.threads(to),
           {updates(span.first[0], span.layout), reads(span.first[1], span.layout)},
           [rate, n = span.floats](const Invocation& call) {
             cpu::sgd(call.threads, call.operand<float>(0), call.operand<const float>(1), n, rate);
           });
  }
}

// ---- Momentum

namespace {

/// Of an update, in float.
struct MomentumFactors {
  float learning_rate, momentum, gradient_factor;
};

void momentum(int threads, float* w, const float* g, float* velocity, std::int64_t count,
              const MomentumFactors& factors) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      crossover::momentum(w[i], factors.gradient_factor * g[i], velocity[i], factors.learning_rate,
                          factors.momentum);
    }
  });
}

}  // namespace

void lower(const Momentum& op, Lowering& to) {
  const MomentumFactors factors{.learning_rate = static_cast<float>(op.learning_rate),
                                .momentum = static_cast<float>(op.momentum),
                                .gradient_factor = static_cast<float>(op.gradient_factor)};
  for (const UpdateSpan& span :
       update_spans(to, {&op.parameters, &op.gradients, &op.velocities}, {})) {
    to.add(OpCategory::update, span.threads(to),
           {updates(span.first[0], span.layout), reads(span.first[1], span.layout),
            updates(span.first[2], span.layout)},
           [factors, n = span.floats](const Invocation& call) {
             cpu::momentum(call.threads, call.operand<float>(0), call.operand<const float>(1),
                           call.operand<float>(2), n, factors);
           });
  }
}

// ---- AdamW: its time first, then a pass over the parameters of each weight decay.

namespace {

void adamw(int threads, float* w, const float* g, float* m, float* v, std::int64_t count,
           const AdamWFactors<float>& factors) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    const AdamWFactors<float> f = factors;
    for (std::int64_t i = begin; i < end; ++i) {
      crossover::adamw(w[i], g[i], m[i], v[i], f);
    }
  });
}

}  // namespace

void lower(const AdamW& op, Lowering& to) {
  to.add(OpCategory::update, 1, {updates(op.step)},
         [](const Invocation& call) { ++*call.operand<std::int32_t>(0); });
  const AdamWConstants constants{.learning_rate = op.learning_rate,
                                 .beta1 = op.beta1,
                                 .beta2 = op.beta2,
                                 .epsilon = op.epsilon,
                                 .gradient_factor = op.gradient_factor};
  for (const UpdateSpan& span :
       update_spans(to, {&op.parameters, &op.gradients, &op.m, &op.v}, op.weight_decay)) {
    to.add(
        OpCategory::update, span.threads(to),
        {updates(span.first[0], span.layout), reads(span.first[1], span.layout),
         updates(span.first[2], span.layout), updates(span.first[3], span.layout), reads(op.step)},
        [constants, n = span.floats, decay = span.weight_decay](const Invocation& call) {
          const auto factors =
              adamw_factors<float>(constants, decay, *call.operand<const std::int32_t>(4));
          cpu::adamw(call.threads, call.operand<float>(0), call.operand<const float>(1),
                     call.operand<float>(2), call.operand<float>(3), n, factors);
        });
  }
}

// ---- All reduce

/// One call for all tensors that lie one after another: a call costs more than a few numbers do.
void lower(const AllReduce& op, Lowering& to) {
  for (const UpdateSpan& span : update_spans(to, {&op.tensors}, {})) {
    to.add(OpCategory::communication, 1, {updates(span.first[0], span.layout)},
           [ranks = to.ranks(), overlaps = to.overlaps_sums(),
            n = static_cast<std::size_t>(span.floats)](const Invocation& call) {
             const std::span<float> values(call.operand<float>(0), n);
             if (overlaps) {
               ranks->start_sum(values);
             } else {
               ranks->sum(values);
             }
           });
  }
}

}  // namespace crossover::cpu
