// SPDX-License-Identifier: Apache-2.0
#include "tensor_places.h"

#include <algorithm>
#include <numeric>

#include "../round_up.h"
#include "crossover/memory.h"

namespace crossover::cuda {
namespace {

constexpr std::int64_t block_alignment = 256;  ///< of what comes after the tensors

std::int64_t row_bytes(const Tensor& view) { return bytes(view) / view.shape[0]; }

}  // namespace

TensorPlaces::TensorPlaces(const Workload& workload, LaunchPlan& plan)
    : workload_(workload),
      plan_(plan),
      staged_(workload.tensors.size(), -1),
      row_gcd_(workload.steps.size(), 0) {
  const bool resident = plan.mode.is_resident();
  const StreamedMemoryPlan streamed =
      plan_streamed_memory(workload, plan.mode.buffers, plan.mode.activations);
  const MemoryPlan memory =
      resident ? plan_memory(workload, {}, plan.mode.activations) : streamed.plan;
  plan.bytes = memory.bytes;
  plan.buffer_bytes = streamed.input_bytes;
  // A streamed data set's plan has the staging buffers among the tensors.
  const std::int64_t inputs = resident ? reserve(plan.mode.buffers * streamed.input_bytes) : 0;
  plan.tensors.resize(workload.tensors.size());
  const std::vector<Layout> layouts = choose_layouts(workload);
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const Tensor& tensor = workload.tensors[i];
    TensorPlace& place = plan.tensors[i];
    place.layout = layouts[i];
    if (tensor.role == Role::input) {
      if (plan.mode.buffers > 0) {
        staged_[i] = inputs + streamed.plan.offset[i];
      }
      continue;
    }
    place.offset = memory.offset[i];
    if (tensor.role == Role::data && !resident) {
      place.host_offset = plan.host_bytes;
      plan.host_bytes += round_up(bytes(tensor), MemoryPlan::alignment);
    } else if (tensor.role == Role::loss && plan.loss == none) {
      plan.loss = static_cast<Id>(i);
    }
  }
  for (const Run& run : workload.order) {
    std::int64_t& gcd = row_gcd_[static_cast<std::size_t>(run.step)];
    gcd = std::gcd(gcd, run.first_row);
  }
}

std::int64_t TensorPlaces::end() const { return round_up(plan_.bytes, block_alignment); }

void TensorPlaces::extend(std::int64_t end) { plan_.bytes = std::max(plan_.bytes, end); }

std::int64_t TensorPlaces::reserve(std::int64_t bytes) {
  const std::int64_t at = end();
  plan_.bytes = at + bytes;
  return at;
}

Operand TensorPlaces::operand(Id id) const {
  if (id == none) {
    return {};
  }
  const Tensor& tensor = workload_[id];
  if (tensor.role != Role::input) {
    return {.offset = plan_[id].offset, .type = tensor.type};
  }
  Operand view{.staged = staged_[static_cast<std::size_t>(id)],
               .buffer_bytes = plan_.buffer_bytes,
               .type = tensor.type};
  if (plan_.mode.is_resident()) {
    view.offset = plan_[tensor.source].offset;
    view.row_bytes = row_bytes(tensor);
  }
  return view;
}

std::int64_t TensorPlaces::alignment(const Operand& operand, int step) const {
  std::int64_t divided = MemoryPlan::alignment;
  if (operand.staged >= 0) {
    divided |= operand.staged | operand.buffer_bytes;
  }
  if (!operand.is_view()) {
    divided |= operand.offset;
  } else if (plan_.mode.in_place) {
    divided |= operand.offset | (operand.row_bytes * row_gcd_[static_cast<std::size_t>(step)]);
  }
  return divided & -divided;
}

StagedInput TensorPlaces::staged_input(Id view, int step) const {
  const Tensor& tensor = workload_[view];
  StagedInput input{.source = tensor.source,
                    .row_bytes = row_bytes(tensor),
                    .bytes = bytes(tensor),
                    .staged = staged_[static_cast<std::size_t>(view)]};
  if (gathers()) {
    constexpr std::int64_t largest = 16;
    const std::int64_t divided = largest | plan_[tensor.source].offset | input.staged |
                                 input.bytes |
                                 (input.row_bytes * row_gcd_[static_cast<std::size_t>(step)]);
    input.unit = divided & -divided;
  }
  return input;
}

}  // namespace crossover::cuda
