// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "kernels/loss.cuh"

namespace crossover::cuda {

HostData::HostData(std::int64_t bytes, Placement placement) {
  if (bytes == 0) {
    return;
  }
  if (placement == Placement::pageable) {
    ordinary_.resize(static_cast<std::size_t>(bytes));
    data_ = ordinary_.data();
  } else {
    pinned_ = allocate_pinned(bytes);
    data_ = static_cast<std::byte*>(pinned_.get());
    std::memset(data_, 0, static_cast<std::size_t>(bytes));
  }
}

CudaProgram::CudaProgram(Workload workload, const CompileOptions& options,
                         std::shared_ptr<Products> products)
    : workload_(std::move(workload)),
      options_(options),
      products_(std::move(products)),
      plan_(make_plan(workload_, options_,
                      [this](const ProductForm& form) { return products_->supports(form); })),
      memory_(allocate_device(std::max<std::int64_t>(plan_.bytes, 1))),
      host_(plan_.host_bytes, options.placement),
      host_loss_(options.loss_every_step ? allocate_pinned(sizeof(float)) : PinnedMemory()),
      compute_(make_stream()),
      copies_(make_stream()) {
  for (int buffer = 0; buffer < plan_.buffers; ++buffer) {
    buffers_.push_back({make_event(), make_event()});
  }
  clear();
  choose_products();
  arithmetic_ = measured_arithmetic();
  clear();
  for (const StepPlan& step : plan_.steps) {
    steps_.emplace_back();
    for (const Launch& launch : step.launches) {
      steps_.back().calls.push_back(
          {category_of(launch),
           std::visit([this](const auto& what) { return bind(what); }, launch)});
    }
  }
  if (options_.execution != Execution::eager) {
    capture_graphs();
  }
  finish();
}

std::unique_ptr<Program> make_program(const Workload& workload, const CompileOptions& options,
                                      std::unique_ptr<ProductLibrary> library) {
  const auto products = std::make_shared<Products>(std::move(library));
  for (;;) {
    try {
      return std::make_unique<CudaProgram>(workload, options, products);
    } catch (const NoneRuns&) {
      // The next plan does without that form; where it can't, it throws Unsupported.
    }
  }
}

void CudaProgram::upload(Id id, std::span<const std::byte> from) {
  require_copyable(id, from.size());
  finish();  // what runs may still read the old values
  const auto at = static_cast<std::size_t>(id);
  if (plan_.host_offset[at] >= 0) {
    std::memcpy(host_.at(plan_.host_offset[at]), from.data(), from.size());
    return;
  }
  copy(address(plan_.offset[at]), from.data(), from.size(), cudaMemcpyHostToDevice);
  finish();  // `from` is the caller's again
}

void CudaProgram::download(Id id, std::span<std::byte> to) {
  require_copyable(id, to.size());
  finish();
  const auto at = static_cast<std::size_t>(id);
  if (plan_.host_offset[at] >= 0) {
    std::memcpy(to.data(), host_.at(plan_.host_offset[at]), to.size());
    return;
  }
  copy(to.data(), address(plan_.offset[at]), to.size(), cudaMemcpyDeviceToHost);
  finish();
}

void CudaProgram::enqueue(std::int64_t first, std::int64_t count) {
  if (count <= 0) {
    return;
  }
  if (epoch_ && first == 0 && count == runs()) {
    CROSSOVER_CUDA_CHECK(cudaGraphLaunch(epoch_.get(), compute_.get()));
    return;
  }
  set_run(compute_.get(), run_counter(), first);
  if (options_.placement == Placement::pinned_async) {
    enqueue_overlapped(first, first + count);
    return;
  }
  for (std::int64_t run = first; run < first + count; ++run) {
    if (plan_.buffers > 0 && !runs_in_place()) {
      stage(run, 0, compute_.get());
    }
    run_step(run, runs_in_place() ? Position::in_place : 0);
    read_loss(run);
  }
}

std::int64_t CudaProgram::launches() const {
  std::int64_t all = 0;
  for (const Run& run : workload_.order) {
    const auto step = static_cast<std::size_t>(run.step);
    all += std::ssize(steps_[step].calls);
    if (plan_.buffers > 0 && !runs_in_place() && !epoch_) {
      all += std::ssize(plan_.steps[step].inputs);
    }
    all += options_.loss_every_step ? 1 : 0;
  }
  return all;
}

// ---- running
// -----------------------------------------------------------------------------------------

void CudaProgram::enqueue_overlapped(std::int64_t first, std::int64_t end) {
  fill(first);
  for (std::int64_t run = first; run < end; ++run) {
    const int index = next_read_;
    Buffer& buffer = buffers_[static_cast<std::size_t>(index)];
    CROSSOVER_CUDA_CHECK(cudaStreamWaitEvent(compute_.get(), buffer.full.get(), 0));
    run_step(run, index);
    CROSSOVER_CUDA_CHECK(cudaEventRecord(buffer.read.get(), compute_.get()));
    next_read_ = (index + 1) % plan_.buffers;
    if (run + 1 < end) {
      fill(run + 1);
    }
    read_loss(run);
  }
}

void CudaProgram::fill(std::int64_t run) {
  Buffer& buffer = buffers_[static_cast<std::size_t>(next_filled_)];
  CROSSOVER_CUDA_CHECK(cudaStreamWaitEvent(copies_.get(), buffer.read.get(), 0));
  stage(run, next_filled_, copies_.get());
  CROSSOVER_CUDA_CHECK(cudaEventRecord(buffer.full.get(), copies_.get()));
  next_filled_ = (next_filled_ + 1) % plan_.buffers;
}

void CudaProgram::stage(std::int64_t run, int buffer, cudaStream_t stream) const {
  const Run& of = what(run);
  for (const StagedInput& input : plan_.steps[static_cast<std::size_t>(of.step)].inputs) {
    const auto source = static_cast<std::size_t>(input.source);
    const std::int64_t rows = of.first_row * input.row_bytes;
    void* to = address(input.staged + buffer * plan_.buffer_bytes);
    const bool on_host = plan_.host_offset[source] >= 0;
    const void* from = on_host
                           ? static_cast<const void*>(host_.at(plan_.host_offset[source] + rows))
                           : address(plan_.offset[source] + rows);
    CROSSOVER_CUDA_CHECK(
        cudaMemcpyAsync(to, from, static_cast<std::size_t>(input.bytes),
                        on_host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice, stream));
  }
}

void CudaProgram::run_step(std::int64_t run, int buffer) const {
  const BoundStep& step = steps_[static_cast<std::size_t>(what(run).step)];
  if (buffer >= 0 && !step.graphs.empty()) {
    CROSSOVER_CUDA_CHECK(
        cudaGraphLaunch(step.graphs[static_cast<std::size_t>(buffer)].get(), compute_.get()));
    return;
  }
  issue(step, {.first_row = what(run).first_row, .buffer = buffer});
}

void CudaProgram::issue(const BoundStep& step, const Position& position) {
  for (const BoundCall& bound : step.calls) {
    bound.call(position);
  }
}

void CudaProgram::read_loss(std::int64_t run) const {
  if (!options_.loss_every_step) {
    return;
  }
  copy_loss(run);
  finish();
}

void CudaProgram::copy_loss(std::int64_t run) const {
  if (plan_.loss != none) {
    const std::int64_t at = plan_.offset[static_cast<std::size_t>(plan_.loss)] +
                            run * static_cast<std::int64_t>(sizeof(float));
    copy(host_loss_.get(), address(at), sizeof(float), cudaMemcpyDeviceToHost);
  }
}

// ---- graphs
// ------------------------------------------------------------------------------------------

void CudaProgram::capture_graphs() {
  // Code is loaded at its first call, which a capture does not allow everywhere: so each step
  // runs once before, on zeros, and leaves zeros behind.
  for (const BoundStep& step : steps_) {
    issue(step, {.buffer = 0});
    finish();
    clear();
  }
  for (BoundStep& step : steps_) {
    for (int buffer = 0; buffer < plan_.buffers; ++buffer) {
      step.graphs.push_back(capture(compute_.get(), [&] { issue(step, {.buffer = buffer}); }));
    }
  }
  if (options_.execution == Execution::graph_epoch && options_.placement == Placement::resident &&
      !options_.loss_every_step) {
    capture_epoch();
  }
}

void CudaProgram::capture_epoch() {
  constexpr std::size_t most_nodes = 500'000;  // about a gigabyte, and minutes to instantiate
  std::size_t nodes = 1;
  for (const Run& run : workload_.order) {
    nodes += steps_[static_cast<std::size_t>(run.step)].calls.size();
  }
  if (nodes > most_nodes) {
    throw Unsupported("the whole order as one graph would have " + std::to_string(nodes) +
                      " nodes, more than " + std::to_string(most_nodes));
  }
  epoch_ = capture(compute_.get(), [&] {
    set_run(compute_.get(), run_counter(), 0);
    for (const Run& run : workload_.order) {
      issue(steps_[static_cast<std::size_t>(run.step)], {.first_row = run.first_row});
    }
  });
}

// ---- memory
// ------------------------------------------------------------------------------------------

void CudaProgram::clear() const {
  CROSSOVER_CUDA_CHECK(
      cudaMemsetAsync(memory_.get(), 0, static_cast<std::size_t>(plan_.bytes), compute_.get()));
}

void CudaProgram::copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const {
  CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, compute_.get()));
}

void CudaProgram::require_copyable(Id id, std::size_t size) const {
  const auto at = static_cast<std::size_t>(id);
  const bool placed = plan_.offset.at(at) >= 0 || plan_.host_offset.at(at) >= 0;
  if (!placed || static_cast<std::int64_t>(size) != bytes(workload_[id])) {
    throw std::invalid_argument("tensor '" + workload_[id].name + "' can't be copied in " +
                                std::to_string(size) + " bytes");
  }
}

}  // namespace crossover::cuda
