// SPDX-License-Identifier: Apache-2.0
// A whole Workload: layouts that several operations share, then each operation in turn.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <variant>

#include "../base/layout.h"
#include "../plan/lowering.h"
#include "../plan/primitives.h"
#include "../winograd/passes.h"
#include "crossover/alive.h"
#include "crossover/training.h"
#include "operations.h"

namespace crossover::cpu {

// ---- Layouts that several operations share, settled before the first of them is asked: those of
// images and of the weights of convolutions.

namespace {

/// What each operation knows to be an image; all in a network that stores the first one's type.
class Images {
 public:
  explicit Images(Lowering& to) : to_(to) {}

  void operator()(const Convolution& op) const { settle({op.x, op.y}); }
  void operator()(const ConvolutionGrad& op) const { settle({op.dy, op.x, op.dx}); }
  void operator()(const ChannelBiasGrad& op) const { settle({op.dy}); }
  void operator()(const Norm& op) const {
    if (op.kind != NormKind::layer) {
      settle({op.x, op.addend, op.y});
    }
  }
  void operator()(const NormGrad& op) const {
    if (op.kind != NormKind::layer) {
      settle({op.x, op.y, op.dy, op.dy_more, op.dx, op.daddend});
    }
  }
  void operator()(const Pool& op) const { settle({op.x, op.y, op.where}); }
  void operator()(const PoolGrad& op) const { settle({op.dy, op.made, op.where, op.dx}); }
  void operator()(const Resample& op) const { settle({op.x, op.y}); }
  template <class Other>
  void operator()(const Other& /*op*/) const {}

 private:
  void settle(std::initializer_list<Id> ids) const {
    const Type type = to_[*ids.begin()].type;
    for (const Id id : ids) {
      if (id != none && to_[id].shape.size() == 4) {
        to_.settle(id, image_layout(to_[id], type));
      }
    }
  }

  Lowering& to_;
};

template <class Visit>
void for_each_op(const Workload& workload, const Visit& visit) {
  for (const Step& step : workload.steps) {
    for (const Op& op : step.ops) {
      std::visit(visit, op);
    }
  }
}

/// Weights lie as their gradient comes, so that updates run over both at once; only a copy of them
/// in 16 bits, which a Cast makes each step, lies as the forward pass reads it.
class Weights {
 public:
  explicit Weights(Lowering& to) : to_(to) {}

  void find_copy(const Cast& op) { original_[op.y] = op.x; }
  template <class Other>
  void find_copy(const Other& /*op*/) {}

  void settle_gradient(const ConvolutionGrad& op) {
    if (op.dw == none) {
      return;
    }
    const Layout& layout = to_.settle(op.dw, weight_gradient(op));
    const auto found = original_.find(op.w);
    const Id original = found == original_.end() ? op.w : found->second;
    if (to_[original].type == Type::f32) {
      to_.settle(original, layout);
    }
  }
  template <class Other>
  void settle_gradient(const Other& /*op*/) {}

  void settle_forward(const Convolution& op) { to_.settle(op.w, forward_weights(op)); }
  template <class Other>
  void settle_forward(const Other& /*op*/) {}

 private:
  /// Plain where Winograd's passes take it, else as oneDNN likes it best.
  [[nodiscard]] Layout weight_gradient(const ConvolutionGrad& op) const {
    return winograd::takes(op, to_) ? Layout() : weight_gradient_layout(op, to_);
  }
  [[nodiscard]] Layout forward_weights(const Convolution& op) const {
    return winograd::takes(op, to_) ? Layout() : forward_weights_layout(op, to_);
  }

  Lowering& to_;
  std::map<Id, Id> original_;  ///< by the copy
};

/// Throws Unsupported, dnnl::error.
void settle_layouts(Lowering& to) {
  for_each_op(to.workload(), Images(to));
  Weights weights(to);
  for_each_op(to.workload(), [&](const auto& op) { weights.find_copy(op); });
  for_each_op(to.workload(), [&](const auto& op) { weights.settle_gradient(op); });
  for_each_op(to.workload(), [&](const auto& op) { weights.settle_forward(op); });
}

}  // namespace

// ---- Lower

namespace {

/// Sums over ranks that were begun, and end before the first operation that reads one of them.
class SumsUnderWay {
 public:
  explicit SumsUnderWay(Lowering& to) : to_(to) {}

  void before(const Op& op) {
    if (!to_.overlaps_sums()) {
      return;
    }
    const Operands used = operands(op);
    if (const auto* begun = std::get_if<AllReduce>(&op)) {
      ids_.insert(begun->tensors.begin(), begun->tensors.end());
    } else if (std::any_of(used.reads.begin(), used.reads.end(),
                           [&](Id id) { return ids_.contains(id); })) {
      call(&Ranks::finish_sums);
      ids_.clear();
    } else if (!ids_.empty()) {
      call(&Ranks::progress);
    }
  }

 private:
  void call(void (Ranks::*what)()) {
    to_.add(OpCategory::communication, 1, {},
            [ranks = to_.ranks(), what](const Invocation& /*call*/) { (ranks->*what)(); });
  }

  Lowering& to_;
  std::set<Id> ids_;
};

}  // namespace

LoweredWorkload lower(const Workload& workload, int threads, const dnnl::engine& engine,
                      const std::map<Id, Layout>& settled, Execution execution, Ranks* ranks) {
  Lowering lowering(workload, threads, engine, settled, execution, ranks);
  if (execution == Execution::winograd) {
    winograd::require_any(lowering);
  }
  settle_layouts(lowering);
  for (const Step& step : workload.steps) {
    lowering.begin_step();
    SumsUnderWay sums(lowering);
    for (const Op& op : step.ops) {
      sums.before(op);
      lowering.begin_operation();
      std::visit([&](const auto& of_its_kind) { lower(of_its_kind, lowering); }, op);
      alive();
    }
  }
  return lowering.finish();
}

}  // namespace crossover::cpu
