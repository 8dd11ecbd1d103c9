// SPDX-License-Identifier: Apache-2.0
// Joins operations of a step, for every device alike.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "crossover/step.h"
#include "crossover/training.h"
#include "overload.h"

namespace crossover {

// ---- Who makes and who reads the tensors of a step: what decides which of its operations can be
// joined.

class Uses {
 public:
  explicit Uses(const std::vector<Op>& ops) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Operands used = operands(ops[i]);
      for (const Id id : used.reads) {
        readers_[id].push_back(i);
      }
      for (const Id id : used.writes) {
        writer_[id] = i;
      }
    }
  }

  /// Positions of the operations that read it, in their order.
  [[nodiscard]] const std::vector<std::size_t>& readers(Id id) const {
    static const std::vector<std::size_t> nobody;
    const auto at = readers_.find(id);
    return at != readers_.end() ? at->second : nobody;
  }

  /// The position of the operation that writes it last; `otherwise` where none does.
  [[nodiscard]] std::size_t writer(Id id, std::size_t otherwise) const {
    const auto at = writer_.find(id);
    return at != writer_.end() ? at->second : otherwise;
  }

 private:
  std::map<Id, std::vector<std::size_t>> readers_;
  std::map<Id, std::size_t> writer_;
};

// ---- Joins neighbouring operations, for every device alike: what the fused forms mean stands in
// the headers of the operations that have them.

namespace {

class StepFuser {
 public:
  StepFuser(Step& step, std::vector<Tensor>& tensors) : ops_(step.ops), tensors_(tensors) {}

  void run() {
    // Each looks for what the ones before it have made.
    if (!trains()) {        // else parameters are compared, the frozen ones as well
      pass<Convolution>();  // of one pixel, each channel by itself
    }
    pass<Activate>();  // behind a product or a convolution
    pass<Add>();       // behind a batch normalization, or before its gradient
    pass<Activate>();  // behind a batch normalization
    pass<ActivateGrad>();
    pass<Add>();
  }

 private:
  [[nodiscard]] bool trains() const {
    return std::any_of(ops_.begin(), ops_.end(),
                       [](const Op& op) { return category(op) == OpCategory::loss; });
  }

  /// Joins what it can of the operations of one kind, each with another one that takes it over.
  template <class Joined>
  void pass() {
    uses_.emplace(ops_);
    std::vector<bool> removed(ops_.size(), false);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      // A copy: what takes it over may change under it.
      if (const auto* op = std::get_if<Joined>(&ops_[i])) {
        removed[i] = join(Joined(*op), i);
      }
    }
    std::vector<Op> kept;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (!removed[i]) {
        kept.push_back(std::move(ops_[i]));
      }
    }
    ops_ = std::move(kept);
  }

  template <class Operation>
  Operation* at(std::size_t position) {
    return position < ops_.size() ? std::get_if<Operation>(&ops_[position]) : nullptr;
  }

  /// The operation that makes `id`, where it is an `Operation` and `id` has no other reader than
  /// the caller.
  template <class Operation>
  Operation* sole_source(Id id) {
    return uses_->readers(id).size() == 1 ? at<Operation>(uses_->writer(id, ops_.size())) : nullptr;
  }

  /// Null where it normalizes by anything else: only that of a batch takes over what is beside it.
  template <class Normalization>
  static Normalization* of_batch(Normalization* norm) {
    return norm != nullptr && norm->kind == NormKind::batch ? norm : nullptr;
  }

  [[nodiscard]] Tensor& tensor(Id id) { return tensors_[static_cast<std::size_t>(id)]; }

  /// A factor and an offset for each channel.
  bool is_affine(const Convolution& op) {
    const Shape& w = tensor(op.w).shape;
    return op.window == Window() && w[0] == tensor(op.x).shape[1] && w[1] == 1 && w[2] == 1 &&
           w[3] == 1 && op.bias != none;
  }

  /// Whether what starts as the tensor does may start otherwise: only the one operation reads it,
  /// nothing writes it, and it stands for itself.
  bool may_be_folded(Id id) {
    const Start& start = tensor(id).start;
    return tensor(id).role == Role::parameter && uses_->readers(id).size() == 1 &&
           uses_->writer(id, ops_.size()) == ops_.size() && start.factor == none &&
           start.offset == none;
  }

  bool join(const Convolution& affine, std::size_t /*position*/) {
    auto* source = sole_source<Convolution>(affine.x);
    if (source == nullptr || !is_affine(affine) || is_affine(*source) ||
        source->activation != Activation::identity || !may_be_folded(source->w) ||
        (source->bias != none && !may_be_folded(source->bias)) || !may_be_folded(affine.w) ||
        !may_be_folded(affine.bias)) {
      return false;
    }
    tensor(source->w).start.factor = affine.w;
    if (source->bias == none) {
      source->bias = affine.bias;
    } else {
      tensor(source->bias).start.factor = affine.w;
      tensor(source->bias).start.offset = affine.bias;
    }
    source->y = affine.y;
    source->activation = affine.activation;
    return true;
  }

  bool join(const Activate& activate, std::size_t /*position*/) {
    const auto take_over = [&](auto* source) {
      if (source == nullptr || source->activation != Activation::identity) {
        return false;
      }
      source->y = activate.y;
      source->activation = activate.activation;
      return true;
    };
    return take_over(sole_source<Linear>(activate.x)) ||
           take_over(sole_source<Convolution>(activate.x)) ||
           (activate.activation == Activation::relu &&
            take_over(of_batch(sole_source<Norm>(activate.x))));
  }

  bool join(const Add& add, std::size_t position) {
    return becomes_addend(add, add.a, add.b) || becomes_addend(add, add.b, add.a) ||
           becomes_more_gradient(add, position);
  }

  /// normalized + addend, where a batch normalization makes `normalized` once the addend is there.
  bool becomes_addend(const Add& add, Id normalized, Id addend) {
    auto* norm = of_batch(sole_source<Norm>(normalized));
    if (norm == nullptr || norm->addend != none || norm->activation != Activation::identity ||
        uses_->writer(addend, 0) > uses_->writer(normalized, 0)) {
      return false;
    }
    norm->addend = addend;
    norm->y = add.y;
    return true;
  }

  bool becomes_more_gradient(const Add& add, std::size_t position) {
    const std::vector<std::size_t>& readers = uses_->readers(add.y);
    auto* grad =
        readers.size() == 1 && readers[0] > position ? of_batch(at<NormGrad>(readers[0])) : nullptr;
    if (grad == nullptr || grad->dy != add.y || grad->dy_more != none) {
      return false;
    }
    grad->dy = add.a;
    grad->dy_more = add.b;
    return true;
  }

  /// None has the input of an activation.
  bool join(const ActivateGrad& gradient, std::size_t position) {
    if (derivative_takes_input(gradient.activation)) {
      return false;
    }
    return joins_linear(gradient) || joins_pool(gradient) || joins_batch_norm(gradient, position);
  }

  bool joins_linear(const ActivateGrad& gradient) {
    auto* linear = sole_source<LinearGrad>(gradient.dy);
    // The factor is taken from the layer's input, so that input must be what the activation made.
    if (linear == nullptr || linear->dx != gradient.dy || linear->x != gradient.at ||
        linear->x_activation != Activation::identity) {
      return false;
    }
    linear->dx = gradient.dx;
    linear->x_activation = gradient.activation;
    return true;
  }

  bool joins_pool(const ActivateGrad& gradient) {
    auto* pool = sole_source<PoolGrad>(gradient.dy);
    if (pool == nullptr || pool->x_activation != Activation::identity ||
        pool->kind == PoolKind::global_average) {
      return false;
    }
    Id made = gradient.at;
    if (pool->kind == PoolKind::max) {  // whose factor is taken from the largest of these
      const auto* forward = at<Pool>(uses_->writer(pool->where, ops_.size()));
      if (forward == nullptr || forward->x != made) {
        return false;
      }
      made = forward->y;
    }
    pool->made = made;
    pool->dx = gradient.dx;
    pool->x_activation = gradient.activation;
    return true;
  }

  /// The first reader of what the gradient makes writes it, if there are more.
  bool joins_batch_norm(const ActivateGrad& gradient, std::size_t position) {
    const std::vector<std::size_t>& readers = uses_->readers(gradient.dx);
    auto* norm =
        !readers.empty() && readers[0] > position ? of_batch(at<NormGrad>(readers[0])) : nullptr;
    if (norm == nullptr || norm->dy != gradient.dx || norm->dy_more != none ||
        norm->activation != Activation::identity || gradient.activation != Activation::relu) {
      return false;
    }
    norm->y = gradient.at;
    norm->dy = gradient.dy;
    norm->activation = gradient.activation;
    norm->daddend = readers.size() > 1 ? gradient.dx : none;
    return true;
  }

  std::vector<Op>& ops_;
  std::vector<Tensor>& tensors_;
  std::optional<Uses> uses_;  ///< before the pass
};

}  // namespace

Workload fuse(Workload workload) {
  for (Step& step : workload.steps) {
    StepFuser(step, workload.tensors).run();
  }
  return workload;
}

// ---- Plain gradient descent needs no gradients of products in memory. Backpropagation is linear
// in the loss's gradient: scaled by minus the learning rate at its source, each product dyT x is
// the update itself, and is added to the weights where it is computed.

namespace {

/// Null where the operation is no loss.
double* loss_scale_of(Op& op) {
  return std::visit(
      [](auto& loss) -> double* {
        if constexpr (std::remove_cvref_t<decltype(loss)>::category == OpCategory::loss) {
          return &loss.scale;
        } else {
          return nullptr;
        }
      },
      op);
}

/// Applies to each LinearGrad that is the only one to write gradients which the step's one Update
/// by plain gradient descent reads, of at least so many weights, where none accumulates, all
/// gradients come from one loss, and none is scaled.
void fuse_update(Step& step, const std::vector<Tensor>& tensors, std::int64_t least_weights) {
  auto* update = step.ops.empty() ? nullptr : std::get_if<Update>(&step.ops.back());
  auto* sgd = update == nullptr ? nullptr : std::get_if<SgdOptions>(&update->rule);
  if (sgd == nullptr || update->gradient_factor != 1) {
    return;
  }
  std::map<Id, Id> parameter_of{{none, none}};
  for (std::size_t i = 0; i < update->gradients.size(); ++i) {
    parameter_of[update->gradients[i]] = update->parameters[i];
  }

  std::map<Id, int> writers;
  std::vector<LinearGrad*> products;
  std::vector<double*> loss_scales;
  for (Op& op : step.ops) {
    for (const Id id : operands(op).writes) {
      ++writers[id];
    }
    if (auto* product = std::get_if<LinearGrad>(&op)) {
      if (product->accumulate) {
        return;
      }
      products.push_back(product);
    } else if (double* scale = loss_scale_of(op)) {
      loss_scales.push_back(scale);
    }
  }
  std::erase_if(products, [&](const LinearGrad* product) {
    return product->dw == none ||
           elements(tensors[static_cast<std::size_t>(product->dw)].shape) < least_weights ||
           writers[product->dw] != 1 || writers[product->dbias] > 1 ||
           !parameter_of.contains(product->dw) || !parameter_of.contains(product->dbias);
  });
  if (products.empty() || loss_scales.size() != 1) {
    return;
  }

  *loss_scales[0] *= -sgd->learning_rate;
  sgd->learning_rate = -1;  // of what is left to it, the gradients are the updates
  std::set<Id> done;
  for (LinearGrad* product : products) {
    done.insert({product->dw, product->dbias});
    product->dw = parameter_of[product->dw];
    product->dbias = parameter_of[product->dbias];
    product->accumulate = true;
  }
  std::vector<Id> parameters;
  std::vector<Id> gradients;
  for (std::size_t i = 0; i < update->gradients.size(); ++i) {
    if (!done.contains(update->gradients[i])) {
      parameters.push_back(update->parameters[i]);
      gradients.push_back(update->gradients[i]);
    }
  }
  update->parameters = parameters;
  update->gradients = gradients;
  if (gradients.empty()) {
    step.ops.pop_back();
  }
}

}  // namespace

Workload fuse_update(Workload workload, std::int64_t least_weights) {
  for (Step& step : workload.steps) {
    fuse_update(step, workload.tensors, least_weights);
  }
  return workload;
}

}  // namespace crossover
