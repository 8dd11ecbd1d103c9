// SPDX-License-Identifier: Apache-2.0
// Joins neighbouring operations, for every device alike: what the fused forms mean stands in
// operations/linear.h.
#include <algorithm>
#include <map>
#include <optional>

#include "crossover/training.h"

namespace crossover {
namespace {

class StepFuser {
 public:
  explicit StepFuser(Step& step) : ops_(step.ops), removed_(step.ops.size(), false) {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const Operands used = operands(ops_[i]);
      for (const Id id : used.reads) {
        ++readers_[id];
      }
      for (const Id id : used.writes) {
        writer_[id] = i;
      }
    }
  }

  void run() {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (const auto* activate = std::get_if<Activate>(&ops_[i])) {
        removed_[i] = join(*activate);
      } else if (const auto* gradient = std::get_if<ActivateGrad>(&ops_[i])) {
        removed_[i] = join(*gradient);
      }
    }
    std::vector<Op> kept;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (!removed_[i]) {
        kept.push_back(std::move(ops_[i]));
      }
    }
    ops_ = std::move(kept);
  }

 private:
  /// The operation that makes `id`, where it is an `Operation` and `id` has no other reader than
  /// the caller.
  template <class Operation>
  Operation* sole_source(Id id) {
    const auto at = writer_.find(id);
    return at != writer_.end() && readers_[id] == 1 ? std::get_if<Operation>(&ops_[at->second])
                                                    : nullptr;
  }

  bool join(const Activate& activate) {
    auto* linear = sole_source<Linear>(activate.x);
    if (linear == nullptr || linear->activation != Activation::identity) {
      return false;
    }
    linear->y = activate.y;
    linear->activation = activate.activation;
    return true;
  }

  bool join(const ActivateGrad& gradient) {
    auto* linear = sole_source<LinearGrad>(gradient.dy);
    // The factor is taken from the layer's input, so that input must be what the activation made.
    if (linear == nullptr || linear->dx != gradient.dy || linear->x != gradient.y ||
        linear->x_activation != Activation::identity) {
      return false;
    }
    linear->dx = gradient.dx;
    linear->x_activation = gradient.activation;
    return true;
  }

  std::vector<Op>& ops_;
  std::vector<bool> removed_;
  std::map<Id, int> readers_;
  std::map<Id, std::size_t> writer_;
};

}  // namespace

Workload fuse(Workload workload) {
  for (Step& step : workload.steps) {
    StepFuser(step).run();
  }
  return workload;
}

}  // namespace crossover
