// SPDX-License-Identifier: Apache-2.0
#include "autotune.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

#include "timing.h"

namespace crossover::cuda {
namespace {

/// So that a small product takes longer than the difference that events can tell.
int repeats(const ProductForm& form) {
  constexpr double flops = 1e9;
  constexpr double most = 8;
  const double of_one =
      2.0 * static_cast<double>(form.m) * static_cast<double>(form.n) * static_cast<double>(form.k);
  return static_cast<int>(std::clamp(flops / of_one, 1.0, most));
}

}  // namespace

void autotune(ProductLibrary& library, const ProductForm& form, const ProductOperands& operands,
              cudaStream_t stream) {
  const std::size_t count = library.candidates(form).size();
  if (count < 2) {
    return;
  }
  std::vector<Product> products;
  for (std::size_t candidate = 0; candidate < count; ++candidate) {
    products.emplace_back(library, form, operands.vector, operands.mask, candidate);
  }
  const auto execute = [&](const Product& product) {
    product.execute(stream, operands.a, operands.b, operands.d, operands.workspace,
                    operands.workspace_bytes);
  };
  // Code is loaded at its first call, which a capture does not allow everywhere.
  std::for_each(products.begin(), products.end(), execute);
  std::vector<std::function<void()>> pieces;
  pieces.reserve(count);
  for (const Product& product : products) {
    pieces.emplace_back([&execute, &product, times = repeats(form)] {
      for (int time = 0; time < times; ++time) {
        execute(product);
      }
    });
  }
  const std::vector<double> seconds = device_seconds(stream, pieces);
  const auto fastest = std::min_element(seconds.begin(), seconds.end());
  library.keep(form, static_cast<std::size_t>(std::distance(seconds.begin(), fastest)));
}

}  // namespace crossover::cuda
