// SPDX-License-Identifier: Apache-2.0
// By which of its library's algorithms a program multiplies.
#pragma once

#include <memory>
#include <set>

#include "algorithms.h"
#include "crossover/backend.h"
#include "product_library.h"

namespace crossover::cuda {

class Products {
 public:
  explicit Products(std::unique_ptr<ProductLibrary> library)
      : library_(std::move(library)), algorithms_("cuBLASLt", [this](const ProductForm& form) {
          return library_->algorithms(form);
        }) {}

  /// Whether an algorithm is left for the form.
  [[nodiscard]] bool supports(const ProductForm& form) { return !algorithms_.left(form).empty(); }

  /// Takes for the form the library's best guess that runs, or the fastest of all that do, of
  /// equals the one that it ranks higher. Runs them on these operands, which it writes to like the
  /// product itself. Does nothing for a form that it has chosen for. Throws NoneRuns.
  void choose(const ProductForm& form, const ProductOperands& operands, cudaStream_t stream,
              ProductChoice how);

  /// By the algorithm that was chosen. Throws Unsupported where the library has none.
  [[nodiscard]] std::unique_ptr<Product> make(const ProductForm& form, const void* vector,
                                              const void* mask);

 private:
  std::unique_ptr<ProductLibrary> library_;
  Algorithms<ProductForm, Product> algorithms_;
  std::set<ProductForm> chosen_;
};

void execute(const Product& product, const ProductOperands& operands, cudaStream_t stream);

}  // namespace crossover::cuda
