// SPDX-License-Identifier: Apache-2.0
// Which operations a GPU runs fastest. Needs no CUDA.
#include <cstdint>
#include <utility>

#include "crossover/launches.h"
#include "crossover/training.h"

namespace crossover {
namespace {

/// A weight that is updated in the product saves 8 bytes of traffic: its gradient is neither stored
/// nor read. Its layer loses the epilogue that sums the bias gradient, which becomes a launch: an
/// estimate of 2 us, in which 4.8 TB/s (an H200's memory by its data sheet) move 9.6 MB.
constexpr std::int64_t least_weights = std::int64_t{1} << 20;

}  // namespace

Workload optimize_for_cuda(Workload workload, const CompileOptions& options) {
  workload = fuse(std::move(workload));
  // In 16 bits the optimizer also writes what products read; and one kernel for the whole order
  // takes all layers alike.
  const bool in_products =
      stored_precision(workload) == Precision::f32 && options.execution != Execution::persistent;
  return in_products ? fuse_update(std::move(workload), least_weights) : workload;
}

}  // namespace crossover
