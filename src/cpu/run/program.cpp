// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "../base/threads.h"
#include "crossover/alive.h"
#include "crossover/backend.h"
#include "crossover/memory.h"

namespace crossover::cpu {

// ---- Block

Block allocate(std::int64_t bytes, int threads) {
  const std::int64_t rounded = (bytes / MemoryPlan::alignment + 1) * MemoryPlan::alignment;
  Block block(static_cast<std::byte*>(std::aligned_alloc(
      static_cast<std::size_t>(MemoryPlan::alignment), static_cast<std::size_t>(rounded))));
  if (!block) {
    throw OutOfMemory("the CPU's memory does not hold " + std::to_string(bytes) + " bytes");
  }
  clear(threads, block.get(), rounded);
  return block;
}

void clear(int threads, void* memory, std::int64_t bytes) {
  auto* at = static_cast<char*>(memory);
  split(threads, bytes, [=](std::int64_t begin, std::int64_t end) {
    std::memset(at + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

// ---- Tensors

namespace {

void convert(const Reorder& reorder, const std::byte* from, std::byte* to) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  // oneDNN does not write through its inputs.
  dnnl::memory before(reorder.from, engine, const_cast<std::byte*>(from));
  dnnl::memory after(reorder.to, engine, to);
  dnnl::reorder(before, after).execute(stream, before, after);
  stream.wait();
}

}  // namespace

std::vector<std::int64_t> physical_bytes(const std::vector<Tensor>& tensors,
                                         const std::vector<Layout>& layouts) {
  std::vector<std::int64_t> bytes;
  bytes.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    bytes.push_back(layouts[i].bytes(tensors[i]));
  }
  return bytes;
}

Tensors::Tensors(std::vector<Tensor> tensors, std::vector<Layout> layouts, MemoryPlan plan,
                 int threads)
    : tensors_(std::move(tensors)),
      layouts_(std::move(layouts)),
      plan_(std::move(plan)),
      memory_(allocate(plan_.bytes, threads)) {}

void Tensors::upload(Id id, std::span<const std::byte> from) {
  std::byte* to = place(id, from.size());
  if (layout(id).is_plain()) {
    std::memcpy(to, from.data(), from.size());
  } else {
    convert(Reorder(tensor(id), {}, layout(id)), from.data(), to);
  }
}

void Tensors::download(Id id, std::span<std::byte> to) const {
  const std::byte* from = place(id, to.size());
  if (layout(id).is_plain()) {
    std::memcpy(to.data(), from, to.size());
  } else {
    convert(Reorder(tensor(id), layout(id), {}), from, to.data());
  }
}

std::byte* Tensors::place(Id id, std::size_t size) const {
  const std::int64_t offset = plan_.offset.at(static_cast<std::size_t>(id));
  if (offset < 0 || static_cast<std::int64_t>(size) != bytes(tensor(id))) {
    throw std::invalid_argument("tensor '" + tensor(id).name + "' can't be copied in " +
                                std::to_string(size) + " bytes");
  }
  return memory_.get() + offset;
}

/// Data lies as it is.
void Tensors::upload_row(Id id, std::int64_t row, std::span<const std::byte> from) {
  std::byte* all = memory_.get() + plan_.offset[static_cast<std::size_t>(id)];
  std::memcpy(all + row * std::ssize(from), from.data(), from.size());
}

Operand Tensors::operand(Id id) const {
  if (id == none) {
    return {};
  }
  const Tensor& of = tensor(id);
  const bool view = of.role == Role::input;
  const std::int64_t offset = plan_.offset[static_cast<std::size_t>(view ? of.source : id)];
  return Operand(memory_.get() + offset, view ? bytes(of) / of.shape[0] : 0);
}

// ---- Bound steps

BoundSteps::BoundSteps(const LoweredWorkload& lowered, const Tensors& tensors,
                       const Scratch& scratch, const dnnl::engine& engine, int threads)
    : engine_(engine),
      stream_(engine),
      primitive_scratch_(allocate(scratch.primitive_bytes, threads)),
      copies_(allocate(scratch.copies_bytes, threads)),
      workspace_(allocate(scratch.workspace_bytes, threads)),
      kept_(allocate(scratch.kept_bytes, threads)),
      once_(bind(lowered.once, tensors)) {
  for (const std::vector<PlannedKernel>& step : lowered.steps) {
    steps_.push_back(bind(step, tensors));
  }
}

std::vector<Kernel> BoundSteps::bind(const std::vector<PlannedKernel>& kernels,
                                     const Tensors& tensors) {
  std::vector<Kernel> bound;
  for (const PlannedKernel& kernel : kernels) {
    bound.push_back(bind(kernel, tensors));
    alive();  // code for a primitive may have been made
  }
  return bound;
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
    case Memory::kept:
      return Operand(kept_.get() + place.offset);
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

// ---- Eager

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Pieces of a tiny network last little longer than the clock takes to read: the least of some
/// means, as another process may take the core meanwhile.
Seconds seconds_of_a_clock_reading() {
  constexpr int means = 20;
  constexpr int readings = 50;
  Seconds least = Seconds::max();
  for (int mean = 0; mean < means; ++mean) {
    const auto start = Clock::now();
    for (int i = 1; i < readings; ++i) {
      [[maybe_unused]] const volatile auto now = Clock::now().time_since_epoch().count();
    }
    least = std::min<Seconds>(least, (Clock::now() - start) / readings);
  }
  return least;
}

}  // namespace

EagerExecution::EagerExecution(const BoundSteps& steps, std::vector<Run> order, int threads)
    : steps_(steps), order_(std::move(order)), threads_(threads) {}

template <class Visit>
void EagerExecution::for_each_kernel(std::int64_t first, std::int64_t count,
                                     const Visit& visit) const {
  Threads threads(threads_);
  for (std::int64_t run = first; run < first + count; ++run) {
    const Run& what = order_[static_cast<std::size_t>(run)];
    const Position position{what.first_row, run};
    for (const Kernel& kernel : steps_[what.step]) {
      threads.use(kernel.threads);
      visit(kernel, position);
    }
  }
}

void EagerExecution::run_once() const {
  Threads threads(threads_);
  for (const Kernel& kernel : steps_.once()) {
    threads.use(kernel.threads);
    kernel.call({});
  }
}

void EagerExecution::run(std::int64_t first, std::int64_t count) const {
  for_each_kernel(first, count,
                  [](const Kernel& kernel, const Position& position) { kernel.call(position); });
}

Profile EagerExecution::profile() const {
  const Seconds of_clock = seconds_of_a_clock_reading();
  Profile profile;
  for_each_kernel(0, std::ssize(order_), [&](const Kernel& kernel, const Position& position) {
    const auto start = Clock::now();
    kernel.call(position);
    const Seconds spent = Clock::now() - start - of_clock;
    profile[kernel.category] += std::max(0.0, spent.count());
  });
  return profile;
}

}  // namespace crossover::cpu
