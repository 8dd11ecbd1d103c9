// SPDX-License-Identifier: Apache-2.0
// A Workload on the GPU: planned, and a LaunchPlan carried out.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../../automatic/automatic.h"
#include "../base/runtime.h"
#include "../kernels/persistent.cuh"
#include "../libraries/algorithms.h"
#include "../plan/plan.h"
#include "../plan/profile.h"
#include "backend.h"
#include "bind.h"
#include "crossover/backend.h"
#include "crossover/executions.h"
#include "crossover/extensions.h"
#include "device_tensors.h"
#include "executor.h"

namespace crossover::cuda {

// ---- A LaunchPlan carried out.

namespace {

class CudaProgram : public Program, public TrainsCopies {
 public:
  /// On the thread's device. Its algorithms are those that the plan was made with;
  /// collectives, where it sums over ranks, are those of all its ranks.
  /// Throws OutOfMemory; NoneRuns where a library then fails to run one of them; LoopsRefused where
  /// the driver then has none; Unsupported where one of them can't be captured.
  CudaProgram(Workload workload, LaunchPlan plan, SharedAlgorithms algorithms,
              std::shared_ptr<Collectives> collectives, const CompileOptions& options);

  void upload(Id id, std::span<const std::byte> from) override;
  void download(Id id, std::span<std::byte> to) override;
  void upload_to(std::int64_t copy, Id id, std::span<const std::byte> from) override;
  void download_from(std::int64_t copy, Id id, std::span<std::byte> to) override {
    tensors_.download(id, to, compute_.get(), copy);
  }
  void enqueue(std::int64_t first, std::int64_t count) override;
  void enqueue_for(std::int64_t copy, std::int64_t first, std::int64_t count) override;
  void wait() override { running_.wait(); }
  bool join(std::span<Program* const> others) override;
  void enqueue_joined(std::int64_t first, std::int64_t count) override {
    executor_->enqueue_joined(first, count);
  }
  Profile profile() override;

 private:
  /// One of its networks by itself, launch by launch.
  struct Alone {
    Alone(const Running& all, const Binding& binding)
        : steps(bind_steps(binding, all.second.get())),
          running{.workload = all.workload,
                  .plan = *binding.plan,
                  .tensors = all.tensors,
                  .losses = all.losses,
                  .steps = steps,
                  .binding = binding,
                  .second = all.second,
                  .next_run = next_run},
          executor(make_eager(running)) {}

    const std::vector<BoundStep> steps;
    std::int64_t next_run = 0;
    const Running running;
    const std::unique_ptr<Executor> executor;
  };

  [[nodiscard]] Binding binding_of(std::int64_t network) const;
  void cast(Id id, const Binding& binding) const;
  [[nodiscard]] ProgramFacts count_facts() const;
  StepSeconds profile_step(int index, double between_events);
  StepSeconds profile_order(double between_events);

  const Workload workload_;
  const LaunchPlan plan_;
  const LaunchPlan plan_of_one_;
  const SharedAlgorithms algorithms_;
  const std::shared_ptr<Collectives> collectives_;
  DeviceTensors tensors_;
  const LossReader losses_;
  const SecondStream second_;
  std::int64_t next_run_ = 0;  ///< see Running
  std::vector<BoundStep> steps_;
  std::unique_ptr<Executor> executor_;
  std::map<std::int64_t, Alone> alone_;  ///< by network, as they are asked for
  // Destroyed before what comes above: it waits for what still uses it.
  const Stream compute_;
  const Running running_;
};

}  // namespace

CudaProgram::CudaProgram(Workload workload, LaunchPlan plan, SharedAlgorithms algorithms,
                         std::shared_ptr<Collectives> collectives, const CompileOptions& options)
    : workload_(std::move(workload)),
      plan_(std::move(plan)),
      plan_of_one_(of_one_network(plan_)),
      algorithms_(std::move(algorithms)),
      collectives_(std::move(collectives)),
      tensors_(workload_, plan_),
      losses_(plan_.mode),
      second_(plan_.mode),
      compute_(make_stream()),
      running_{.workload = workload_,
               .plan = plan_,
               .tensors = tensors_,
               .losses = losses_,
               .steps = steps_,
               .binding = {.block = tensors_.block(),
                           .stream = compute_.get(),
                           .plan = &plan_,
                           .products = algorithms_.products.get(),
                           .convolutions = algorithms_.convolutions.get(),
                           .sdpas = algorithms_.sdpas.get(),
                           .collectives = collectives_.get(),
                           .second = &second_,
                           .workspace = plan_.workspace},
               .second = second_,
               .next_run = next_run_} {
  tensors_.clear(compute_.get());
  choose_algorithms(running_.binding, options);
  facts_ = count_facts();
  facts_.arithmetic = measure_arithmetic(running_.binding, options.precision);
  if (plan_.networks.count > 1) {
    choose_algorithms(binding_of(0), options);
    const Arithmetic of_one = measure_arithmetic(binding_of(0), options.precision);
    facts_.arithmetic.tf32 = std::max(facts_.arithmetic.tf32, of_one.tf32);
    facts_.arithmetic.relu_passes_zero |= of_one.relu_passes_zero;
  }
  tensors_.clear(compute_.get());
  steps_ = bind_steps(running_.binding, second_.get());
  executor_ = make_executor(running_);
  running_.wait();
}

/// The workspace is that of all.
Binding CudaProgram::binding_of(std::int64_t network) const {
  Binding binding = running_.binding;
  binding.block = tensors_.block_of(network);
  binding.workspace -= binding.block - tensors_.block();
  binding.plan = &plan_of_one_;
  return binding;
}

void CudaProgram::upload(Id id, std::span<const std::byte> from) {
  tensors_.upload(id, from, compute_.get());
  tensors_.spread(id, compute_.get());
  cast(id, running_.binding);
}

void CudaProgram::upload_to(std::int64_t copy, Id id, std::span<const std::byte> from) {
  tensors_.upload(id, from, compute_.get(), copy);
  cast(id, binding_of(copy));
}

/// Into its copy in 16 bits, where it has one.
void CudaProgram::cast(Id id, const Binding& binding) const {
  const auto copy = std::find_if(plan_.copies.begin(), plan_.copies.end(),
                                 [id](const ParameterCopy& one) { return one.parameter == id; });
  if (copy == plan_.copies.end()) {
    return;
  }
  const auto at = [&](Id tensor, std::int64_t offset) {
    return Operand{
        .offset = offset, .bytes = bytes(workload_[tensor]), .type = workload_[tensor].type};
  };
  const Operand parameter = at(id, plan_[id].offset);
  const Operand in_16_bits = at(copy->copy, copy->offset);
  call(CastLaunch{{{parameter, in_16_bits, elements(workload_[id].shape)}}}, binding);
  running_.wait();
}

void CudaProgram::download(Id id, std::span<std::byte> to) {
  tensors_.download(id, to, compute_.get());
}

void CudaProgram::enqueue(std::int64_t first, std::int64_t count) {
  if (count > 0) {
    executor_->enqueue(first, count);
  }
}

void CudaProgram::enqueue_for(std::int64_t copy, std::int64_t first, std::int64_t count) {
  if (plan_.networks.count == 1) {
    return enqueue(first, count);
  }
  if (count > 0) {
    Alone& alone = alone_.try_emplace(copy, running_, binding_of(copy)).first->second;
    constexpr std::int64_t unknown = -1;  // the counters of runs now differ
    alone.next_run = next_run_ = unknown;
    alone.executor->enqueue(first, count);
  }
}

bool CudaProgram::join(std::span<Program* const> others) {
  std::vector<const std::byte*> blocks{tensors_.block()};
  for (const Program* other : others) {
    const auto* of_cuda = dynamic_cast<const CudaProgram*>(other);
    if (of_cuda == nullptr || !of_cuda->plan_.joins()) {
      return false;
    }
    blocks.push_back(of_cuda->tensors_.block());
  }
  return executor_->join(blocks);
}

ProgramFacts CudaProgram::count_facts() const {
  ProgramFacts facts{.copies = plan_.networks.count,
                     .bytes = plan_.bytes,
                     .launches = count_launches(workload_, plan_),
                     .reorders = count_reorders(workload_, plan_)};
  if (plan_.mode.execution == Execution::graph_epoch) {
    facts.graph_loops = std::ssize(plan_.loops);
  }
  if (plan_.mode.is_graph()) {
    facts.graph_form = GraphForm{.loops = !plan_.loops.empty(), .streams = plan_.forks() ? 2 : 1};
  }
  const StepPlan& step = plan_.steps.at(
      static_cast<std::size_t>(workload_.order.empty() ? 0 : workload_.order[0].step));
  for (const Launch& launch : step.launches) {
    if (const auto* convolution = std::get_if<ConvolutionLaunch>(&launch)) {
      const ConvolutionForm& form = convolution->form;
      if (const std::string engine = algorithms_.convolutions->name(form); !engine.empty()) {
        ++facts.library_engines[short_name(form.pass) + " " + engine +
                                (form.is_fused() ? " fused" : "")];
      }
    } else if (const auto* sdpa = std::get_if<SdpaLaunch>(&launch)) {
      if (const std::string engine = algorithms_.sdpas->name(sdpa->form); !engine.empty()) {
        ++facts.library_engines[short_name(sdpa->form) + " " + engine +
                                (sdpa->form.repeats ? "" : ", does not repeat")];
      }
    } else if (std::holds_alternative<AttentionLaunch>(launch)) {
      ++facts.library_engines["attention forward own"];
    } else if (std::holds_alternative<AttentionGradQueriesLaunch>(launch)) {
      ++facts.library_engines["attention backward own"];
    }
  }
  return facts;
}

// ---- Takes the pieces of single steps that profile.h puts together.

Profile CudaProgram::profile() {
  wait();
  RunSeconds run;
  run.wait = host_seconds([&] {
    running_.set_run(0);
    wait();
  });
  const double between_events = device_seconds(compute_.get(), {[] {}}).front();
  for (std::size_t s = 0; s < steps_.size() && !plan_.persistent; ++s) {
    run.steps.push_back(profile_step(static_cast<int>(s), between_events));
  }
  if (plan_.persistent) {
    run.steps.push_back(profile_order(between_events));
  } else if (executor_->issues_order_at_once()) {
    running_.set_run(0);
    run.host_once = host_seconds([&] { enqueue(0, running_.runs()); }, [&] { wait(); });
  }
  running_.set_run(0);
  wait();
  // What profile_order() says of copies leaves out what the kernel hides.
  const bool is_left_out = plan_.persistent && plan_.mode.placement == Placement::pinned_async;
  return combine(run, is_left_out ? Placement::pinned : plan_.mode.placement,
                 plan_.mode.loss_every_step);
}

/// One kernel, which nothing times from within: all of it counts as products. A copy counts as far
/// as it outlasts the part that computes meanwhile.
StepSeconds CudaProgram::profile_order(double between_events) {
  const Placement placement = plan_.mode.placement;
  const bool staged_on_stream =
      placement == Placement::pinned || placement == Placement::pinned_async;
  std::vector<std::function<void()>> copies;
  std::vector<std::function<void()>> kernels;
  std::vector<std::function<void()>> pieces;
  for (OrderPart left{.end = running_.runs()}; !left.is_empty();) {
    const OrderPart part = first_part(workload_, plan_, left);
    left.first = part.end;
    copies.emplace_back([this, part] { running_.stage(part, 0, compute_.get()); });
    kernels.emplace_back([this, part] {
      executor_->issue(part, {.first_row = running_.run(part.first).first_row, .buffer = 0});
    });
    if (staged_on_stream) {
      pieces.push_back(copies.back());
    }
    pieces.push_back(kernels.back());
  }
  const std::vector<double> times = device_seconds(compute_.get(), pieces);
  const auto without_events = [&](double time) { return std::max(0.0, time - between_events); };
  StepSeconds seconds{.runs = 1};
  double meanwhile = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (staged_on_stream) {
      seconds.copy += std::max(0.0, without_events(times[i++]) - meanwhile);
    }
    const double computing = without_events(times[i]);
    seconds.device[OpCategory::product] += computing;
    meanwhile = placement == Placement::pinned_async ? computing : 0;
  }
  const auto host_seconds_of = [&](const std::vector<std::function<void()>>& calls) {
    return host_seconds([&] { std::for_each(calls.begin(), calls.end(), [](auto& f) { f(); }); },
                        [&] { wait(); });
  };
  if (placement == Placement::pageable) {
    seconds.copy = host_seconds_of(copies);
    seconds.host = host_seconds_of(kernels);
  } else {
    seconds.host = host_seconds_of({[this] { enqueue(0, running_.runs()); }});
  }
  return seconds;
}

StepSeconds CudaProgram::profile_step(int index, double between_events) {
  StepSeconds seconds;
  std::int64_t run = -1;
  for (std::int64_t r = 0; r < running_.runs(); ++r) {
    if (running_.run(r).step == index) {
      run = run < 0 ? r : run;
      ++seconds.runs;
    }
  }
  if (seconds.runs == 0) {
    return seconds;
  }
  const RunMode& mode = plan_.mode;
  const Position position{.first_row = running_.run(run).first_row,
                          .buffer = mode.in_place ? Position::in_place : 0};
  // Whatever has counted on before: the step gathers the rows of a run that is its own.
  const auto at_its_run = [this, run] { running_.set_run(run); };
  std::vector<std::function<void()>> pieces{at_its_run};
  std::vector<OpCategory> kinds;  // of the pieces behind it
  if (mode.gathers() && !mode.in_place &&
      !plan_.steps[static_cast<std::size_t>(index)].inputs.empty()) {
    pieces.emplace_back([this, index] { running_.gather(index); });
    kinds.push_back(OpCategory::elementwise);
  }
  for (const BoundLaunch& launch : steps_[static_cast<std::size_t>(index)]) {
    pieces.emplace_back([&launch, &position] { launch.call(position); });
    kinds.push_back(launch.category);
  }
  if (mode.loss_every_step) {
    pieces.emplace_back([this, run] { losses_.copy(running_.binding, run); });
    kinds.push_back(OpCategory::copy_from_device);
  }
  const OrderPart part{.first = run, .end = run + 1};
  const auto stage = [this, part] { running_.stage(part, 0, compute_.get()); };
  const bool staged = !mode.is_resident();
  const bool staged_on_stream = staged && mode.placement != Placement::pageable;
  if (staged_on_stream) {
    pieces.emplace_back(stage);
  }
  const std::vector<double> times = device_seconds(compute_.get(), pieces);
  const auto without_events = [&](double time) { return std::max(0.0, time - between_events); };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    seconds.device[kinds[i]] += without_events(times[i + 1]);
  }
  if (staged_on_stream) {
    seconds.copy = without_events(times.back());
  } else if (staged) {
    seconds.copy = host_seconds(stage, [&] { wait(); });
  }
  if (executor_->issues_order_at_once()) {
    return seconds;
  }
  at_its_run();
  seconds.host = host_seconds(
      [&] {
        if (staged_on_stream) {
          stage();
        }
        executor_->issue(part, position);
      },
      [&] {
        wait();
        at_its_run();
        wait();
      });
  return seconds;
}

// ---- A Workload planned for a GPU

namespace {

/// Of clusters those that the driver finds room for.
OnChip on_chip(const cudaDeviceProp& device) {
  OnChip chip{.shared_bytes = static_cast<std::int64_t>(device.sharedMemPerBlockOptin),
              .multiprocessors = device.multiProcessorCount,
              .cache_bytes = device.l2CacheSize};
  chip.threads = std::min(chip.threads, device.maxThreadsPerBlock);
  chip.cluster_blocks = 1;
  for (int& at_once : chip.clusters_at_once) {
    const int blocks = 2 * chip.cluster_blocks;
    at_once = device.clusterLaunch == 0
                  ? 0
                  : count_training_clusters(blocks, chip.threads, chip.shared_bytes);
    if (at_once == 0) {
      break;
    }
    chip.cluster_blocks = blocks;
  }
  return chip;
}

int attribute(cudaDeviceAttr of) {
  int device = 0;
  int value = 0;
  CROSSOVER_CUDA_CHECK(cudaGetDevice(&device));
  CROSSOVER_CUDA_CHECK(cudaDeviceGetAttribute(&value, of, device));
  return value;
}

/// Unsupported where the driver would end such a kernel, or not launch it.
void require_kernel_for_all(const PersistentPlan& plan) {
  if (attribute(cudaDevAttrKernelExecTimeout) != 0) {
    throw Unsupported(
        "one kernel for the whole order may run longer than the driver lets it on this GPU, which "
        "has a display (kernelExecTimeout)");
  }
  if (plan.team == TeamKind::grid && attribute(cudaDevAttrCooperativeLaunch) == 0) {
    throw Unsupported(
        "one kernel for the whole order needs all multiprocessors for this network, and this GPU, "
        "a virtual one perhaps, launches no kernel whose blocks wait for each other "
        "(cooperativeLaunch)");
  }
}

/// Ranks must not choose by time: each might have another form. And sums stay out of loops, whose
/// bodies take kernels, fills and copies alone, while NCCL may also call the host.
constexpr GraphForm form_of_ranks{.loops = false, .streams = 1};

class GpuPlan : public Plan {
 public:
  /// The libraries answer here what they have: instantiate() finds nothing to decide but between
  /// algorithms and forms of graphs. Only where none of those algorithms runs that they promised,
  /// or the driver refuses the loops that its version has, is the plan another.
  GpuPlan(Workload workload, const CompileOptions& options, const Device& device,
          SharedAlgorithms algorithms, std::shared_ptr<Collectives> collectives)
      : workload_(std::move(workload)),
        options_(options),
        device_(device),
        algorithms_(std::move(algorithms)),
        collectives_(std::move(collectives)) {
    make(options_.ranks != nullptr ? form_of_ranks : options_.graph_form.value_or(largest_form));
    if (!launches_of<SumLaunch>(plan_).empty() && collectives_ == nullptr) {
      throw Unsupported("this GPU is that of a process alone, which has no ranks to sum over");
    }
  }

  [[nodiscard]] std::int64_t bytes() const override { return plan_.bytes; }

  [[nodiscard]] std::int64_t bytes_keeping_activations() const override {
    CompileOptions options = options_;
    options.keep_activations = true;
    return planned(form_, options).bytes;
  }

  [[nodiscard]] std::int64_t launches() const override { return launches_; }
  [[nodiscard]] bool joins() const override { return plan_.joins(); }
  [[nodiscard]] std::int64_t copies() const override { return plan_.networks.count; }

  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    if (std::exchange(instantiated_, true)) {
      throw std::logic_error("a Plan is instantiated once");
    }
    device_.use();
    if (options_.ranks != nullptr || options_.graph_form || !plan_.mode.is_graph()) {
      return program();
    }
    const std::int64_t copies = std::exchange(options_.copies, 1);  // two of all may not fit
    const GraphForm fastest = fastest_form();
    options_.copies = copies;
    make(fastest);
    return program();
  }

 private:
  /// Throws Unsupported.
  [[nodiscard]] LaunchPlan planned(const GraphForm& form, CompileOptions options) const {
    options.graph_form = form;
    return make_plan(
        workload_, options,
        [&](const ProductForm& product) { return algorithms_.products->supports(product); },
        [&](const ConvolutionForm& one) { return algorithms_.convolutions->supports(one); },
        facts_of(options_.execution).in_one_kernel ? on_chip(device_.properties) : OnChip{}, loops_,
        static_cast<std::int64_t>(device_.properties.totalGlobalMem),
        [&](const SdpaForm& one) { return algorithms_.sdpas->supports(one); });
  }

  void make(const GraphForm& form) {
    plan_ = planned(form, options_);
    if (plan_.persistent) {
      require_kernel_for_all(*plan_.persistent);
    }
    form_ = form;
    launches_ = count_launches(workload_, plan_);
    check_order_graph(workload_, plan_);
  }

  /// A form that does not run is not planned again, and loops are refused once: so each attempt has
  /// less to try than the one before, and few are enough.
  [[nodiscard]] std::unique_ptr<Program> program() {
    constexpr int most_attempts = 1000;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      try {
        return std::make_unique<CudaProgram>(workload_, plan_, algorithms_, collectives_, options_);
      } catch (const NoneRuns&) {
      } catch (const LoopsRefused&) {
        loops_ = false;
      }
      make(form_);
    }
    throw Unsupported("the GPU's libraries run none of " + std::to_string(most_attempts) +
                      " plans");
  }

  /// Passes over the whole order, in turn with the fastest so far: two are in memory.
  [[nodiscard]] GraphForm fastest_form() {
    const std::int64_t runs = std::ssize(workload_.order);
    const Trials trials{.runs = runs, .least = runs};
    std::unique_ptr<Program> fastest;
    double its_seconds = 0;
    return fastest_of(graph_forms(workload_, plan_), [&](const GraphForm& form) {
      make(form);
      std::unique_ptr<Program> made = program();
      begin_trial(*made, workload_);
      if (fastest == nullptr) {
        keep_busy([&] {
          made->enqueue(0, runs);
          made->wait();
        });
      }
      const double seconds = seconds_of_least(*made, trials, steady_seconds);
      if (fastest != nullptr && ratio_of_seconds({*fastest, its_seconds}, {*made, seconds}, trials,
                                                 steady_seconds) >= 1) {
        return false;
      }
      fastest = std::move(made);
      its_seconds = seconds;
      return true;
    });
  }

  const Workload workload_;
  CompileOptions options_;
  const Device device_;
  const SharedAlgorithms algorithms_;
  const std::shared_ptr<Collectives> collectives_;
  bool instantiated_ = false;
  bool loops_ = has_graph_loops();
  GraphForm form_;
  LaunchPlan plan_;
  std::int64_t launches_ = 0;
};

}  // namespace

std::unique_ptr<Plan> make_gpu_plan(const Workload& workload, const CompileOptions& options,
                                    const Device& device, SharedAlgorithms algorithms,
                                    std::shared_ptr<Collectives> collectives) {
  return std::make_unique<GpuPlan>(workload, options, device, std::move(algorithms),
                                   std::move(collectives));
}

}  // namespace crossover::cuda
