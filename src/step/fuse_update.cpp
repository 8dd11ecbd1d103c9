// SPDX-License-Identifier: Apache-2.0
// Plain gradient descent needs no gradients in memory. Backpropagation is linear in the loss's
// gradient: scaled by minus the learning rate at its source, each product dyT x is the update
// itself, and is added to the weights where it is computed.
#include <algorithm>
#include <map>

#include "crossover/training.h"

namespace crossover {
namespace {

/// Applies where every gradient that the step's one Sgd reads is written by exactly one LinearGrad,
/// which does not accumulate, all gradients come from one loss, and none is scaled.
void fuse_update(Step& step) {
  const auto* sgd = step.ops.empty() ? nullptr : std::get_if<Sgd>(&step.ops.back());
  if (sgd == nullptr || sgd->gradient_factor != 1) {
    return;
  }
  std::map<Id, Id> parameter_of;
  for (std::size_t i = 0; i < sgd->gradients.size(); ++i) {
    parameter_of[sgd->gradients[i]] = sgd->parameters[i];
  }

  std::map<Id, int> writers;
  std::vector<LinearGrad*> products;
  std::vector<SoftmaxCrossEntropy*> losses;
  for (Op& op : step.ops) {
    if (auto* product = std::get_if<LinearGrad>(&op)) {
      if (product->accumulate) {
        return;
      }
      products.push_back(product);
      ++writers[product->dw];
      ++writers[product->dbias];
    } else if (auto* loss = std::get_if<SoftmaxCrossEntropy>(&op)) {
      losses.push_back(loss);
    }
  }
  writers.erase(none);
  const bool all_from_products = writers.size() == parameter_of.size() &&
                                 std::all_of(writers.begin(), writers.end(), [&](auto& entry) {
                                   return entry.second == 1 && parameter_of.contains(entry.first);
                                 });
  if (!all_from_products || losses.size() != 1) {
    return;
  }

  losses[0]->scale *= -sgd->learning_rate;
  for (LinearGrad* product : products) {
    product->dw = parameter_of.at(product->dw);
    product->dbias = product->dbias == none ? none : parameter_of.at(product->dbias);
    product->accumulate = true;
  }
  step.ops.pop_back();
}

}  // namespace

Workload fuse_update(Workload workload) {
  for (Step& step : workload.steps) {
    fuse_update(step);
  }
  return workload;
}

}  // namespace crossover
