// SPDX-License-Identifier: Apache-2.0
// What a CPU has of the probes: copies within its memory, arithmetic, memory, threads.
#include "probes.h"

#include <omp.h>

#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../probe/expected.h"
#include "../../step/overload.h"
#include "../base/threads.h"
#include "../plan/primitives.h"
#include "../run/program.h"
#include "crossover/backend.h"
#include "crossover/float16.h"
#include "crossover/memory.h"
#include "crossover/verify.h"

namespace crossover::cpu {

// ---- Matrix probe

namespace {

/// Row-major, by oneDNN, on as many threads as it takes.
class Matrix : public Probe {
 public:
  explicit Matrix(const MatrixProbe& spec)
      : spec_(spec),
        type_(storage_of(spec.precision)),
        expected_(spec.size),
        a_(matrix()),
        b_(matrix()),
        c_(matrix()),
        product_(make_product()) {
    with_float(type_, [this](auto zero) {
      using T = decltype(zero);
      for (std::int64_t i = 0; i < spec_.size * spec_.size; ++i) {
        at<T>(a_)[i] = narrowed<T>(probe::matrix_a(i / spec_.size, i % spec_.size));
        at<T>(b_)[i] = narrowed<T>(probe::matrix_b(i / spec_.size, i % spec_.size));
      }
    });
  }

  void run() override {
    const Threads threads(spec_.threads);
    product_->execute({});
  }

  void check() override {
    with_float(type_, [this](auto zero) {
      using T = const decltype(zero);
      expected_.check(std::span<T>(at<T>(c_), static_cast<std::size_t>(spec_.size * spec_.size)),
                      0);
    });
    clear(spec_.threads, c_.get(), matrix_bytes());
  }

 private:
  [[nodiscard]] std::int64_t matrix_bytes() const { return spec_.size * spec_.size * bytes(type_); }
  [[nodiscard]] Block matrix() const { return allocate(matrix_bytes(), spec_.threads); }
  template <class T>
  static T* at(const Block& block) {
    return reinterpret_cast<T*>(block.get());
  }

  std::unique_ptr<BoundPrimitive> make_product() {
    const Threads made_for(spec_.threads);
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const auto description = describe_product(engine, {.m = spec_.size,
                                                       .n = spec_.size,
                                                       .k = spec_.size,
                                                       .a_strides = {spec_.size, 1},
                                                       .b_strides = {spec_.size, 1},
                                                       .operand_type = type_,
                                                       .result_type = type_});
    scratchpad_ = allocate(scratchpad_bytes(description), spec_.threads);
    return std::make_unique<BoundPrimitive>(
        description, engine, dnnl::stream(engine),
        std::array{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        std::array{Operand(a_.get()), Operand(b_.get()), Operand(c_.get())}, scratchpad_.get());
  }

  MatrixProbe spec_;
  Type type_;
  probe::ExpectedProduct expected_;
  Block a_, b_, c_, scratchpad_;
  std::unique_ptr<BoundPrimitive> product_;
};

}  // namespace

std::unique_ptr<Probe> make_matrix_probe(const MatrixProbe& spec) {
  if (const std::string missing = missing_for_products(spec.precision); !missing.empty()) {
    throw Unsupported(missing);
  }
  allow_threads(spec.threads);
  return std::make_unique<Matrix>(spec);
}

// ---- The others

namespace {

constexpr std::int64_t float_bytes = sizeof(float);

/// memcpy() on the calling thread.
class Copy : public Probe {
 public:
  explicit Copy(const CopyProbe& spec)
      : bytes_(static_cast<std::size_t>(spec.bytes)),
        from_(allocate(spec.bytes, 1)),
        to_(allocate(spec.bytes, 1)) {
    probe::fill_pattern({from_.get(), bytes_}, 0, 0);
  }

  void run() override { std::memcpy(to_.get(), from_.get(), bytes_); }

  void check() override {
    probe::check_pattern({to_.get(), bytes_}, 0, 0);
    std::memset(to_.get(), probe::spoiled_byte, bytes_);
  }

 private:
  std::size_t bytes_;
  Block from_, to_;
};

class MultiplyAdd : public Probe {
 public:
  explicit MultiplyAdd(const FmaProbe& spec)
      : spec_(spec),
        blocks_((spec.values + fma_block - 1) / fma_block),
        results_(allocate(blocks_ * fma_block * float_bytes, spec.threads)),
        expected_(spec.length) {}

  void run() override {
    const Threads threads(spec_.threads);
#pragma omp parallel num_threads(spec_.threads)
    {
      const std::int64_t mine = omp_get_thread_num();
      const std::int64_t all = omp_get_num_threads();
      fma_(blocks_ * mine / all * fma_block, blocks_ * (mine + 1) / all * fma_block, spec_.length,
           results());
    }
  }

  void check() override {
    expected_.check({results(), static_cast<std::size_t>(spec_.values)}, 0);
    clear(spec_.threads, results_.get(), spec_.values * float_bytes);
  }

 private:
  [[nodiscard]] float* results() const { return reinterpret_cast<float*>(results_.get()); }

  FmaProbe spec_;
  FusedMultiplyAdds fma_ = best_fused_multiply_adds();
  std::int64_t blocks_;
  Block results_;
  probe::ExpectedFma expected_;
};

class Triad : public Probe {
 public:
  explicit Triad(const TriadProbe& spec) : spec_(spec), a_(make()), b_(make()), c_(make()) {
    for (std::int64_t i = 0; i < spec.values; ++i) {
      at(b_)[i] = probe::triad_b(i);
      at(c_)[i] = probe::triad_c(i);
    }
  }

  void run() override {
    const Threads threads(spec_.threads);
    split(spec_.threads, spec_.values,
          [a = at(a_), b = at(b_), c = at(c_)](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
              a[i] = b[i] + probe::triad_factor * c[i];
            }
          });
  }

  void check() override {
    probe::check_triad({at(a_), static_cast<std::size_t>(spec_.values)}, 0);
    clear(spec_.threads, a_.get(), spec_.values * float_bytes);
  }

 private:
  [[nodiscard]] Block make() const { return allocate(spec_.values * float_bytes, spec_.threads); }
  static float* at(const Block& block) { return reinterpret_cast<float*>(block.get()); }

  TriadProbe spec_;
  Block a_, b_, c_;
};

class ForkJoin : public Probe {
 public:
  explicit ForkJoin(const ForkJoinProbe& spec)
      : threads_(spec.threads), arrived_(static_cast<std::size_t>(spec.threads)) {}

  void run() override {
    const Threads threads(threads_);
#pragma omp parallel num_threads(threads_)
    { ++arrived_[static_cast<std::size_t>(omp_get_thread_num())].times; }
    ++runs_;
  }

  void check() override {
    for (const Line& thread : arrived_) {
      if (runs_ == 0 || thread.times != runs_) {
        throw Mismatch("of " + std::to_string(threads_) + " threads one has come " +
                       std::to_string(thread.times) + " times into " + std::to_string(runs_) +
                       " parallel regions");
      }
    }
    arrived_.assign(arrived_.size(), {});
    runs_ = 0;
  }

 private:
  /// A cache line of its own for each thread.
  struct alignas(MemoryPlan::alignment) Line {
    std::int64_t times = 0;
  };

  int threads_;
  std::vector<Line> arrived_;
  std::int64_t runs_ = 0;
};

}  // namespace

std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) {
  check(spec);
  return std::visit(
      Overload{[](const CopyProbe& probe) -> std::unique_ptr<Probe> {
                 if (probe.direction != Direction::host_to_host) {
                   throw Unsupported("the CPU copies within its own memory only");
                 }
                 if (probe.asynchronous || probe.memory != HostMemory::pageable) {
                   throw Unsupported(
                       "the CPU's copies are of pageable memory, and it does them itself");
                 }
                 return std::make_unique<Copy>(probe);
               },
               [](const FmaProbe& probe) -> std::unique_ptr<Probe> {
                 if (probe.precision != Precision::f32) {
                   throw Unsupported("the CPU's multiply-adds are measured in f32, not in " +
                                     to_string(probe.precision));
                 }
                 if (best_fused_multiply_adds() == nullptr) {
                   throw Unsupported("this processor has no fused multiply-add");
                 }
                 allow_threads(probe.threads);
                 return std::make_unique<MultiplyAdd>(probe);
               },
               [](const MatrixProbe& probe) -> std::unique_ptr<Probe> {
                 return make_matrix_probe(probe);
               },
               [](const TriadProbe& probe) -> std::unique_ptr<Probe> {
                 allow_threads(probe.threads);
                 return std::make_unique<Triad>(probe);
               },
               [](const ForkJoinProbe& probe) -> std::unique_ptr<Probe> {
                 allow_threads(probe.threads);
                 return std::make_unique<ForkJoin>(probe);
               },
               [](const auto& /*launch, graph, synchronize*/) -> std::unique_ptr<Probe> {
                 throw Unsupported(
                     "the CPU runs what it is called for at once: it has no kernels "
                     "to launch, no graphs and no streams");
               }},
      spec);
}

}  // namespace crossover::cpu
