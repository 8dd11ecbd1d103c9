// SPDX-License-Identifier: Apache-2.0
// By which of its library's algorithms a program multiplies: one that runs, or the fastest.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "crossover/backend.h"
#include "product_library.h"

namespace crossover::cuda {

/// The library proposed algorithms for a form, and none of them runs. Whoever plans again knows.
struct NoneRuns : Unsupported {
  using Unsupported::Unsupported;
};

class Products {
 public:
  explicit Products(std::unique_ptr<ProductLibrary> library) : library_(std::move(library)) {}

  /// Whether an algorithm is left for the form.
  [[nodiscard]] bool supports(const ProductForm& form) { return !left(form).empty(); }

  /// Takes for the form the library's best guess that runs, or the fastest of all that do, of
  /// equals the one that it ranks higher. Runs them on these operands, which it writes to like the
  /// product itself. Does nothing for a form that it has chosen for. Throws NoneRuns.
  void choose(const ProductForm& form, const ProductOperands& operands, cudaStream_t stream,
              ProductChoice how);

  /// By the algorithm that was chosen. Throws Unsupported where the library has none.
  [[nodiscard]] std::unique_ptr<Product> make(const ProductForm& form, const void* vector,
                                              const void* mask);

 private:
  /// Numbers of algorithms, the best guess first.
  std::vector<int>& left(const ProductForm& form);

  std::unique_ptr<ProductLibrary> library_;
  std::map<ProductForm, std::vector<int>> left_;
  std::set<ProductForm> chosen_;
};

void execute(const Product& product, const ProductOperands& operands, cudaStream_t stream);

}  // namespace crossover::cuda
