// SPDX-License-Identifier: Apache-2.0
#include "matrix_probe.h"

#include <array>
#include <span>
#include <string>

#include "../probe/expected.h"
#include "block.h"
#include "crossover/backend.h"
#include "crossover/float16.h"
#include "primitive.h"
#include "product.h"
#include "threads.h"

namespace crossover::cpu {
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

}  // namespace crossover::cpu
