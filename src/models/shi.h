// SPDX-License-Identifier: Apache-2.0
// What the networks of Shi et al. 2016 have in common.
#pragma once

#include "crossover/catalogue.h"

namespace crossover {

/// Trained by SGD on generated data: four batches of rows, since their tables give seconds per
/// mini-batch.
Task shi_task(const Model& model, std::int64_t batch, double learning_rate);

}  // namespace crossover
