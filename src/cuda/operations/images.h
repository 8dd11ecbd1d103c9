// SPDX-License-Identifier: Apache-2.0
// What the rules of operations on images share. Shapes are plain: [batch, channels, height, width].
#pragma once

#include "../kernels/launch.h"
#include "crossover/step.h"

namespace crossover::cuda {

class StepPlanner;

/// An image that lies channels-last, as [rows, channels].
inline std::int64_t image_rows(const Shape& image) { return image[0] * image[2] * image[3]; }

/// The sums of a matrix over its rows: of a tall one in two launches, so that few columns occupy a
/// whole GPU.
void plan_column_sums(const Operand& matrix, const Operand& sums, std::int64_t rows,
                      std::int64_t columns, bool accumulate, StepPlanner& step);

}  // namespace crossover::cuda
