// SPDX-License-Identifier: Apache-2.0
#include "crossover/step.h"

#include <algorithm>

#include "overload.h"

namespace crossover {
namespace {

void append(std::vector<Id>& to, const std::vector<Id>& ids) {
  to.insert(to.end(), ids.begin(), ids.end());
}

}  // namespace

Operands operands(const Op& op) {
  Operands used = std::visit(Overload{
                                 [](const Linear& o) {
                                   return Operands{{o.x, o.w, o.bias}, {o.y}};
                                 },
                                 [](const LinearGrad& o) {
                                   Operands u{{o.x, o.w, o.dy}, {o.dx, o.dw, o.dbias}};
                                   if (o.accumulate) {
                                     append(u.reads, {o.dw, o.dbias});
                                   }
                                   return u;
                                 },
                                 [](const Cast& o) {
                                   return Operands{{o.x}, {o.y}};
                                 },
                                 [](const Activate& o) {
                                   return Operands{{o.x}, {o.y}};
                                 },
                                 [](const ActivateGrad& o) {
                                   return Operands{{o.y, o.dy}, {o.dx}};
                                 },
                                 [](const Add& o) {
                                   return Operands{{o.a, o.b}, {o.y}};
                                 },
                                 [](const SoftmaxCrossEntropy& o) {
                                   return Operands{{o.logits, o.labels}, {o.loss, o.dlogits}};
                                 },
                                 [](const Sgd& o) {
                                   Operands u{o.parameters, o.parameters};
                                   append(u.reads, o.gradients);
                                   return u;
                                 },
                                 [](const AdamW& o) {
                                   Operands u;
                                   for (const auto* updated : {&o.parameters, &o.m, &o.v}) {
                                     append(u.reads, *updated);
                                     append(u.writes, *updated);
                                   }
                                   append(u.reads, o.gradients);
                                   append(u.reads, {o.step});
                                   append(u.writes, {o.step});
                                   return u;
                                 },
                                 [](const Gemm& o) {
                                   return Operands{{o.a, o.b}, {o.c}};
                                 },
                             },
                             op);
  std::erase(used.reads, none);
  std::erase(used.writes, none);
  return used;
}

const char* name(const Op& op) {
  return std::visit(Overload{
                        [](const Linear&) { return "Linear"; },
                        [](const LinearGrad&) { return "LinearGrad"; },
                        [](const Cast&) { return "Cast"; },
                        [](const Activate&) { return "Activate"; },
                        [](const ActivateGrad&) { return "ActivateGrad"; },
                        [](const Add&) { return "Add"; },
                        [](const SoftmaxCrossEntropy&) { return "SoftmaxCrossEntropy"; },
                        [](const Sgd&) { return "Sgd"; },
                        [](const AdamW&) { return "AdamW"; },
                        [](const Gemm&) { return "Gemm"; },
                    },
                    op);
}

}  // namespace crossover
