// SPDX-License-Identifier: Apache-2.0
#include "settle_layouts.h"

#include <initializer_list>
#include <map>

#include "convolution.h"
#include "image.h"

namespace crossover::cpu {
namespace {

/// What each operation knows to be an image; all in a network that stores the first one's type.
class Images {
 public:
  explicit Images(Lowering& to) : to_(to) {}

  void operator()(const Convolution& op) const { settle({op.x, op.y}); }
  void operator()(const ConvolutionGrad& op) const { settle({op.dy, op.x, op.dx}); }
  void operator()(const ChannelBiasGrad& op) const { settle({op.dy}); }
  void operator()(const BatchNorm& op) const { settle({op.x, op.addend, op.y}); }
  void operator()(const BatchNormGrad& op) const {
    settle({op.x, op.y, op.dy, op.dy_more, op.dx, op.daddend});
  }
  void operator()(const GroupNorm& op) const { settle({op.x, op.y}); }
  void operator()(const GroupNormGrad& op) const { settle({op.x, op.dy, op.dx}); }
  void operator()(const MaxPool& op) const { settle({op.x, op.y, op.where}); }
  void operator()(const MaxPoolGrad& op) const { settle({op.dy, op.y, op.where, op.dx}); }
  void operator()(const AveragePool& op) const { settle({op.x, op.y}); }
  void operator()(const AveragePoolGrad& op) const { settle({op.dy, op.x, op.dx}); }
  void operator()(const GlobalAveragePool& op) const { settle({op.x}); }
  void operator()(const GlobalAveragePoolGrad& op) const { settle({op.dx}); }
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
    const Layout& layout = to_.settle(op.dw, weight_gradient_layout(op, to_));
    const auto found = original_.find(op.w);
    const Id original = found == original_.end() ? op.w : found->second;
    if (to_[original].type == Type::f32) {
      to_.settle(original, layout);
    }
  }
  template <class Other>
  void settle_gradient(const Other& /*op*/) {}

  void settle_forward(const Convolution& op) { to_.settle(op.w, forward_weights_layout(op, to_)); }
  template <class Other>
  void settle_forward(const Other& /*op*/) {}

 private:
  Lowering& to_;
  std::map<Id, Id> original_;  ///< by the copy
};

}  // namespace

void settle_layouts(Lowering& to) {
  for_each_op(to.workload(), Images(to));
  Weights weights(to);
  for_each_op(to.workload(), [&](const auto& op) { weights.find_copy(op); });
  for_each_op(to.workload(), [&](const auto& op) { weights.settle_gradient(op); });
  for_each_op(to.workload(), [&](const auto& op) { weights.settle_forward(op); });
}

}  // namespace crossover::cpu
