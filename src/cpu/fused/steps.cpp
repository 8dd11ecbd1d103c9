// SPDX-License-Identifier: Apache-2.0
#include "steps.h"

#include <algorithm>
#include <map>

namespace crossover::cpu::fused {
namespace {

/// Binds tensors once, however many steps have them.
class Binder {
 public:
  Binder(const Workload& workload, Arena& arena, Memory& memory)
      : workload_(workload), arena_(arena), memory_(memory) {}

  float* matrix(Id id, std::int64_t ld) {
    return once(id, [&] { return memory_.matrix(arena_, id, ld); });
  }
  template <class T = float>
  T* plain(Id id) {
    return once(id, [&] { return memory_.plain<T>(arena_, id); });
  }
  const Tensor& operator[](Id id) const { return workload_[id]; }
  Arena& arena() { return arena_; }

 private:
  template <class Make>
  auto once(Id id, const Make& make) -> decltype(make()) {
    const auto at = bound_.find(id);
    if (at != bound_.end()) {
      return static_cast<decltype(make())>(at->second);
    }
    const auto made = make();
    bound_.emplace(id, made);
    return made;
  }

  const Workload& workload_;
  Arena& arena_;
  Memory& memory_;
  std::map<Id, void*> bound_;
};

/// Where the optimizer's lists have a parameter.
std::size_t index_of(const std::vector<Id>& ids, Id id) {
  return static_cast<std::size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
}

Layer bind_layer(const DenseLayer& from, const DenseStep& step, std::int64_t stride,
                 bool keep_gradients, Binder& bind) {
  Layer layer{.in = from.in,
              .out = from.out,
              .ld = leading_dimension(from.out),
              .activation = from.activation,
              .x_activation = from.x_activation};
  layer.weights = bind.matrix(from.w, layer.ld);
  layer.bias = bind.plain(from.bias);
  layer.y = bind.matrix(from.y, stride);
  layer.dy = bind.matrix(from.dy, stride);
  if (from.dx != none) {
    layer.dx = bind.matrix(from.dx, stride);
  }
  if (keep_gradients && !step.updates_in_place()) {
    layer.dw = bind.matrix(from.dw, layer.ld);
    layer.dbias = bind.plain(from.dbias);
  }
  if (step.adamw) {
    const std::size_t w = index_of(step.adamw->parameters, from.w);
    const std::size_t bias = index_of(step.adamw->parameters, from.bias);
    layer.m = bind.matrix(step.adamw->m[w], layer.ld);
    layer.v = bind.matrix(step.adamw->v[w], layer.ld);
    layer.bias_m = bind.plain(step.adamw->m[bias]);
    layer.bias_v = bind.plain(step.adamw->v[bias]);
  }
  return layer;
}

Optimizer bind_optimizer(const DenseStep& step, Binder& bind) {
  if (step.sgd) {
    return {.rate = static_cast<float>(step.sgd->learning_rate * step.sgd->gradient_factor)};
  }
  if (!step.adamw) {
    return {.rate = -1};  // the gradients are the updates
  }
  const AdamW& adamw = *step.adamw;
  const auto decay_of = [&](Id id) { return adamw.weight_decay[index_of(adamw.parameters, id)]; };
  const DenseLayer& first = step.layers.front();
  for (const DenseLayer& layer : step.layers) {
    if (decay_of(layer.w) != decay_of(first.w) || decay_of(layer.bias) != decay_of(first.bias)) {
      throw Unsupported("fused execution takes one weight decay for all layers");
    }
  }
  return {.time = bind.plain<std::int32_t>(adamw.step),
          .constants = {.learning_rate = adamw.learning_rate,
                        .beta1 = adamw.beta1,
                        .beta2 = adamw.beta2,
                        .epsilon = adamw.epsilon,
                        .gradient_factor = adamw.gradient_factor},
          .weight_decay = decay_of(first.w),
          .bias_decay = decay_of(first.bias)};
}

/// A phase is shared where it is long against the wait before and after it.
std::vector<Phase> phases_of(const FusedStep& step, int threads) {
  const auto pays = [&](double multiply_adds) {
    constexpr double least = 50'000;  // about 1 us
    return threads > 1 && multiply_adds >= least;
  };
  const auto rows = static_cast<double>(step.batch.rows);
  const auto work = [&](const Layer& layer) {
    return rows * static_cast<double>(layer.in) * static_cast<double>(layer.out);
  };
  const std::int64_t layers = std::ssize(step.layers);
  std::vector<Phase> phases;
  phases.push_back({Phase::Kind::gather, 0, pays(rows * static_cast<double>(step.layers[0].in))});
  for (std::int64_t i = 0; i < layers; ++i) {
    phases.push_back(
        {Phase::Kind::forward, i, pays(work(step.layers[static_cast<std::size_t>(i)]))});
  }
  constexpr double of_a_class = 20;  // an exponential, and passes
  phases.push_back(
      {Phase::Kind::loss, 0, pays(of_a_class * rows * static_cast<double>(step.loss.classes))});
  for (std::int64_t i = layers - 1; i >= 0; --i) {
    phases.push_back(
        {Phase::Kind::backward, i, pays(2 * work(step.layers[static_cast<std::size_t>(i)]))});
  }
  bool before = phases.back().shared;  // steps follow one another
  for (Phase& phase : phases) {
    phase.wait = threads > 1 && (phase.shared || before);
    before = phase.shared;
  }
  return phases;
}

}  // namespace

Update Optimizer::next() const {
  if (time == nullptr) {
    return {.rate = rate};
  }
  ++*time;
  return {.of_weights = adamw_factors<float>(constants, weight_decay, *time),
          .of_biases = adamw_factors<float>(constants, bias_decay, *time)};
}

std::vector<FusedStep> bind_steps(const Workload& workload, const std::vector<DenseStep>& training,
                                  int threads, bool keep_gradients, Arena& arena, Memory& memory) {
  Binder bind(workload, arena, memory);
  std::vector<FusedStep> steps;
  for (const DenseStep& from : training) {
    const Id data = workload[from.inputs()].source;
    FusedStep step;
    step.batch.rows = from.batch;
    step.batch.stride = (from.batch + floats_of_line - 1) / floats_of_line * floats_of_line;
    step.data_ld = leading_dimension(workload[data].shape[0]);
    step.data = bind.matrix(data, step.data_ld);
    step.inputs = arena.take<float>((from.layers[0].in + tile) * step.batch.stride);
    step.labels = bind.plain<std::int32_t>(workload[from.loss.labels].source);
    step.losses = bind.plain(from.loss.loss);
    for (const DenseLayer& layer : from.layers) {
      step.layers.push_back(bind_layer(layer, from, step.batch.stride, keep_gradients, bind));
      Layer& made = step.layers.back();
      made.x = step.layers.size() == 1 ? step.inputs : step.layers[step.layers.size() - 2].y;
    }
    step.loss = {.classes = from.classes(),
                 .logits = step.layers.back().y,
                 .dlogits = bind.matrix(from.loss.dlogits, step.batch.stride),
                 .factor = static_cast<float>(from.loss.scale / static_cast<double>(from.batch))};
    step.optimizer = bind_optimizer(from, bind);
    step.phases = phases_of(step, threads);
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace crossover::cpu::fused
