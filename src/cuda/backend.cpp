// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: carries out what plan.h decided, on one stream for compute and one for copies.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "autotune.h"
#include "crossover/backend.h"
#include "kernels.cuh"
#include "plan.h"
#include "probes.h"
#include "product.h"
#include "profile.h"
#include "runtime.h"
#include "timing.h"

namespace crossover {
namespace cuda {
namespace {

/// Puts one launch of a step into the compute stream.
using Call = std::function<void(const Position&)>;

struct BoundCall {
  Kind kind;
  Call call;
};

struct BoundStep {
  std::vector<BoundCall> calls;
  std::vector<GraphExec> graphs;  ///< by staging buffer; none where the step runs eagerly
};

/// The data set where it lies on the host.
class HostData {
 public:
  HostData(std::int64_t bytes, Placement placement) {
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
  [[nodiscard]] std::byte* at(std::int64_t offset) const { return data_ + offset; }

 private:
  std::vector<std::byte> ordinary_;
  PinnedMemory pinned_;
  std::byte* data_ = nullptr;
};

class CudaProgram : public Program {
 public:
  CudaProgram(Workload workload, const CompileOptions& options)
      : workload_(std::move(workload)),
        options_(options),
        products_(options.precision, workspace_for_products,
                  options.products == ProductChoice::autotuned ? most_candidates : 1),
        plan_(make_plan(workload_, options_,
                        [this](const ProductForm& form) { return products_.supports(form); })),
        memory_(allocate_device(std::max<std::int64_t>(plan_.bytes, 1))),
        host_(plan_.host_bytes, options.placement),
        host_loss_(options.loss_every_step ? allocate_pinned(sizeof(float)) : PinnedMemory()),
        compute_(make_stream()),
        copies_(make_stream()) {
    for (int buffer = 0; buffer < plan_.buffers; ++buffer) {
      buffers_.push_back({make_event(), make_event()});
    }
    clear();
    if (options_.products == ProductChoice::autotuned) {
      autotune_products();
    }
    for (const StepPlan& step : plan_.steps) {
      steps_.emplace_back();
      for (const Launch& launch : step.launches) {
        steps_.back().calls.push_back(
            {kind_of(launch), std::visit([this](const auto& what) { return bind(what); }, launch)});
      }
    }
    if (options_.execution != Execution::eager) {
      capture_graphs();
    }
    finish();
  }

  void upload(Id id, std::span<const std::byte> from) override {
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

  void download(Id id, std::span<std::byte> to) override {
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

  void enqueue(std::int64_t first, std::int64_t count) override {
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

  void wait() override { finish(); }

  [[nodiscard]] std::int64_t launches() const override {
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

  Profile profile() override {
    finish();
    RunSeconds run;
    run.wait = host_seconds([&] {
      set_run(compute_.get(), run_counter(), 0);
      finish();
    });
    const double between_events = device_seconds(compute_.get(), {[] {}}).front();
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      run.steps.push_back(profile_step(static_cast<int>(s), between_events));
    }
    if (epoch_) {
      for (StepSeconds& step : run.steps) {
        step.host = 0;
      }
      run.host_once = host_seconds([&] { enqueue(0, runs()); }, [&] { finish(); });
    }
    finish();
    return combine(run, options_.placement, options_.loss_every_step);
  }

 private:
  static constexpr int most_candidates = 8;  ///< that are timed for each form of product

  // ---- profile ----------------------------------------------------------------------------------

  StepSeconds profile_step(int index, double between_events) {
    const BoundStep& step = steps_[static_cast<std::size_t>(index)];
    StepSeconds seconds;
    std::int64_t run = -1;
    for (std::int64_t r = 0; r < runs(); ++r) {
      if (what(r).step == index) {
        run = run < 0 ? r : run;
        ++seconds.runs;
      }
    }
    if (seconds.runs == 0) {
      return seconds;
    }
    set_run(compute_.get(), run_counter(), 0);
    const int buffer = runs_in_place() || epoch_ ? Position::in_place : 0;
    const Position position{.first_row = what(run).first_row, .buffer = buffer};
    std::vector<std::function<void()>> pieces;
    std::vector<Kind> kinds;
    for (const BoundCall& bound : step.calls) {
      pieces.emplace_back([&bound, &position] { bound.call(position); });
      kinds.push_back(bound.kind);
    }
    if (options_.loss_every_step) {
      pieces.emplace_back([this, run] { copy_loss(run); });
      kinds.push_back(Kind::copy_from_device);
    }
    const bool staged = plan_.buffers > 0 && buffer >= 0;
    const bool staged_on_stream = staged && options_.placement != Placement::pageable;
    if (staged_on_stream) {
      pieces.emplace_back([this, run] { stage(run, 0, compute_.get()); });
    }
    const std::vector<double> times = device_seconds(compute_.get(), pieces);
    const auto without_events = [&](double time) { return std::max(0.0, time - between_events); };
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      seconds.device[kinds[i]] += without_events(times[i]);
    }
    if (staged_on_stream) {
      seconds.copy = without_events(times.back());
    } else if (staged) {
      seconds.copy = host_seconds([&] { stage(run, 0, compute_.get()); }, [&] { finish(); });
    }
    set_run(compute_.get(), run_counter(), 0);
    seconds.host = host_seconds(
        [&] {
          if (staged_on_stream) {
            stage(run, 0, compute_.get());
          }
          run_step(run, buffer);
        },
        [&] {
          finish();
          set_run(compute_.get(), run_counter(), 0);
          finish();
        });
    return seconds;
  }

  // ---- running ----------------------------------------------------------------------------------

  [[nodiscard]] std::int64_t runs() const {
    return static_cast<std::int64_t>(workload_.order.size());
  }
  [[nodiscard]] const Run& what(std::int64_t run) const {
    return workload_.order[static_cast<std::size_t>(run)];
  }
  [[nodiscard]] bool runs_in_place() const {
    return options_.placement == Placement::resident && options_.execution == Execution::eager;
  }

  /// The next batch is copied while a step computes. A buffer is filled once the step that read it
  /// is done, and read once it is full.
  void enqueue_overlapped(std::int64_t first, std::int64_t end) {
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

  void fill(std::int64_t run) {
    Buffer& buffer = buffers_[static_cast<std::size_t>(next_filled_)];
    CROSSOVER_CUDA_CHECK(cudaStreamWaitEvent(copies_.get(), buffer.read.get(), 0));
    stage(run, next_filled_, copies_.get());
    CROSSOVER_CUDA_CHECK(cudaEventRecord(buffer.full.get(), copies_.get()));
    next_filled_ = (next_filled_ + 1) % plan_.buffers;
  }

  /// Brings a run's rows to a staging buffer, from wherever the data set lies.
  void stage(std::int64_t run, int buffer, cudaStream_t stream) const {
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

  void run_step(std::int64_t run, int buffer) const {
    const BoundStep& step = steps_[static_cast<std::size_t>(what(run).step)];
    if (buffer >= 0 && !step.graphs.empty()) {
      CROSSOVER_CUDA_CHECK(
          cudaGraphLaunch(step.graphs[static_cast<std::size_t>(buffer)].get(), compute_.get()));
      return;
    }
    issue(step, {.first_row = what(run).first_row, .buffer = buffer});
  }

  static void issue(const BoundStep& step, const Position& position) {
    for (const BoundCall& bound : step.calls) {
      bound.call(position);
    }
  }

  void read_loss(std::int64_t run) const {
    if (!options_.loss_every_step) {
      return;
    }
    copy_loss(run);
    finish();
  }

  void copy_loss(std::int64_t run) const {
    if (plan_.loss != none) {
      const std::int64_t at = plan_.offset[static_cast<std::size_t>(plan_.loss)] +
                              run * static_cast<std::int64_t>(sizeof(float));
      copy(host_loss_.get(), address(at), sizeof(float), cudaMemcpyDeviceToHost);
    }
  }

  /// Every copy of a batch is waited for by a step, so that the compute stream ends last.
  void finish() const { CROSSOVER_CUDA_CHECK(cudaStreamSynchronize(compute_.get())); }

  // ---- graphs -----------------------------------------------------------------------------------

  void capture_graphs() {
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

  void capture_epoch() {
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

  // ---- memory -----------------------------------------------------------------------------------

  [[nodiscard]] void* address(std::int64_t offset) const {
    return static_cast<std::byte*>(memory_.get()) + offset;
  }
  template <class T>
  [[nodiscard]] T* address_as(std::int64_t offset) const {
    return static_cast<T*>(address(offset));
  }
  [[nodiscard]] std::int64_t* run_counter() const { return address_as<std::int64_t>(plan_.run); }

  void clear() const {
    CROSSOVER_CUDA_CHECK(
        cudaMemsetAsync(memory_.get(), 0, static_cast<std::size_t>(plan_.bytes), compute_.get()));
  }

  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const {
    CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, compute_.get()));
  }

  void require_copyable(Id id, std::size_t size) const {
    const auto at = static_cast<std::size_t>(id);
    const bool placed = plan_.offset.at(at) >= 0 || plan_.host_offset.at(at) >= 0;
    if (!placed || static_cast<std::int64_t>(size) != bytes(workload_[id])) {
      throw std::invalid_argument("tensor '" + workload_[id].name + "' can't be copied in " +
                                  std::to_string(size) + " bytes");
    }
  }

  // ---- one call for each launch of the plan -----------------------------------------------------

  /// An operand's address at a position, in the type that a kernel takes.
  template <class T>
  [[nodiscard]] auto at(const Operand& operand) const {
    return [this, operand](const Position& now) { return address_as<T>(operand.at(now)); };
  }

  [[nodiscard]] ProductOperands operands(const ProductLaunch& l, const Position& now) const {
    const auto maybe = [&](const Operand& o) { return o.exists() ? address(o.at(now)) : nullptr; };
    return {.a = address(l.a.at(now)),
            .b = address(l.b.at(now)),
            .d = address(l.d.at(now)),
            .vector = maybe(l.vector),
            .mask = maybe(l.mask),
            .workspace = address(plan_.workspace),
            .workspace_bytes = plan_.workspace_bytes};
  }

  /// Before anything is uploaded: on zeros, and it leaves zeros behind.
  void autotune_products() {
    for (const StepPlan& step : plan_.steps) {
      for (const Launch& launch : step.launches) {
        if (const auto* product = std::get_if<ProductLaunch>(&launch)) {
          autotune(products_, product->form, operands(*product, {.buffer = 0}), compute_.get());
        }
      }
    }
    clear();
  }

  Call bind(const ProductLaunch& l) {
    const ProductOperands fixed = operands(l, {.buffer = 0});
    auto product = std::make_shared<Product>(products_, l.form, fixed.vector, fixed.mask);
    return [this, product, l](const Position& now) {
      product->execute(compute_.get(), address(l.a.at(now)), address(l.b.at(now)),
                       address(l.d.at(now)), address(plan_.workspace), plan_.workspace_bytes);
    };
  }

  Call bind(const BiasActivateLaunch& l) {
    return [this, l, x = at<float>(l.x), bias = at<void>(l.bias),
            y = at<void>(l.y)](const Position& now) {
      bias_activate(compute_.get(), l.activation, l.y.type, x(now), bias(now), y(now), l.rows,
                    l.columns);
    };
  }

  Call bind(const CastLaunch& l) {
    return [this, l](const Position& now) {
      CastSpans spans;
      for (const CastLaunch::One& one : l.casts) {
        spans.span[spans.count++] = {address(one.x.at(now)), address(one.y.at(now)), one.count};
      }
      cuda::cast(compute_.get(), l.casts.front().x.type, l.casts.front().y.type, spans);
    };
  }

  Call bind(const ActivateLaunch& l) {
    return [this, l, x = at<void>(l.x), y = at<void>(l.y)](const Position& now) {
      cuda::activate(compute_.get(), l.activation, l.x.type, x(now), y(now), l.count);
    };
  }

  Call bind(const ActivateGradLaunch& l) {
    return [this, l, y = at<void>(l.y), dy = at<void>(l.dy),
            dx = at<void>(l.dx)](const Position& now) {
      activate_grad(compute_.get(), l.activation, l.y.type, y(now), dy(now), dx(now), l.count);
    };
  }

  Call bind(const AddLaunch& l) {
    return [this, l, a = at<void>(l.a), b = at<void>(l.b), y = at<void>(l.y)](const Position& now) {
      cuda::add(compute_.get(), l.y.type, a(now), b(now), y(now), l.count);
    };
  }

  Call bind(const ColumnSumsLaunch& l) {
    return [this, l, matrix = at<void>(l.matrix), sums = at<float>(l.sums)](const Position& now) {
      column_sums(compute_.get(), l.matrix.type, matrix(now), l.rows, l.columns, l.accumulate,
                  sums(now));
    };
  }

  Call bind(const LossLaunch& l) {
    return [this, l, logits = at<float>(l.logits), labels = at<std::int32_t>(l.labels),
            dlogits = at<void>(l.dlogits), loss = at<float>(l.loss)](const Position& now) {
      softmax_cross_entropy(compute_.get(), l.dlogits.type,
                            {.logits = logits(now),
                             .labels = labels(now),
                             .dlogits = dlogits(now),
                             .loss = loss(now),
                             .run = run_counter(),
                             .row_losses = address_as<float>(plan_.row_losses),
                             .rows = l.rows,
                             .classes = l.classes,
                             .factor = l.factor,
                             .advance = l.advance});
    };
  }

  Call bind(const AdvanceLaunch& /*unused*/) {
    return [this](const Position& /*unused*/) { advance_run(compute_.get(), run_counter()); };
  }

  Call bind(const SgdLaunch& l) {
    return [this, spans = update_spans(l.spans, l.learning_rate),
            rate = static_cast<float>(l.learning_rate)](const Position& /*unused*/) {
      cuda::sgd(compute_.get(), spans, rate);
    };
  }

  Call bind(const AdamWTimeLaunch& l) {
    const AdamWConstants constants{.learning_rate = l.learning_rate,
                                   .beta1 = l.beta1,
                                   .beta2 = l.beta2,
                                   .epsilon = l.epsilon,
                                   .gradient_factor = l.gradient_factor};
    return [this, constants, time = at<std::int32_t>(l.time)](const Position& now) {
      adamw_time(compute_.get(), constants, time(now), factors());
    };
  }

  Call bind(const AdamWLaunch& l) {
    return [this, spans = update_spans(l.spans, l.learning_rate)](const Position& /*unused*/) {
      cuda::adamw(compute_.get(), spans, factors());
    };
  }

  [[nodiscard]] AdamWFactors<float>* factors() const {
    static_assert(sizeof(AdamWFactors<float>) <= factors_bytes);
    return address_as<AdamWFactors<float>>(plan_.factors);
  }

  [[nodiscard]] UpdateSpans update_spans(const std::vector<Span>& spans,
                                         double learning_rate) const {
    UpdateSpans all;
    for (const Span& span : spans) {
      std::array<float*, 4> arrays{};  // parameters, gradients, AdamW's m and v
      std::transform(span.offsets.begin(), span.offsets.end(), arrays.begin(),
                     [this](std::int64_t offset) { return address_as<float>(offset); });
      all.span[all.count++] = {.w = arrays[0],
                               .g = arrays[1],
                               .m = arrays[2],
                               .v = arrays[3],
                               .count = span.count,
                               .keep = static_cast<float>(1 - learning_rate * span.weight_decay)};
    }
    return all;
  }

  struct Buffer {
    Event full, read;  ///< behind the copy into it, and behind the step that read it
  };

  const Workload workload_;
  const CompileOptions options_;
  ProductLibrary products_;
  const Plan plan_;
  // Streams are destroyed first: they wait for what still uses the members before them.
  const DeviceMemory memory_;
  const HostData host_;
  const PinnedMemory host_loss_;
  std::vector<BoundStep> steps_;
  GraphExec epoch_;
  std::vector<Buffer> buffers_;
  int next_filled_ = 0, next_read_ = 0;  ///< staging buffers, in turn
  const Stream compute_, copies_;
};

std::string text(const char* characters) { return characters; }

class GpuBackend : public Backend {
 public:
  explicit GpuBackend(const cudaDeviceProp& device) : device_(device) {}

  [[nodiscard]] Description describe() const override {
    int driver = 0;
    int runtime = 0;
    CROSSOVER_CUDA_CHECK(cudaDriverGetVersion(&driver));
    CROSSOVER_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    return {.device = "cuda",
            .cache_bytes = device_.l2CacheSize,
            .libraries = {{"gpu", text(static_cast<const char*>(device_.name))},
                          {"compute_capability",
                           std::to_string(device_.major) + "." + std::to_string(device_.minor)},
                          {"cuda_driver", version_text(driver)},
                          {"cuda_runtime", version_text(runtime)},
                          {"cublaslt", std::to_string(cublasLtGetVersion())}}};
  }

  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return missing_for_products(device_, precision);
  }

  /// With every mask that cuBLASLt may write, or what own kernels need in its place: it is not
  /// asked here which epilogues it has.
  [[nodiscard]] std::int64_t bytes_needed(const Workload& workload) const override {
    const auto all = [](const ProductForm&) { return true; };
    const auto plain = [](const ProductForm& form) { return form.epilogue == Epilogue::none; };
    return std::max(make_plan(workload, {}, all).bytes, make_plan(workload, {}, plain).bytes);
  }

  [[nodiscard]] std::unique_ptr<Program> compile(const Workload& workload,
                                                 const CompileOptions& options) const override {
    check(workload, options.precision);
    if (const std::string missing = missing_for(options.precision); !missing.empty()) {
      throw Unsupported(missing);
    }
    return std::make_unique<CudaProgram>(workload, options);
  }

  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    return cuda::make_probe(spec, device_);
  }

 private:
  cudaDeviceProp device_;
};

}  // namespace
}  // namespace cuda

CudaBackend make_cuda_backend() {
  const cuda::Discovery found = cuda::discover();
  if (!found.reason.empty()) {
    return {.reason = found.reason};
  }
  return {.backend = std::make_unique<cuda::GpuBackend>(found.device)};
}

}  // namespace crossover
