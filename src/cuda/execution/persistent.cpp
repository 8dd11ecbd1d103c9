// SPDX-License-Identifier: Apache-2.0
// Runs by one kernel, however many: Execution::persistent.
#include "../kernels/persistent.cuh"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "executor.h"

namespace crossover::cuda {
namespace {

/// From tensors to the kernel's arguments.
class Arguments {
 public:
  explicit Arguments(const Running& running)
      : running_(running), persistent_(*running.plan.persistent) {}

  [[nodiscard]] PersistentArguments made() const {
    PersistentArguments of;
    const DenseStep& first = persistent_.dense.front();
    of.layers = static_cast<int>(first.layers.size());
    of.places = persistent_.places;
    if (persistent_.team == TeamKind::cluster) {
      of.memories_log2 = std::countr_zero(static_cast<unsigned>(persistent_.blocks));
    }
    if (!persistent_.is_on_chip()) {
      of.workspace = running_.binding.address<float>(persistent_.workspace);
    }
    for (std::size_t l = 0; l < first.layers.size(); ++l) {
      of.layer[l] = {.on_chip = persistent_.layers[l],
                     .w = {.values = at<float>(first.layers[l].w)},
                     .bias = {.values = at<float>(first.layers[l].bias)}};
    }
    for (std::size_t s = 0; s < persistent_.dense.size(); ++s) {
      const DenseStep& step = persistent_.dense[s];
      of.step[s] = persistent_.steps[s];
      of.loss_factor[s] = static_cast<float>(step.loss.scale / static_cast<double>(step.batch));
      for (std::size_t l = 0; l < step.layers.size() && is_kept(); ++l) {
        of.kept[s][l] = kept(step, step.layers[l]);
      }
    }
    of.order = running_.binding.address<const OrderedRun>(running_.plan.order);
    of.inputs = at<float>(source(first.inputs()));
    of.labels = at<std::int32_t>(source(first.loss.wanted));
    of.loss = at<float>(first.loss.loss);
    set_optimizer(of, first);
    return of;
  }

 private:
  [[nodiscard]] bool is_kept() const { return running_.plan.mode.activations == Activations::kept; }
  [[nodiscard]] Id source(Id view) const { return running_.workload[view].source; }
  template <class T>
  [[nodiscard]] T* at(Id id) const {
    return running_.binding.address<T>(running_.plan[id].offset);
  }

  [[nodiscard]] KeptLayer kept(const DenseStep& step, const DenseLayer& layer) const {
    KeptLayer kept{.y = at<float>(layer.y), .dy = at<float>(layer.dy)};
    if (!step.updates_in_place()) {
      kept.dw = at<float>(layer.dw);
      kept.dbias = at<float>(layer.dbias);
    }
    return kept;
  }

  void set_optimizer(PersistentArguments& of, const DenseStep& step) const {
    if (step.updates_in_place()) {
      of.learning_rate = -1;  // gradients are the updates
    } else if (step.sgd) {
      of.learning_rate = static_cast<float>(step.sgd->learning_rate * step.sgd->gradient_factor);
    } else {
      set_adamw(of, step);
    }
  }

  void set_adamw(PersistentArguments& of, const DenseStep& step) const {
    const AdamW& adamw = *step.adamw;
    of.time = at<std::int32_t>(adamw.step);
    of.adamw = adamw_factors<float>(adamw, 0.0, 1);
    of.clock = {.learning_rate = static_cast<float>(adamw.learning_rate),
                .log_beta1 = static_cast<float>(std::log(adamw.beta1)),
                .log_beta2 = static_cast<float>(std::log(adamw.beta2))};
    const auto set_states = [&](TrainedTensor& tensor, Id parameter) {
      const auto p = static_cast<std::size_t>(
          std::find(adamw.parameters.begin(), adamw.parameters.end(), parameter) -
          adamw.parameters.begin());
      tensor.m = at<float>(adamw.m[p]);
      tensor.v = at<float>(adamw.v[p]);
      tensor.keep = static_cast<float>(1 - adamw.learning_rate * adamw.weight_decay[p]);
    };
    for (std::size_t l = 0; l < step.layers.size(); ++l) {
      set_states(of.layer[l].w, step.layers[l].w);
      set_states(of.layer[l].bias, step.layers[l].bias);
    }
  }

  const Running& running_;
  const PersistentPlan& persistent_;
};

class Persistent : public Executor {
 public:
  explicit Persistent(const Running& running)
      : running_(running),
        arguments_(Arguments(running).made()),
        shape_{.team = running.plan.persistent->team,
               .blocks = running.plan.persistent->blocks,
               .threads = running.plan.persistent->threads,
               .shared_bytes =
                   running.plan.persistent->is_on_chip() ? running.plan.persistent->bytes : 0,
               .keep = running.plan.mode.activations == Activations::kept} {
    prepare_training(shape_, running.plan.persistent->most_shared_bytes);
    running.upload_order();
  }

  void enqueue(std::int64_t first, std::int64_t count) override { train(first, count); }
  [[nodiscard]] bool issues_order_at_once() const override { return true; }
  void issue(std::int64_t run, const Position& /*position*/) const override { train(run, 1); }

 private:
  void train(std::int64_t first, std::int64_t count) const {
    PersistentArguments arguments = arguments_;
    arguments.first = first;
    arguments.end = first + count;
    cuda::train(running_.stream(), arguments, shape_);
  }

  const Running& running_;
  PersistentArguments arguments_;
  TrainingShape shape_;
};

}  // namespace

std::unique_ptr<Executor> make_persistent(const Running& running) {
  return std::make_unique<Persistent>(running);
}

}  // namespace crossover::cuda
