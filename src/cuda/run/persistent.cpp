// SPDX-License-Identifier: Apache-2.0
// Runs by one kernel, however many: Execution::persistent, and tailored.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <variant>
#include <vector>

#include "../../step/overload.h"
#include "../kernels/persistent.cuh"
#include "../libraries/tailored_kernel.h"
#include "../plan/persistent.h"
#include "executor.h"
#include "footprint.h"

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
    std::copy(persistent_.layers.begin(), persistent_.layers.end(), of.on_chip);
    std::copy(persistent_.steps.begin(), persistent_.steps.end(), of.step);
    for (std::size_t l = 0; l < first.layers.size(); ++l) {
      of.layer[l] = {.w = {.values = at<float>(first.layers[l].w)},
                     .bias = {.values = at<float>(first.layers[l].bias)}};
    }
    const std::int64_t wanted = wanted_of_row(first);
    for (std::size_t s = 0; s < persistent_.dense.size(); ++s) {
      const DenseStep& step = persistent_.dense[s];
      of.batch[s] = static_cast<int>(step.batch);
      const auto summed = static_cast<double>(step.batch * wanted);
      of.mean_factor[s] = 1 / summed;
      of.loss_factor[s] = static_cast<float>(step.loss.scale / summed);
    }
    of.order = running_.binding.address<const OrderedRun>(running_.plan.order);
    if (running_.plan.mode.is_resident()) {
      of.inputs = at<float>(source(first.inputs()));
      of.wanted = at<std::int32_t>(source(first.loss.wanted));
    }
    of.wanted_of_row = static_cast<int>(wanted);
    of.loss_function = first.loss.function;
    of.loss = at<float>(first.loss.loss);
    set_optimizer(of, first);
    return of;
  }

  /// A part of the order, whose rows lie at the position where they came from the host.
  void set_part(TrainingArguments& of, const OrderPart& part, const Position& position) const {
    of.first = part.first;
    of.end = part.end;
    if (const auto& inputs = running_.step_plan(0).inputs; !inputs.empty()) {
      of.first_row = position.first_row;
      of.inputs = staged<const float>(inputs[0], position);
      of.wanted = staged<const std::int32_t>(inputs[1], position);
    }
  }

  void keep(TrainingArguments& of, std::int64_t run) const {
    const DenseStep& step = persistent_.dense[static_cast<std::size_t>(running_.run(run).step)];
    for (std::size_t l = 0; l < step.layers.size(); ++l) {
      of.kept[l] = kept(step, step.layers[l]);
    }
  }

 private:
  [[nodiscard]] Id source(Id view) const { return running_.workload[view].source; }
  template <class T>
  [[nodiscard]] T* at(Id id) const {
    return running_.binding.address<T>(running_.plan[id].offset);
  }

  template <class T>
  [[nodiscard]] T* staged(const StagedInput& input, const Position& position) const {
    return running_.binding.address<T>(input.staged + position.buffer * running_.plan.buffer_bytes);
  }

  [[nodiscard]] KeptLayer kept(const DenseStep& step, const DenseLayer& layer) const {
    KeptLayer kept{.y = at<float>(layer.y), .dy = at<float>(layer.dy)};
    kept.sum = layer.sum == none ? nullptr : at<float>(layer.sum);
    kept.product = layer.product == none ? nullptr : at<float>(layer.product);
    if (!step.updates_in_place()) {
      kept.dw = at<float>(layer.dw);
      kept.dbias = at<float>(layer.dbias);
    }
    return kept;
  }

  void set_optimizer(PersistentArguments& of, const DenseStep& step) const {
    if (step.updates_in_place()) {
      of.sgd.learning_rate = -1;  // gradients are the updates
      return;
    }
    const Update& update = *step.update;
    const UpdateTerms terms{.gradient_factor = update.gradient_factor};
    std::visit(Overload{[&](const SgdOptions& sgd) { of.sgd = sgd.factors<float>(terms); },
                        [&](const MomentumOptions& momentum) {
                          of.momentum = momentum.factors<float>(terms);
                        },
                        [&](const AdamWOptions& adamw) {
                          of.time = at<std::int32_t>(update.step);
                          of.adamw = adamw.factors<float>(terms);
                          of.clock = adamw.clock();
                        }},
               update.rule);
    for (std::size_t l = 0; l < step.layers.size(); ++l) {
      set_states(of.layer[l].w, step.layers[l].w, update);
      set_states(of.layer[l].bias, step.layers[l].bias, update);
    }
  }

  void set_states(TrainedTensor& tensor, Id parameter, const Update& update) const {
    const auto found = std::find(update.parameters.begin(), update.parameters.end(), parameter);
    const auto p = static_cast<std::size_t>(found - update.parameters.begin());
    tensor.m = update.states.empty() ? nullptr : at<float>(update.states[0][p]);
    tensor.v = update.states.size() < 2 ? nullptr : at<float>(update.states[1][p]);
    if (const auto* adamw = std::get_if<AdamWOptions>(&update.rule)) {
      tensor.keep = static_cast<float>(1 - adamw->learning_rate * update.decay_of(p));
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
        feeder_(make_feeder(running)),
        shape_{.team = running.plan.persistent->team,
               .blocks = running.plan.persistent->blocks,
               .threads = running.plan.persistent->threads,
               .shared_bytes =
                   running.plan.persistent->is_on_chip() ? running.plan.persistent->bytes : 0,
               .keep = running.plan.mode.activations == Activations::kept} {
    if (running.plan.persistent->tailored) {
      tailored_ = make_tailored_kernel(*running.plan.persistent->tailored);
    } else {
      prepare_training(shape_, running.plan.persistent->most_shared_bytes);
    }
    running.upload_order();
  }

  void enqueue(std::int64_t first, std::int64_t count) override {
    train(first, count,
          [this](const OrderPart& part, const Position& position) { issue(part, position); });
  }

  bool join(const std::vector<const std::byte*>& blocks) override {
    if (!running_.plan.joins()) {
      return false;
    }
    std::vector<std::int64_t> shifts;
    shifts.reserve(blocks.size());
    for (const std::byte* block : blocks) {
      shifts.push_back(block - blocks.front());
    }
    copies_ = static_cast<int>(blocks.size());
    shifts_ = allocate_device(std::ssize(shifts) * std::int64_t{sizeof(std::int64_t)});
    CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(shifts_.get(), shifts.data(),
                                         shifts.size() * sizeof(std::int64_t),
                                         cudaMemcpyHostToDevice, running_.stream()));
    running_.wait();
    return true;
  }
  void enqueue_joined(std::int64_t first, std::int64_t count) override {
    PersistentArguments arguments = arguments_;
    arguments.shifts = reinterpret_cast<const std::int64_t*>(shifts_.get());
    TrainingShape shape = shape_;
    shape.copies = copies_;
    train(first, count, [&](const OrderPart& part, const Position& position) {
      Arguments(running_).set_part(arguments, part, position);
      launch(arguments, shape);
    });
  }

  [[nodiscard]] bool issues_order_at_once() const override { return true; }
  void issue(const OrderPart& part, const Position& position) const override {
    const Footprint footprint(running_.workload, running_.binding, position);
    PersistentArguments arguments = arguments_;
    Arguments(running_).set_part(arguments, part, position);
    if (shape_.keep) {
      Arguments(running_).keep(arguments, part.first);
    }
    launch(arguments, shape_);
  }

 private:
  /// Calls issue(part, position) for one part after the other, each behind its rows.
  template <class Issue>
  void train(std::int64_t first, std::int64_t count, const Issue& issue) const {
    const std::int64_t end = first + count;
    const auto part_from = [&](std::int64_t run) {
      const std::int64_t most = shape_.keep ? std::min(run + 1, end) : end;
      return first_part(running_.workload, running_.plan, {.first = run, .end = most});
    };
    OrderPart part = part_from(first);
    feeder_->begin(part);
    while (!part.is_empty()) {
      issue(part, feeder_->before(part));
      part = part_from(part.end);
      feeder_->after(part);
    }
  }

  void launch(const PersistentArguments& arguments, const TrainingShape& shape) const {
    if (tailored_) {
      tailored_->launch(running_.stream(), arguments, shape.copies);
    } else {
      cuda::train(running_.stream(), arguments, shape);
    }
  }

  const Running& running_;
  PersistentArguments arguments_;
  std::unique_ptr<Feeder> feeder_;
  TrainingShape shape_;
  std::unique_ptr<TailoredKernel> tailored_;  ///< in place of the one that takes any network
  int copies_ = 1;                            ///< that have joined, with this one
  DeviceMemory shifts_;
};

}  // namespace

std::unique_ptr<Executor> make_persistent(const Running& running) {
  return std::make_unique<Persistent>(running);
}

}  // namespace crossover::cuda
