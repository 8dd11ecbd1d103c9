// SPDX-License-Identifier: Apache-2.0
// What the GPU computes: multiply-adds, the triad, products of matrices.
#include <span>

#include "../libraries/algorithms.h"
#include "../planning/plan.h"
#include "crossover/float16.h"
#include "probe_kernels.cuh"
#include "probes.h"

namespace crossover::cuda {
namespace {

ProbeMemory floats(std::int64_t count) {
  return {ProbeMemory::Place::device, count * static_cast<std::int64_t>(sizeof(float))};
}

class MultiplyAdd : public Piece {
 public:
  explicit MultiplyAdd(const FmaProbe& spec)
      : spec_(spec), expected_(spec.length), results_(floats(spec.values)) {}

  void prepare(cudaStream_t stream) override { results_.spoil(stream); }
  void issue(cudaStream_t stream) override {
    fma(stream, spec_.values, spec_.length, results_.floats());
  }
  void check(cudaStream_t stream) override {
    results_.look_at<float>(
        [this](std::span<const float> got, std::int64_t first) { expected_.check(got, first); },
        stream);
    results_.spoil(stream);
  }

 private:
  FmaProbe spec_;
  probe::ExpectedFma expected_;
  ProbeMemory results_;
};

class Triad : public Piece {
 public:
  explicit Triad(const TriadProbe& spec)
      : values_(spec.values), a_(floats(values_)), b_(floats(values_)), c_(floats(values_)) {}

  void prepare(cudaStream_t stream) override {
    fill_triad(stream, b_.floats(), c_.floats(), values_);
    a_.spoil(stream);
  }
  void issue(cudaStream_t stream) override {
    triad(stream, b_.floats(), c_.floats(), a_.floats(), values_);
  }
  void check(cudaStream_t stream) override {
    a_.look_at<float>(&probe::check_triad, stream);
    a_.spoil(stream);
  }

 private:
  std::int64_t values_;
  ProbeMemory a_, b_, c_;
};

/// Row-major A B is, in cuBLASLt's column-major terms, B' A'.
class Matrix : public Piece {
 public:
  explicit Matrix(const MatrixProbe& spec)
      : size_(spec.size),
        type_(storage_of(spec.precision)),
        expected_(size_),
        products_(make_cublaslt_library(spec.precision)),
        a_(matrix()),
        b_(matrix()),
        d_(matrix()),
        workspace_(allocate_device(workspace_for_products)) {}

  void prepare(cudaStream_t stream) override {
    fill_matrices(stream, type_, a_.get(), b_.get(), size_);
    const ProductForm form{.m = size_,
                           .n = size_,
                           .k = size_,
                           .alignment_a = alignment,
                           .alignment_b = alignment,
                           .alignment_d = alignment,
                           .factors = type_,
                           .result = type_};
    call_ = {form, {b_.get()}, {a_.get()}, {d_.get()}, {}, {}};
    constexpr bool fastest = false;
    products_.choose(call_, fastest, workspace(), stream);
    product_ = products_.made(call_);
    d_.spoil(stream);
  }
  void issue(cudaStream_t stream) override { product_->execute(stream, call_, workspace()); }
  void check(cudaStream_t stream) override {
    with_float(type_, [&](auto zero) {
      using T = decltype(zero);
      d_.look_at<T>(
          [this](std::span<const T> got, std::int64_t first) { expected_.check(got, first); },
          stream);
    });
    d_.spoil(stream);
  }

 private:
  static constexpr std::int64_t alignment = 256;  ///< cudaMalloc()'s, in bytes

  [[nodiscard]] ProbeMemory matrix() const {
    return {ProbeMemory::Place::device, size_ * size_ * bytes(type_)};
  }
  [[nodiscard]] Workspace workspace() const { return {workspace_.get(), workspace_for_products}; }

  std::int64_t size_;
  Type type_;
  probe::ExpectedProduct expected_;
  Products products_;
  CalledProduct call_;
  std::shared_ptr<const Product> product_;
  ProbeMemory a_, b_, d_;
  DeviceMemory workspace_;
};

}  // namespace

std::unique_ptr<Piece> make_piece(const FmaProbe& spec) {
  return std::make_unique<MultiplyAdd>(spec);
}
std::unique_ptr<Piece> make_piece(const TriadProbe& spec) { return std::make_unique<Triad>(spec); }
std::unique_ptr<Piece> make_piece(const MatrixProbe& spec) {
  return std::make_unique<Matrix>(spec);
}

}  // namespace crossover::cuda
