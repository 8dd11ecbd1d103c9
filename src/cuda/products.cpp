// SPDX-License-Identifier: Apache-2.0
#include "products.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>

#include "timing.h"

namespace crossover::cuda {
namespace {

Unsupported none_for(const ProductForm& form) {
  return Unsupported("cuBLASLt has no algorithm for " + to_string(form));
}

/// So that a small product takes longer than the difference that events can tell.
int repeats(const ProductForm& form) {
  constexpr double flops = 1e9;
  constexpr double most = 8;
  const double of_one =
      2.0 * static_cast<double>(form.m) * static_cast<double>(form.n) * static_cast<double>(form.k);
  return static_cast<int>(std::clamp(flops / of_one, 1.0, most));
}

/// All have run before: code is loaded at its first call, which a capture does not allow
/// everywhere.
std::size_t fastest(const std::vector<std::unique_ptr<Product>>& products, const ProductForm& form,
                    const ProductOperands& operands, cudaStream_t stream) {
  std::vector<std::function<void()>> pieces;
  pieces.reserve(products.size());
  for (const auto& product : products) {
    pieces.emplace_back([&product = *product, &operands, stream, times = repeats(form)] {
      for (int time = 0; time < times; ++time) {
        execute(product, operands, stream);
      }
    });
  }
  const std::vector<double> seconds = device_seconds(stream, pieces);
  return static_cast<std::size_t>(
      std::distance(seconds.begin(), std::min_element(seconds.begin(), seconds.end())));
}

}  // namespace

void execute(const Product& product, const ProductOperands& operands, cudaStream_t stream) {
  product.execute(stream, operands.a, operands.b, operands.d, operands.workspace,
                  operands.workspace_bytes);
}

std::vector<int>& Products::left(const ProductForm& form) {
  const auto [at, is_new] = left_.try_emplace(form);
  if (is_new) {
    at->second.resize(static_cast<std::size_t>(library_->algorithms(form)));
    std::iota(at->second.begin(), at->second.end(), 0);
  }
  return at->second;
}

void Products::choose(const ProductForm& form, const ProductOperands& operands, cudaStream_t stream,
                      ProductChoice how) {
  if (!chosen_.insert(form).second) {
    return;
  }
  if (!supports(form)) {
    throw none_for(form);
  }
  std::vector<int> running;
  std::vector<std::unique_ptr<Product>> products;
  std::string why;
  for (const int algorithm : left(form)) {
    auto product = library_->make(form, algorithm, operands.vector, operands.mask);
    try {
      execute(*product, operands, stream);
    } catch (const DeviceFailed&) {
      throw;
    } catch (const OutOfMemory&) {
      throw;
    } catch (const std::runtime_error& refused) {
      why = refused.what();
      continue;
    }
    running.push_back(algorithm);
    products.push_back(std::move(product));
    if (how == ProductChoice::heuristic) {
      break;
    }
  }
  left(form) = running;
  if (running.empty()) {
    throw NoneRuns("none of cuBLASLt's algorithms runs " + to_string(form) + ": " + why);
  }
  if (running.size() > 1) {
    left(form) = {running[fastest(products, form, operands, stream)]};
  }
}

std::unique_ptr<Product> Products::make(const ProductForm& form, const void* vector,
                                        const void* mask) {
  if (!supports(form)) {
    throw none_for(form);
  }
  return library_->make(form, left(form).front(), vector, mask);
}

}  // namespace crossover::cuda
