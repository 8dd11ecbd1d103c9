// SPDX-License-Identifier: Apache-2.0
// The CPU backend: each operation of a step becomes a few kernels, oneDNN for matrix products and
// our own loops for the rest, over one block of memory.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <new>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <type_traits>

#include "../step/overload.h"
#include "block.h"
#include "crossover/backend.h"
#include "crossover/cpu_threads.h"
#include "crossover/launches.h"
#include "crossover/memory.h"
#include "crossover/training.h"
#include "loops.h"
#include "probes.h"
#include "product.h"
#include "threads.h"

namespace crossover {
namespace cpu {
namespace {

/// Which part of the order is running.
struct Position {
  std::int64_t first_row;
  std::int64_t run;
};

/// One call of the step's list, and the number of threads that it runs on.
struct Kernel {
  OpCategory kind;
  int threads;
  std::function<void(const Position&, int threads)> call;
};

/// Where an operand lies; a view moves with the first row of the batch.
class Operand {
 public:
  Operand() = default;
  Operand(std::byte* base, std::int64_t row_bytes) : base_(base), row_bytes_(row_bytes) {}

  template <class T>
  [[nodiscard]] T* at(const Position& position) const {
    std::byte* from = base_ + position.first_row * row_bytes_;
    if constexpr (std::is_void_v<T>) {
      return from;
    } else {
      return reinterpret_cast<T*>(from);
    }
  }

 private:
  std::byte* base_ = nullptr;
  std::int64_t row_bytes_ = 0;
};

class CpuProgram : public Program {
 public:
  CpuProgram(const Workload& workload, const CompileOptions& options)
      : workload_(workload),
        options_(options),
        plan_(plan_memory(workload)),
        memory_(allocate(plan_.bytes, options.threads)),
        engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_) {
    flush_denormals(options.threads);
    for (const Step& step : workload_.steps) {
      kernels_.emplace_back();
      for (const Op& op : step.ops) {
        std::visit([this](const auto& o) { add_kernels(o); }, op);
      }
    }
    // One scratchpad for all products: they run one after another.
    std::int64_t scratchpad_bytes = 0;
    for (const auto& product : products_) {
      scratchpad_bytes = std::max(scratchpad_bytes, product->scratchpad_bytes());
    }
    scratchpad_ = allocate(scratchpad_bytes, options.threads);
    for (const auto& product : products_) {
      product->use_scratchpad(scratchpad_.get());
    }
  }

  void upload(Id id, std::span<const std::byte> from) override {
    const std::span<std::byte> to = storage(id, from.size());
    std::copy(from.begin(), from.end(), to.begin());
  }

  void download(Id id, std::span<std::byte> to) override {
    const std::span<std::byte> from = storage(id, to.size());
    std::copy(from.begin(), from.end(), to.begin());
  }

  void enqueue(std::int64_t first, std::int64_t count) override {
    for_each_kernel(first, count, [](const Kernel& kernel, const Position& position) {
      kernel.call(position, kernel.threads);
    });
  }

  void wait() override {}  // enqueue() returns when all is done

  [[nodiscard]] std::int64_t launches() const override {
    return std::accumulate(workload_.order.begin(), workload_.order.end(), std::int64_t{0},
                           [this](std::int64_t sum, const Run& run) {
                             return sum + std::ssize(kernels_[static_cast<std::size_t>(run.step)]);
                           });
  }

  Profile profile() override {
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    const Seconds of_clock = seconds_of_a_clock_reading();
    Profile profile;
    for_each_kernel(0, static_cast<std::int64_t>(workload_.order.size()),
                    [&](const Kernel& kernel, const Position& position) {
                      const auto start = Clock::now();
                      kernel.call(position, kernel.threads);
                      const Seconds spent = Clock::now() - start - of_clock;
                      profile[kernel.kind] += std::max(0.0, spent.count());
                    });
    return profile;
  }

 private:
  template <class Call>
  void for_each_kernel(std::int64_t first, std::int64_t count, const Call& call) {
    Threads threads(options_.threads);
    for (std::int64_t run = first; run < first + count; ++run) {
      const Run& what = workload_.order[static_cast<std::size_t>(run)];
      const Position position{what.first_row, run};
      for (const Kernel& kernel : kernels_[static_cast<std::size_t>(what.step)]) {
        threads.use(kernel.threads);
        call(kernel, position);
      }
    }
  }

  /// Pieces of a tiny network last little longer than the clock takes to read.
  static std::chrono::duration<double> seconds_of_a_clock_reading() {
    using Clock = std::chrono::steady_clock;
    constexpr int readings = 1000;
    const auto start = Clock::now();
    for (int i = 1; i < readings; ++i) {
      [[maybe_unused]] const volatile auto now = Clock::now().time_since_epoch().count();
    }
    return (Clock::now() - start) / readings;
  }

  std::span<std::byte> storage(Id id, std::size_t size) {
    const std::int64_t offset = plan_.offset.at(static_cast<std::size_t>(id));
    if (offset < 0 || static_cast<std::int64_t>(size) != bytes(workload_[id])) {
      throw std::invalid_argument("tensor '" + workload_[id].name + "' can't be copied in " +
                                  std::to_string(size) + " bytes");
    }
    return {memory_.get() + offset, size};
  }

  Operand operand(Id id) {
    if (id == none) {
      return {};
    }
    const Tensor& tensor = workload_[id];
    const bool view = tensor.role == Role::input;
    const std::int64_t offset = plan_.offset[static_cast<std::size_t>(view ? tensor.source : id)];
    return {memory_.get() + offset, view ? bytes(tensor) / tensor.shape[0] : 0};
  }

  [[nodiscard]] std::int64_t count(Id id) const { return elements(workload_[id].shape); }
  [[nodiscard]] std::int64_t rows(Id id) const { return leading(workload_[id].shape); }
  [[nodiscard]] Type type(Id id) const { return workload_[id].type; }

  [[nodiscard]] int threads_for_bytes(std::int64_t bytes) const {
    return static_cast<double>(bytes) >= bytes_worth_threads ? options_.threads : 1;
  }
  [[nodiscard]] int threads_for_floats(std::int64_t floats) const {
    return threads_for_bytes(floats * static_cast<std::int64_t>(sizeof(float)));
  }

  [[nodiscard]] int threads_for(Id id) const { return threads_for_bytes(bytes(workload_[id])); }

  void add_kernel(OpCategory kind, int threads, std::function<void(const Position&, int)> call) {
    kernels_.back().push_back({kind, threads, std::move(call)});
  }

  void add_product(const ProductShape& shape, Operand a, Operand b, Operand bias, Operand c) {
    if (const std::string missing = missing_for_products(options_.precision); !missing.empty()) {
      throw Unsupported(missing);
    }
    const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                         static_cast<double>(shape.k);
    const int threads = flops >= flops_worth_threads ? options_.threads : 1;
    const Threads made_for(threads);
    products_.push_back(std::make_shared<Product>(engine_, stream_, shape));
    add_kernel(OpCategory::product, threads,
               [=, product = products_.back()](const Position& now, int) {
                 product->execute(a.at<const void>(now), b.at<const void>(now),
                                  bias.at<const void>(now), c.at<void>(now));
               });
  }

  void add_kernels(const Linear& op) {
    const std::int64_t in = workload_[op.w].shape[1];
    const std::int64_t out = workload_[op.w].shape[0];
    add_product({.m = rows(op.x),
                 .n = out,
                 .k = in,
                 .a_strides = {in, 1},
                 .b_strides = {1, in},
                 .bias = op.bias != none,
                 .activation = op.activation,
                 .operand_type = type(op.x),
                 .result_type = type(op.y)},
                operand(op.x), operand(op.w), operand(op.bias), operand(op.y));
  }

  void add_kernels(const LinearGrad& op) {
    const std::int64_t in = workload_[op.w].shape[1];
    const std::int64_t out = workload_[op.w].shape[0];
    const std::int64_t batch = rows(op.x);
    const Operand dy = operand(op.dy);
    if (op.dx != none) {
      add_product({.m = batch,
                   .n = in,
                   .k = out,
                   .a_strides = {out, 1},
                   .b_strides = {in, 1},
                   .operand_type = type(op.x),
                   .result_type = type(op.dx)},
                  dy, operand(op.w), {}, operand(op.dx));
      if (op.x_activation != Activation::identity) {
        add_kernels(
            ActivateGrad{.y = op.x, .dy = op.dx, .dx = op.dx, .activation = op.x_activation});
      }
    }
    if (op.dbias != none) {
      with_float(type(op.dy), [&](auto zero) {
        using T = decltype(zero);
        add_kernel(OpCategory::elementwise, threads_for(op.dy),
                   [=, dbias = operand(op.dbias), accumulate = op.accumulate](const Position& now,
                                                                              int threads) {
                     column_sums(threads, dy.at<const T>(now), batch, out, accumulate,
                                 dbias.at<float>(now));
                   });
      });
    }
    add_product({.m = out,
                 .n = in,
                 .k = batch,
                 .a_strides = {1, out},
                 .b_strides = {in, 1},
                 .accumulate = op.accumulate,
                 .operand_type = type(op.x),
                 .result_type = type(op.dw)},
                dy, operand(op.x), {}, operand(op.dw));
  }

  void add_kernels(const Cast& op) {
    with_float(type(op.x), [&](auto from) {
      using From = decltype(from);
      with_float(type(op.y), [&](auto to) {
        using To = decltype(to);
        if constexpr (std::is_same_v<From, float> || std::is_same_v<To, float>) {
          add_kernel(OpCategory::elementwise, threads_for(op.x),
                     [x = operand(op.x), y = operand(op.y), n = count(op.x)](const Position& now,
                                                                             int threads) {
                       cast(threads, x.at<const From>(now), y.at<To>(now), n);
                     });
        }
      });
    });
  }

  void add_kernels(const Activate& op) {
    with_float(type(op.x), [&](auto zero) {
      using T = decltype(zero);
      add_kernel(OpCategory::elementwise, threads_for(op.x),
                 [x = operand(op.x), y = operand(op.y), activation = op.activation,
                  n = count(op.x)](const Position& now, int threads) {
                   cpu::activate(threads, activation, x.at<const T>(now), y.at<T>(now), n);
                 });
    });
  }

  void add_kernels(const ActivateGrad& op) {
    with_float(type(op.y), [&](auto zero) {
      using T = decltype(zero);
      add_kernel(OpCategory::elementwise, threads_for(op.y),
                 [y = operand(op.y), dy = operand(op.dy), dx = operand(op.dx),
                  activation = op.activation, n = count(op.y)](const Position& now, int threads) {
                   activate_grad(threads, activation, y.at<const T>(now), dy.at<const T>(now),
                                 dx.at<T>(now), n);
                 });
    });
  }

  void add_kernels(const Add& op) {
    with_float(type(op.y), [&](auto zero) {
      using T = decltype(zero);
      add_kernel(OpCategory::elementwise, threads_for(op.y),
                 [a = operand(op.a), b = operand(op.b), y = operand(op.y), n = count(op.y)](
                     const Position& now, int threads) {
                   cpu::add(threads, a.at<const T>(now), b.at<const T>(now), y.at<T>(now), n);
                 });
    });
  }

  void add_kernels(const SoftmaxCrossEntropy& op) {
    with_float(type(op.dlogits), [&](auto zero) {
      using T = decltype(zero);
      add_kernel(OpCategory::loss, threads_for(op.logits),
                 [logits = operand(op.logits), labels = operand(op.labels), loss = operand(op.loss),
                  dlogits = operand(op.dlogits), batch = workload_[op.logits].shape[0],
                  classes = workload_[op.logits].shape[1],
                  scale = static_cast<float>(op.scale)](const Position& now, int threads) {
                   loss.at<float>(now)[now.run] = softmax_cross_entropy(
                       threads, logits.at<const float>(now), labels.at<const std::int32_t>(now),
                       batch, classes, scale, dlogits.at<T>(now));
                 });
    });
  }

  /// Arrays of consecutive tensors that an optimizer treats alike: one pass instead of many.
  struct Span {
    std::vector<float*> arrays;  ///< parameters, gradients, then the optimizer's states
    std::int64_t count = 0;
    double weight_decay = 0;
  };

  std::vector<Span> spans_of(const std::vector<const std::vector<Id>*>& lists,
                             const std::vector<double>& weight_decay) {
    std::vector<Span> spans;
    for (std::size_t p = 0; p < lists[0]->size(); ++p) {
      Span span{.arrays = {},
                .count = count((*lists[0])[p]),
                .weight_decay = weight_decay.empty() ? 0 : weight_decay[p]};
      for (const auto* list : lists) {
        span.arrays.push_back(operand((*list)[p]).at<float>({}));
      }
      if (spans.empty() || !extend(spans.back(), span)) {
        spans.push_back(std::move(span));
      }
    }
    return spans;
  }

  /// Joins `next` to `span` where it begins right behind it, but for padding, in every array. The
  /// padding is zero in all of them and stays so.
  static bool extend(Span& span, const Span& next) {
    constexpr std::int64_t padding =
        MemoryPlan::alignment / static_cast<std::int64_t>(sizeof(float));
    const std::int64_t gap = (span.count + padding - 1) / padding * padding;
    for (std::size_t i = 0; i < span.arrays.size(); ++i) {
      if (span.arrays[i] + gap != next.arrays[i]) {
        return false;
      }
    }
    if (span.weight_decay != next.weight_decay) {
      return false;
    }
    span.count = gap + next.count;
    return true;
  }

  void add_kernels(const Sgd& op) {
    for (const Span& span : spans_of({&op.parameters, &op.gradients}, {})) {
      add_kernel(OpCategory::update, threads_for_floats(span.count),
                 [=, rate = static_cast<float>(op.learning_rate * op.gradient_factor)](
                     const Position&, int threads) {
                   cpu::sgd(threads, span.arrays[0], span.arrays[1], span.count, rate);
                 });
    }
  }

  void add_kernels(const AdamW& op) {
    auto* step = operand(op.step).at<std::int32_t>({});
    add_kernel(OpCategory::update, 1, [=](const Position&, int) { ++*step; });
    for (const Span& span :
         spans_of({&op.parameters, &op.gradients, &op.m, &op.v}, op.weight_decay)) {
      add_kernel(OpCategory::update, threads_for_floats(span.count),
                 [=](const Position&, int threads) {
                   const auto factors = adamw_factors<float>(op, span.weight_decay, *step);
                   cpu::adamw(threads, span.arrays[0], span.arrays[1], span.arrays[2],
                              span.arrays[3], span.count, factors);
                 });
    }
  }

  void add_kernels(const Gemm& op) {
    const std::int64_t m = workload_[op.c].shape[0];
    const std::int64_t n = workload_[op.c].shape[1];
    const std::int64_t k = workload_[op.a].shape[op.transpose_a ? 0 : 1];
    ProductShape shape{.m = m,
                       .n = n,
                       .k = k,
                       .a_strides = {k, 1},
                       .b_strides = {n, 1},
                       .operand_type = type(op.a),
                       .result_type = type(op.c)};
    if (op.transpose_a) {
      shape.a_strides = {1, m};
    }
    if (op.transpose_b) {
      shape.b_strides = {1, k};
    }
    add_product(shape, operand(op.a), operand(op.b), {}, operand(op.c));
  }

  const Workload workload_;
  const CompileOptions options_;
  const MemoryPlan plan_;
  const Block memory_;
  Block scratchpad_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<std::vector<Kernel>> kernels_;  ///< by step
  std::vector<std::shared_ptr<Product>> products_;
};

class CpuPlan : public Plan {
 public:
  CpuPlan(Workload workload, const CompileOptions& options)
      : workload_(std::move(workload)), options_(options) {}

  [[nodiscard]] std::int64_t bytes() const override { return plan_memory(workload_).bytes; }
  [[nodiscard]] std::int64_t launches() const override { return cpu_launches(workload_); }

  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    try {
      return std::make_unique<CpuProgram>(workload_, options_);
    } catch (const dnnl::error& error) {
      if (error.status == dnnl_out_of_memory) {
        throw OutOfMemory(error.what());
      }
      throw Unsupported(std::string("oneDNN: ") + error.what());
    }
  }

 private:
  const Workload workload_;
  const CompileOptions options_;
};

class CpuBackend : public Backend {
 public:
  [[nodiscard]] Description describe() const override {
    const dnnl_version_t* version = dnnl_version();
    return {.device = "cpu",
            .libraries = {
                {"onednn", std::to_string(version->major) + "." + std::to_string(version->minor) +
                               "." + std::to_string(version->patch)},
                {"onednn_isa", isa_name(dnnl::get_effective_cpu_isa())},
                {"openmp", std::to_string(_OPENMP)}}};
  }

  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return missing_for_products(precision);
  }

  [[nodiscard]] Workload optimize(Workload workload) const override {
    return fuse_update(fuse(std::move(workload)));
  }

  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& workload,
                                           const CompileOptions& options) const override {
    if (options.threads < 1) {
      throw std::invalid_argument("a CPU program needs at least one thread");
    }
    if (options.precision == Precision::tf32) {
      throw Unsupported(missing_for(options.precision));
    }
    allow_threads(options.threads);
    check(workload, options.precision);
    return std::make_unique<CpuPlan>(workload, options);
  }

  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    return cpu::make_probe(spec);
  }

 private:
  static std::string isa_name(dnnl::cpu_isa isa) {
    switch (isa) {
      case dnnl::cpu_isa::sse41:
        return "sse41";
      case dnnl::cpu_isa::avx:
        return "avx";
      case dnnl::cpu_isa::avx2:
        return "avx2";
      case dnnl::cpu_isa::avx2_vnni:
        return "avx2_vnni";
      case dnnl::cpu_isa::avx512_core:
        return "avx512_core";
      case dnnl::cpu_isa::avx512_core_vnni:
        return "avx512_core_vnni";
      case dnnl::cpu_isa::avx512_core_bf16:
        return "avx512_core_bf16";
      case dnnl::cpu_isa::avx512_core_fp16:
        return "avx512_core_fp16";
      case dnnl::cpu_isa::avx512_core_amx:
        return "avx512_core_amx";
      default:
        return "isa " + std::to_string(static_cast<int>(isa));
    }
  }
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<cpu::CpuBackend>(); }

}  // namespace crossover
