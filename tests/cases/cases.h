// SPDX-License-Identifier: Apache-2.0
// The parts of operation_cases(): in f32, as they are.
#pragma once

#include <string>
#include <vector>

#include "operation_cases.h"

namespace crossover {

std::vector<OperationCase> convolution_cases();
std::vector<OperationCase> layer_cases();
std::vector<OperationCase> image_cases();
std::vector<OperationCase> sequence_cases();
std::vector<OperationCase> product_cases();

/// Of images x under a window, with that many channels.
Shape result_shape(const Shape& x, std::int64_t channels, const Window& window);

/// What a normalization has: all but what only that of a batch takes, and a layer's may lack.
struct NormHas {
  bool addend = false, more = false;
  bool mean = true, scale = true, shift = true, dx = true;
};

/// `op`: its kind, groups and activation.
OperationCase norm(Norm op, const Shape& x, const std::string& name, NormHas has = {});
OperationCase norm_grad(NormGrad op, const Shape& x, const std::string& name, NormHas has = {});
/// Both of them.
void add_norms(std::vector<OperationCase>& all, const Norm& op, const Shape& x,
               const std::string& name, NormHas has = {});

OperationCase max_pool(const Shape& x, const Window& window, const std::string& name,
                       const std::string& x_name = "x");

}  // namespace crossover
