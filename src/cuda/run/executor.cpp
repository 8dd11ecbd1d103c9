// SPDX-License-Identifier: Apache-2.0
#include "executor.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../plan/launches/loss.h"

namespace crossover::cuda {

// ---- Running

void LossReader::copy(const Binding& binding, std::int64_t run) const {
  const Id loss = binding.plan->loss;
  if (loss == none) {
    return;
  }
  const std::int64_t offset =
      (*binding.plan)[loss].offset + run * static_cast<std::int64_t>(sizeof(float));
  CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(host_.get(), binding.address(offset), sizeof(float),
                                       cudaMemcpyDeviceToHost, binding.stream));
}

void Running::set_run(std::int64_t index) const {
  cuda::set_run(index, binding.site());
  next_run = index;
}

void Running::start_at(std::int64_t index) const {
  if (next_run != index) {
    set_run(index);
  }
}

void Running::upload_order() const {
  std::vector<OrderedRun> order;
  order.reserve(workload.order.size());
  for (const Run& run : workload.order) {
    order.push_back({.first_row = run.first_row, .step = run.step});
  }
  for (std::int64_t network = 0; network < plan.networks.count; ++network) {
    CROSSOVER_CUDA_CHECK(
        cudaMemcpyAsync(binding.address(plan.order + network * plan.networks.stride), order.data(),
                        order.size() * sizeof(OrderedRun), cudaMemcpyHostToDevice, stream()));
  }
  wait();  // `order` ends here
}

void Running::issue(int step, const Position& position) const {
  const BoundStep& launches = steps[static_cast<std::size_t>(step)];
  const auto call = [&](std::size_t first, std::size_t end, Call BoundLaunch::*where) {
    for (std::size_t i = first; i < end; ++i) {
      (launches[i].*where)(position);
    }
  };
  std::size_t at = 0;
  for (const SideBySide& parts : step_plan(step).side_by_side) {
    call(at, parts.first, &BoundLaunch::call);
    second.fork_from(stream());
    call(parts.first, parts.second, &BoundLaunch::call);
    call(parts.second, parts.end, &BoundLaunch::in_second_stream);
    second.join(stream());
    at = parts.end;
  }
  call(at, launches.size(), &BoundLaunch::call);
}

void Running::issue_alone(int step, const Position& position) const {
  for (const BoundLaunch& launch : steps[static_cast<std::size_t>(step)]) {
    if (launch.category != OpCategory::communication) {
      launch.call(position);
    }
  }
}

// ---- Feeder

namespace {

/// Nothing comes before the step: it reads in place, or gathers its rows itself.
class OnDevice : public Feeder {
 public:
  explicit OnDevice(const Running& running)
      : running_(running), buffer_(running.plan.mode.gathers() ? 0 : Position::in_place) {}
  Position before(const OrderPart& part) override {
    return {.first_row = running_.run(part.first).first_row, .buffer = buffer_};
  }

 private:
  const Running& running_;
  const int buffer_;
};

/// On the stream that computes: nothing overlaps.
class Staged : public Feeder {
 public:
  explicit Staged(const Running& running) : running_(running) {}
  Position before(const OrderPart& part) override {
    running_.stage(part, 0, running_.stream());
    return {.first_row = running_.run(part.first).first_row, .buffer = 0};
  }

 private:
  const Running& running_;
};

/// The next part's rows are copied while one computes. A buffer is filled once the part that read
/// it is done, and read once it is full. Every copy is waited for by a part, so that the stream
/// that computes ends last.
class DoubleBuffered : public Feeder {
 public:
  explicit DoubleBuffered(const Running& running) : running_(running) {
    for (int buffer = 0; buffer < running.plan.mode.buffers; ++buffer) {
      buffers_.push_back({make_event(), make_event()});
    }
    copies_ = make_stream();
  }

  void begin(const OrderPart& first) override { fill(first); }

  Position before(const OrderPart& part) override {
    CROSSOVER_CUDA_CHECK(cudaStreamWaitEvent(running_.stream(), buffer(next_read_).full.get(), 0));
    return {.first_row = running_.run(part.first).first_row, .buffer = next_read_};
  }

  void after(const OrderPart& next) override {
    CROSSOVER_CUDA_CHECK(cudaEventRecord(buffer(next_read_).read.get(), running_.stream()));
    next_read_ = following(next_read_);
    if (!next.is_empty()) {
      fill(next);
    }
  }

 private:
  struct Buffer {
    Event full, read;  ///< after the copy into it, and after the part that read it
  };

  Buffer& buffer(int index) { return buffers_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] int following(int index) const { return (index + 1) % running_.plan.mode.buffers; }

  void fill(const OrderPart& part) {
    CROSSOVER_CUDA_CHECK(cudaStreamWaitEvent(copies_.get(), buffer(next_filled_).read.get(), 0));
    running_.stage(part, next_filled_, copies_.get());
    CROSSOVER_CUDA_CHECK(cudaEventRecord(buffer(next_filled_).full.get(), copies_.get()));
    next_filled_ = following(next_filled_);
  }

  const Running& running_;
  std::vector<Buffer> buffers_;
  int next_filled_ = 0, next_read_ = 0;  ///< in turn
  Stream copies_;                        // destroyed first: it waits for what uses the events
};

}  // namespace

std::unique_ptr<Feeder> make_feeder(const Running& running) {
  if (running.plan.mode.is_resident()) {
    return std::make_unique<OnDevice>(running);
  }
  if (running.plan.mode.buffers == 1) {
    return std::make_unique<Staged>(running);
  }
  return std::make_unique<DoubleBuffered>(running);
}

// ---- Executor

namespace {

/// Launch by launch.
class Eager : public StepByStep {
 public:
  using StepByStep::StepByStep;
  void issue(const OrderPart& part, const Position& position) const override {
    const int step = running().run(part.first).step;
    if (running().plan.mode.gathers()) {
      running().gather(step);
    }
    running().issue(step, position);
  }
};

}  // namespace

void StepByStep::enqueue(std::int64_t first, std::int64_t count) {
  const std::int64_t end = first + count;
  running_.start_at(first);
  const auto part_of = [end](std::int64_t run) {
    return OrderPart{.first = run, .end = std::min(run + 1, end)};
  };
  feeder_->begin(part_of(first));
  for (std::int64_t run = first; run < end; ++run) {
    issue(part_of(run), feeder_->before(part_of(run)));
    feeder_->after(part_of(run + 1));
    if (running_.plan.mode.loss_every_step) {
      running_.losses.copy(running_.binding, run);
      running_.wait();
    }
  }
  running_.count_on(count);
}

std::unique_ptr<Executor> make_eager(const Running& running) {
  return std::make_unique<Eager>(running);
}

std::unique_ptr<Executor> make_executor(const Running& running) {
  switch (running.plan.mode.execution) {
    case Execution::graph:
      return std::make_unique<StepGraphs>(running);
    case Execution::graph_epoch:
      return std::make_unique<OrderGraph>(running);
    case Execution::persistent:
    case Execution::tailored:
      return make_persistent(running);
    default:
      return make_eager(running);
  }
}

// ---- Graph loops

#if CUDART_VERSION >= 12040

namespace {

/// Behind `after`, unless that is null.
cudaGraphNode_t add_node(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphNodeParams& node) {
  const std::size_t count = after == nullptr ? 0 : 1;
  cudaGraphNode_t added = nullptr;
#if CUDART_VERSION >= 13000
  CROSSOVER_CUDA_CHECK(cudaGraphAddNode(&added, graph, &after, nullptr, count, &node));
#else
  CROSSOVER_CUDA_CHECK(cudaGraphAddNode(&added, graph, &after, count, &node));
#endif
  return added;
}

/// Records what `issue` puts into the stream as the loop's body, which belongs to the loop.
void capture_body(cudaGraph_t body, cudaStream_t stream, const std::function<void()>& issue) {
  CROSSOVER_CUDA_CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                                     cudaStreamCaptureModeThreadLocal));
  cudaGraph_t recorded = nullptr;
  try {
    issue();
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(stream, &recorded));
    static_cast<void>(cudaGetLastError());
    throw;
  }
  CROSSOVER_CUDA_CHECK(cudaStreamEndCapture(stream, &recorded));
}

void issue_turn(const Running& running, const OrderLoop& loop, const LoopCondition& condition) {
  for (std::int64_t run = loop.first; run < loop.first + loop.cycle; ++run) {
    const int step = running.run(run).step;
    if (run == loop.first) {
      gather_in_loop(running.step_plan(step), running.binding, condition);
    } else {
      running.gather(step);
    }
    running.issue(step, {.buffer = 0});
  }
}

/// A loop behind `after`.
cudaGraphNode_t add_loop(cudaGraph_t graph, cudaGraphNode_t after, const Running& running,
                         const OrderLoop& loop) {
  cudaGraphConditionalHandle handle = 0;
  constexpr unsigned enters = 1;  // whenever the graph is launched
  CROSSOVER_CUDA_CHECK(
      cudaGraphConditionalHandleCreate(&handle, graph, enters, cudaGraphCondAssignDefault));
  cudaGraphNodeParams node{};
  node.type = cudaGraphNodeTypeConditional;
  node.conditional.handle = handle;
  node.conditional.type = cudaGraphCondTypeWhile;
  node.conditional.size = 1;
  cudaGraphNode_t added = add_node(graph, after, node);
  capture_body(node.conditional.phGraph_out[0], running.stream(), [&] {
    issue_turn(running, loop, {.handle = handle, .cycle = loop.cycle, .end = loop.end()});
  });
  return added;
}

}  // namespace

bool has_graph_loops() {
  constexpr int first_version = 12040;
  int driver = 0;
  int runtime = 0;
  CROSSOVER_CUDA_CHECK(cudaDriverGetVersion(&driver));
  CROSSOVER_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  return std::min(driver, runtime) >= first_version;
}

OrderedGraph capture_loops(const Running& running) {
  try {
    prepare_gather_in_loop();
    cudaGraph_t empty = nullptr;
    CROSSOVER_CUDA_CHECK(cudaGraphCreate(&empty, 0));
    OrderedGraph made{.loops = Graph(empty), .exec = {}};
    cudaGraphNode_t last = nullptr;
    for (const OrderLoop& loop : running.plan.loops) {
      last = add_loop(made.loops.get(), last, running, loop);
    }
    made.exec = instantiate(made.loops.get(), running.stream());
    return made;
  } catch (const DeviceFailed&) {
    throw;
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw LoopsRefused(std::string("the order can't be a graph with loops: ") + error.what());
  }
}

#else

bool has_graph_loops() { return false; }

OrderedGraph capture_loops(const Running& /*running*/) {
  throw LoopsRefused("CUDA before 12.4 has no graphs with loops");
}

#endif

// ---- Graphs

namespace {

/// capture(), and a sentence where a library does what a capture forbids: eager execution is left.
GraphExec captured(const Running& running, const std::function<void()>& issue) {
  try {
    return capture(running.stream(), issue);
  } catch (const DeviceFailed&) {
    throw;
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::runtime_error& error) {
    const bool sums = !launches_of<SumLaunch>(running.plan).empty();
    const bool convolutions = !launches_of<ConvolutionLaunch>(running.plan).empty();
    if (!sums && !convolutions && launches_of<SdpaLaunch>(running.plan).empty()) {
      throw;
    }
    throw Unsupported(std::string(sums           ? "NCCL's sums"
                                  : convolutions ? "cuDNN's convolutions"
                                                 : "cuDNN's attention") +
                      " can't be captured into a CUDA graph: " + error.what());
  }
}

/// A step that reads from a staging buffer, behind what fills that where a kernel does.
void issue_with_rows(const Running& running, int step, int buffer) {
  if (running.plan.mode.gathers()) {
    running.gather(step);
  }
  running.issue(step, {.buffer = buffer});
}

OrderedGraph graph_of_order(const Running& running) {
  if (!running.plan.loops.empty()) {
    return capture_loops(running);
  }
  return {.loops = {}, .exec = captured(running, [&] {
                         for (const Run& run : running.workload.order) {
                           running.issue(run.step, {.first_row = run.first_row});
                         }
                       })};
}

}  // namespace

StepGraphs::StepGraphs(const Running& running) : StepByStep(running) {
  const int steps = static_cast<int>(running.steps.size());
  // Code is loaded at its first call, which a capture does not allow everywhere: so each step runs
  // once before, on zeros, and leaves zeros behind. NCCL's was when the ranks met.
  for (int step = 0; step < steps; ++step) {
    if (launches_of<SumLaunch>(running.plan).empty()) {
      issue_with_rows(running, step, 0);
    } else {
      if (running.plan.mode.gathers()) {
        running.gather(step);
      }
      running.issue_alone(step, {.buffer = 0});
    }
    running.wait();
    running.tensors.clear(running.stream());
  }
  if (running.plan.mode.gathers()) {
    running.upload_order();
  }
  for (int step = 0; step < steps; ++step) {
    std::vector<GraphExec>& graphs = graphs_.emplace_back();
    for (int buffer = 0; buffer < running.plan.mode.buffers; ++buffer) {
      graphs.push_back(captured(running, [&] { issue_with_rows(running, step, buffer); }));
    }
  }
}

void StepGraphs::issue(const OrderPart& part, const Position& position) const {
  const auto step = static_cast<std::size_t>(running().run(part.first).step);
  const GraphExec& graph = graphs_[step][static_cast<std::size_t>(position.buffer)];
  CROSSOVER_CUDA_CHECK(cudaGraphLaunch(graph.get(), running().stream()));
}

OrderGraph::OrderGraph(const Running& running)
    : running_(running), parts_(running), order_(graph_of_order(running)) {}

void OrderGraph::enqueue(std::int64_t first, std::int64_t count) {
  if (first == 0 && count == running_.runs()) {
    running_.start_at(0);  // where it ends, too
    CROSSOVER_CUDA_CHECK(cudaGraphLaunch(order_.exec.get(), running_.stream()));
  } else {
    parts_.enqueue(first, count);
  }
}

void check_order_graph(const Workload& workload, const LaunchPlan& plan) {
  if (plan.mode.execution != Execution::graph_epoch) {
    return;
  }
  constexpr std::int64_t most_nodes = 500'000;  // about a gigabyte, and minutes to instantiate
  const std::int64_t nodes = count_graph_nodes(workload, plan);
  if (nodes > most_nodes) {
    throw Unsupported("the whole order as one graph would have " + std::to_string(nodes) +
                      " nodes, more than " + std::to_string(most_nodes) +
                      (plan.loops.empty()
                           ? ": it has no loops, which need CUDA 12.4 and steps that repeat"
                           : ": few of its steps repeat"));
  }
}

}  // namespace crossover::cuda
