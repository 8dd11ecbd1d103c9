// SPDX-License-Identifier: Apache-2.0
#include "bound_steps.h"

#include <utility>

#include "crossover/alive.h"
#include "threads.h"

namespace crossover::cpu {

BoundSteps::BoundSteps(const std::vector<std::vector<PlannedKernel>>& steps, const Tensors& tensors,
                       const Scratch& scratch, const dnnl::engine& engine, int threads)
    : engine_(engine),
      stream_(engine),
      primitive_scratch_(allocate(scratch.primitive_bytes, threads)),
      copies_(allocate(scratch.copies_bytes, threads)),
      workspace_(allocate(scratch.workspace_bytes, threads)) {
  for (const std::vector<PlannedKernel>& step : steps) {
    std::vector<Kernel>& bound = steps_.emplace_back();
    for (const PlannedKernel& kernel : step) {
      bound.push_back(bind(kernel, tensors));
      alive();  // code for a primitive may have been made
    }
  }
}

Operand BoundSteps::operand(const Place& place, const Tensors& tensors) const {
  switch (place.memory) {
    case Memory::nowhere:
      break;
    case Memory::tensor:
      return tensors.operand(place.id).from(place.offset);
    case Memory::copies:
      return Operand(copies_.get() + place.offset);
    case Memory::workspace:
      return Operand(workspace_.get() + place.offset);
  }
  return {};
}

Kernel BoundSteps::bind(const PlannedKernel& kernel, const Tensors& tensors) {
  std::vector<Operand> operands;
  operands.reserve(kernel.operands.size());
  for (const Place& place : kernel.operands) {
    operands.push_back(operand(place, tensors));
  }
  if (const Loop* loop = std::get_if<Loop>(&kernel.work)) {
    return {kernel.category, kernel.threads, *loop, std::move(operands)};
  }
  const auto& primitive = std::get<Primitive>(kernel.work);
  const Threads made_for(kernel.threads);
  primitives_.push_back(std::make_unique<BoundPrimitive>(primitive.description, engine_, stream_,
                                                         primitive.arguments, operands,
                                                         primitive_scratch_.get()));
  return {kernel.category,
          kernel.threads,
          [bound = primitives_.back().get()](const Invocation& call) { bound->execute(call.now); },
          {}};
}

}  // namespace crossover::cpu
