// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>

#include "../step_planner.h"
#include "operations.h"

namespace crossover::cuda {

// ---- Softmax cross entropy

namespace {

constexpr int threads_of_a_warp = 32;

/// Threads for each row. A row of many classes takes a block, as large as has something to do, and
/// as keeps a GPU busy: with many rows, smaller ones do, or warps.
int threads_of_a_row(std::int64_t rows, std::int64_t classes) {
  constexpr std::int64_t few_classes = 16;
  constexpr std::int64_t at_once = 4;                      // classes, by one load
  constexpr std::int64_t busy = std::int64_t{128} * 2048;  // threads, on as many multiprocessors
  constexpr std::int64_t smallest_block = 128;             // or a warp does as well
  constexpr std::int64_t largest_block = 1024;
  if (classes <= few_classes) {
    return 1;
  }
  const std::int64_t wanted = std::min({classes / at_once, busy / rows, largest_block});
  return wanted < smallest_block
             ? threads_of_a_warp
             : static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(wanted)));
}

/// A small batch takes one launch, of one block.
bool fits_into_one_block(std::int64_t rows, int threads) {
  constexpr std::int64_t turns = 4;  // of rows, by all 256 threads
  return threads <= threads_of_a_warp && rows * threads <= turns * 256;
}

}  // namespace

/// Logits [batch, classes], or [time, batch, classes] with labels [batch, time].
void plan_operation(const SoftmaxCrossEntropy& loss, StepPlanner& step) {
  const Shape& shape = step.shape(loss.logits);
  const std::int64_t rows = step.rows(loss.logits);
  const int threads = threads_of_a_row(rows, shape.back());
  const bool in_one_block = fits_into_one_block(rows, threads);
  const bool advance = step.is_last_of_its_kind();
  step.emit(LossLaunch{.logits = step.operand(loss.logits),
                       .labels = step.operand(loss.labels),
                       .loss = step.operand(loss.loss),
                       .dlogits = step.operand(loss.dlogits),
                       .rows = rows,
                       .classes = shape.back(),
                       .time = shape.size() == 3 ? shape[0] : 1,
                       .factor = static_cast<float>(loss.scale) / static_cast<float>(rows),
                       .advance = advance && in_one_block,
                       .threads = threads,
                       .in_one_block = in_one_block});
  if (!in_one_block) {
    step.emit(MeanLossLaunch{step.operand(loss.loss), rows, rows, advance});
  }
}

// ---- One launch of one block for a small batch; else one of many blocks and one that sums what
// each of them has summed.

void plan_operation(const ElementwiseLoss& loss, StepPlanner& step) {
  const std::int64_t count = step.count(loss.logits);
  const std::int64_t parts = loss_parts(count);
  const bool advance = step.is_last_of_its_kind();
  step.emit(
      ElementwiseLossLaunch{.logits = step.operand(loss.logits),
                            .targets = step.operand(loss.targets),
                            .loss = step.operand(loss.loss),
                            .dlogits = step.operand(loss.dlogits),
                            .function = loss.function,
                            .count = count,
                            .parts = parts,
                            .factor = static_cast<float>(loss.scale / static_cast<double>(count)),
                            .advance = advance && parts == 1});
  if (parts > 1) {
    step.emit(MeanLossLaunch{step.operand(loss.loss), parts, count, advance});
  }
}

}  // namespace crossover::cuda
