// SPDX-License-Identifier: Apache-2.0
#include "crossover/dense_training.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>

#include "crossover/backend.h"

namespace crossover {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Unsupported(
      "one program for whole steps takes networks of Linear layers alone, used in f32, or trained "
      "with one update a batch: " +
      why);
}

/// Reads a step's operations in the order in which training_epoch() puts them.
class StepReader {
 public:
  StepReader(const Workload& workload, const Step& step) : workload_(workload), ops_(step.ops) {}

  std::vector<DenseLayer> read_pass() {
    read_layers();
    if (step_.layers.empty() || next_ != ops_.size()) {
      refuse_next();
    }
    std::set<Id> weights;
    for (const DenseLayer& layer : step_.layers) {
      require_f32({layer.x, layer.w, layer.y});
      if (!weights.insert(layer.w).second) {
        refuse("two share their weights");
      }
    }
    return step_.layers;
  }

  DenseStep read() {
    read_layers();
    if (step_.layers.empty() || step_.layers.back().activation != Activation::identity) {
      refuse_next();
    }
    read_loss();
    Id dy = step_.loss.dlogits;
    for (std::size_t i = step_.layers.size(); i-- > 0;) {
      DenseLayer& layer = step_.layers[i];
      const auto* gradient = next_if<LinearGrad>();
      if (gradient == nullptr || gradient->dy != dy) {
        refuse_next();
      }
      add_gradient(*gradient, layer);
      if (i > 0 && step_.layers[i - 1].sum != none) {
        add_derivative(step_.layers[i - 1], layer);
      }
      dy = layer.dx;
    }
    if (const auto* update = next_if<Update>()) {
      step_.update = *update;
      require_all(update->parameters, update->gradients);
    }
    if (next_ != ops_.size()) {
      refuse_next();
    }
    require_updates();
    for (const DenseLayer& layer : step_.layers) {
      require_f32({layer.x, layer.w, layer.y, layer.dy});
    }
    return step_;
  }

 private:
  template <class Operation>
  [[nodiscard]] const Operation* peek() const {
    return next_ < ops_.size() ? std::get_if<Operation>(&ops_[next_]) : nullptr;
  }
  template <class Operation>
  const Operation* next_if() {
    const auto* op = peek<Operation>();
    next_ += op == nullptr ? 0 : 1;
    return op;
  }

  void read_layers() {
    while (const auto* linear = next_if<Linear>()) {
      add_layer(*linear);
    }
  }

  [[noreturn]] void refuse_next() const {
    refuse(next_ < ops_.size() ? std::string("this one goes on with ") + name(ops_[next_])
                               : "this one ends early");
  }

  void read_loss() {
    const auto take = [&](const auto& loss, LossFunction function, Id wanted) {
      step_.loss = {function, loss.logits, wanted, loss.loss, loss.dlogits, loss.scale};
    };
    if (const auto* of_labels = next_if<SoftmaxCrossEntropy>()) {
      take(*of_labels, LossFunction::cross_entropy, of_labels->labels);
    } else if (const auto* of_targets = next_if<ElementwiseLoss>()) {
      take(*of_targets, of_targets->function, of_targets->targets);
    }
    if (step_.loss.logits != step_.layers.back().y) {
      refuse_next();
    }
  }

  void add_layer(const Linear& linear) {
    const Shape& w = workload_[linear.w].shape;
    DenseLayer layer{.in = w[1],
                     .out = w[0],
                     .x = linear.x,
                     .w = linear.w,
                     .bias = linear.bias,
                     .y = linear.y,
                     .activation = linear.activation};
    if (step_.layers.empty()) {
      if (workload_[linear.x].role != Role::input) {
        refuse("the first one does not read the data");
      }
      step_.batch = leading(workload_[linear.x].shape);
    } else {
      if (linear.x != step_.layers.back().y) {
        refuse("they are no chain");
      }
      layer.x_activation = step_.layers.back().activation;
    }
    if (linear.bias == none) {
      refuse("one has no bias");
    }
    if (const auto* next = peek<Activate>();
        next != nullptr && next->x == layer.y && derivative_takes_input(next->activation)) {
      ++next_;
      layer.sum = layer.y;
      layer.y = next->y;
      layer.activation = next->activation;
    }
    step_.layers.push_back(layer);
  }

  void add_gradient(const LinearGrad& gradient, DenseLayer& layer) const {
    const bool is_first = &layer == step_.layers.data();
    const Activation joined =
        derivative_takes_input(layer.x_activation) ? Activation::identity : layer.x_activation;
    if (gradient.w != layer.w || gradient.x != layer.x || gradient.dbias == none ||
        (gradient.dx == none) != is_first || gradient.x_activation != joined) {
      refuse("their gradients are no chain");
    }
    layer.dy = gradient.dy;
    layer.dx = gradient.dx;
    layer.dw = gradient.dw;
    layer.dbias = gradient.dbias;
    if (gradient.accumulate && (layer.dw != layer.w || layer.dbias != layer.bias)) {
      refuse("layers add to gradients instead of overwriting them");
    }
  }

  /// Of the layer `before`, whose activation made the layer's x.
  void add_derivative(const DenseLayer& before, DenseLayer& layer) {
    const auto* derivative = next_if<ActivateGrad>();
    if (derivative == nullptr || derivative->at != before.sum || derivative->dy != layer.dx) {
      refuse_next();
    }
    layer.product = layer.dx;
    layer.dx = derivative->dx;
  }

  /// An optimizer must update each parameter from its own gradient.
  void require_all(const std::vector<Id>& parameters, const std::vector<Id>& gradients) const {
    const auto updates = [&](Id parameter, Id gradient) {
      const auto at = std::find(parameters.begin(), parameters.end(), parameter);
      return at != parameters.end() &&
             gradients[static_cast<std::size_t>(at - parameters.begin())] == gradient;
    };
    for (const DenseLayer& layer : step_.layers) {
      if (!updates(layer.w, layer.dw) || !updates(layer.bias, layer.dbias)) {
        refuse("an update leaves some parameters out");
      }
    }
  }

  void require_updates() const {
    for (const DenseLayer& layer : step_.layers) {
      if ((layer.dw == layer.w) != step_.updates_in_place() ||
          (layer.dbias == layer.bias) != step_.updates_in_place()) {
        refuse("layers add to gradients instead of overwriting them");
      }
    }
  }

  void require_f32(std::initializer_list<Id> ids) const {
    for (const Id id : ids) {
      if (workload_[id].type != Type::f32) {
        refuse("'" + workload_[id].name + "' is " + to_string(workload_[id].type));
      }
    }
  }

  const Workload& workload_;
  const std::vector<Op>& ops_;
  std::size_t next_ = 0;
  DenseStep step_;
};

}  // namespace

std::vector<DenseLayer> dense_pass(const Workload& workload) {
  if (workload.steps.size() != 1) {
    refuse("it has several steps");
  }
  return StepReader(workload, workload.steps.front()).read_pass();
}

std::vector<DenseStep> dense_training(const Workload& workload) {
  std::vector<DenseStep> steps;
  for (const Step& step : workload.steps) {
    steps.push_back(StepReader(workload, step).read());
    const auto same = [](const DenseLayer& a, const DenseLayer& b) {
      return a.w == b.w && a.bias == b.bias && a.activation == b.activation;
    };
    const std::vector<DenseLayer>& first = steps.front().layers;
    const std::vector<DenseLayer>& last = steps.back().layers;
    if (!std::equal(first.begin(), first.end(), last.begin(), last.end(), same)) {
      refuse("its steps have different layers");
    }
  }
  return steps;
}

}  // namespace crossover
