// SPDX-License-Identifier: Apache-2.0
// A library of products that has less than cuBLASLt's manual promises, as real ones may.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cuda_host.h"
#include "libraries/library.h"

namespace crossover::test {

/// What is refused, by shape, types, alignment, epilogue. An empty function refuses nothing.
struct Refusals {
  std::string name;
  std::function<bool(const cuda::ProductForm&)> proposes_none;
  /// Algorithms that are proposed and don't run.
  std::function<bool(const cuda::ProductForm&, int algorithm)> fails;

  friend std::ostream& operator<<(std::ostream& out, const Refusals& refusals) {
    return out << refusals.name;
  }
};

/// The emulated cuBLASLt but for what is refused.
class RefusingLibrary : public cuda::ProductLibrary {
 public:
  RefusingLibrary(Precision precision, Refusals refusals)
      : library_(cuda::make_cublaslt_library(precision)), refusals_(std::move(refusals)) {}

  [[nodiscard]] int algorithms(const cuda::ProductForm& form) override {
    const bool none = refusals_.proposes_none && refusals_.proposes_none(form);
    return none ? 0 : library_->algorithms(form);
  }

  [[nodiscard]] std::unique_ptr<cuda::Product> make(const cuda::CalledProduct& of,
                                                    int algorithm) override {
    if (refusals_.fails && refusals_.fails(of.form, algorithm)) {
      return std::make_unique<Failing>();
    }
    return library_->make(of, algorithm);
  }

 private:
  class Failing : public cuda::Product {
    void execute(cudaStream_t /*stream*/, const cuda::CalledProduct& /*of*/,
                 const cuda::Workspace& /*workspace*/) const override {
      throw std::runtime_error("refused when run");
    }
  };

  std::unique_ptr<cuda::ProductLibrary> library_;
  Refusals refusals_;
};

}  // namespace crossover::test
