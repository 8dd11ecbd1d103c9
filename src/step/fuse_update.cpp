// SPDX-License-Identifier: Apache-2.0
// Plain gradient descent needs no gradients of products in memory. Backpropagation is linear in the
// loss's gradient: scaled by minus the learning rate at its source, each product dyT x is the
// update itself, and is added to the weights where it is computed.
#include <map>
#include <set>
#include <type_traits>
#include <vector>

#include "crossover/training.h"

namespace crossover {
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

/// Applies to each LinearGrad that is the only one to write gradients which the step's one Sgd
/// reads, of at least so many weights, where none accumulates, all gradients come from one loss,
/// and none is scaled.
void fuse_update(Step& step, const std::vector<Tensor>& tensors, std::int64_t least_weights) {
  auto* sgd = step.ops.empty() ? nullptr : std::get_if<Sgd>(&step.ops.back());
  if (sgd == nullptr || sgd->gradient_factor != 1) {
    return;
  }
  std::map<Id, Id> parameter_of{{none, none}};
  for (std::size_t i = 0; i < sgd->gradients.size(); ++i) {
    parameter_of[sgd->gradients[i]] = sgd->parameters[i];
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
    return elements(tensors[static_cast<std::size_t>(product->dw)].shape) < least_weights ||
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
  for (std::size_t i = 0; i < sgd->gradients.size(); ++i) {
    if (!done.contains(sgd->gradients[i])) {
      parameters.push_back(sgd->parameters[i]);
      gradients.push_back(sgd->gradients[i]);
    }
  }
  sgd->parameters = parameters;
  sgd->gradients = gradients;
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
