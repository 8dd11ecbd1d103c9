// SPDX-License-Identifier: Apache-2.0
#include "lowering.h"

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "crossover/machine.h"
#include "crossover/memory.h"
#include "crossover/training.h"
#include "primitives.h"

namespace crossover::cpu {

bool trains(const Workload& workload) { return !tensors_of(workload, Role::loss).empty(); }

bool is_used(const Workload& workload) {
  return !trains(workload) && !tensors_of(workload, Role::input).empty();
}

namespace {

/// Without its operands.
PlannedKernel reorder(const Reorder& of, int threads) {
  const auto describe = [of](const dnnl::engine& engine) {
    return dnnl::reorder::primitive_desc(engine, of.from, engine, of.to, attributes());
  };
  return {.category = OpCategory::reorder,
          .threads = threads,
          .operands = {},
          .work = Primitive{.describe = describe, .arguments = {DNNL_ARG_FROM, DNNL_ARG_TO}},
          .moved_bytes = static_cast<std::int64_t>(of.from.get_size() + of.to.get_size())};
}

}  // namespace

bool is_constant(const Lowering& to, Id id) {
  return is_used(to.workload()) && to[id].role == Role::parameter;
}

Lowering::Lowering(const Workload& workload, int threads, dnnl::engine engine,
                   const std::map<Id, Layout>& settled, Execution execution, Ranks* ranks)
    : workload_(workload),
      threads_(threads),
      engine_(std::move(engine)),
      execution_(execution),
      ranks_(ranks),
      is_settled_(workload.tensors.size(), false) {
  lowered_.layouts.resize(workload.tensors.size());
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    // A batch is a view of rows, which a layout must not mix.
    const Role role = workload.tensors[i].role;
    is_settled_[i] = role == Role::data || role == Role::input;
  }
  for (const auto& [id, layout] : settled) {
    if (settle(id, layout) != layout) {
      throw std::invalid_argument("tensor '" + workload[id].name +
                                  "' must be plain: a batch is a " + "view of its rows");
    }
  }
}

const Layout& Lowering::settle(Id id, const Layout& wanted) {
  if (!is_settled_[index(id)]) {
    lowered_.layouts[index(id)] = wanted;
    is_settled_[index(id)] = true;
  }
  return layout(id);
}

Argument Lowering::reserve(std::int64_t bytes) {
  Argument part{
      .read = true, .written = true, .offset = reserved_bytes_, .memory = Memory::workspace};
  reserved_bytes_ += MemoryPlan::aligned(bytes);
  lowered_.workspace_bytes = std::max(lowered_.workspace_bytes, reserved_bytes_);
  return part;
}

Argument Lowering::keep(std::int64_t bytes) {
  const std::int64_t offset = lowered_.kept_bytes;
  lowered_.kept_bytes += MemoryPlan::aligned(bytes);
  return {.read = true, .written = true, .offset = offset, .memory = Memory::kept};
}

void Lowering::add(OpCategory category, int threads, const std::vector<Argument>& arguments,
                   Work work) {
  add_to(lowered_.steps.back(), category, threads, arguments, std::move(work));
}

void Lowering::add_once(OpCategory category, int threads, const std::vector<Argument>& arguments,
                        Work work) {
  add_to(lowered_.once, category, threads, arguments, std::move(work));
}

void Lowering::add_to(std::vector<PlannedKernel>& step, OpCategory category, int threads,
                      const std::vector<Argument>& arguments, Work work) {
  PlannedKernel kernel{
      .category = category, .threads = threads, .operands = {}, .work = std::move(work)};
  std::vector<PlannedKernel> before;
  std::vector<PlannedKernel> after;
  std::map<Id, std::int64_t> copies;
  std::int64_t copies_bytes = 0;
  for (const Argument& argument : arguments) {
    if (argument.memory != Memory::tensor) {
      kernel.operands.push_back({.memory = argument.memory, .offset = argument.offset});
      continue;
    }
    if (argument.id == none) {
      kernel.operands.emplace_back();
      continue;
    }
    const Id id = argument.id;
    const Layout& lies = settle(id, argument.layout);
    if (lies == argument.layout) {
      kernel.operands.push_back({.memory = Memory::tensor, .id = id, .offset = argument.offset});
      continue;
    }
    const auto [at, is_new] = copies.try_emplace(id, copies_bytes);
    if (is_new) {
      copies_bytes += MemoryPlan::aligned(argument.layout.bytes(workload_[id]));
    }
    const Place tensor{.memory = Memory::tensor, .id = id};
    const Place copied{.memory = Memory::copies, .offset = at->second};
    kernel.operands.push_back(copied);
    kernel.operands.back().offset += argument.offset;
    if (argument.read) {
      before.push_back(copy(id, lies, argument.layout));
      before.back().operands = {tensor, copied};
    }
    if (argument.written) {
      after.push_back(copy(id, argument.layout, lies));
      after.back().operands = {copied, tensor};
    }
  }
  lowered_.copies_bytes = std::max(lowered_.copies_bytes, copies_bytes);
  step.insert(step.end(), before.begin(), before.end());
  step.push_back(std::move(kernel));
  step.insert(step.end(), after.begin(), after.end());
}

PlannedKernel Lowering::copy(Id id, const Layout& from, const Layout& to) const {
  return reorder(Reorder(workload_[id], from, to), threads_for(id));
}

void Lowering::add_reorder(OpCategory category, Id from, Id to) {
  PlannedKernel kernel =
      reorder(Reorder(workload_[from], layout(from), workload_[to], layout(to)), threads_for(from));
  kernel.category = category;
  kernel.operands = {{.memory = Memory::tensor, .id = from}, {.memory = Memory::tensor, .id = to}};
  lowered_.steps.back().push_back(std::move(kernel));
}

Layout Lowering::elementwise_layout(std::initializer_list<Id> ids) const {
  for (const Id id : ids) {
    if (is_settled_[index(id)] && layout(id).bytes(workload_[id]) == bytes(workload_[id])) {
      return layout(id);
    }
  }
  return {};
}

int Lowering::threads_for_flops(double flops) const {
  return flops >= flops_worth_threads ? threads_ : 1;
}

int Lowering::threads_for_bytes(double bytes) const {
  return bytes >= bytes_worth_threads ? threads_ : 1;
}

int Lowering::threads_for(Id id) const {
  return threads_for_bytes(static_cast<double>(bytes(workload_[id])));
}

}  // namespace crossover::cpu
