// SPDX-License-Identifier: Apache-2.0
// Fits the training of a small network into one kernel: onto one multiprocessor or a cluster of
// them or, where it is too large for those, onto all by way of the L2 cache.
#pragma once

#include "crossover/backend.h"
#include "launches/persistent_plan.h"

namespace crossover::cuda {

/// Throws Unsupported, with the reason in words, where the Workload is no chain of Linear layers,
/// where the options ask for what one kernel can't do, or where it does not fit.
PersistentPlan plan_persistent(const Workload& workload, const CompileOptions& options,
                               const OnChip& chip);

/// The same for a kernel that is compiled for the network (kernels/tailored.cuh): one block or a
/// cluster, at most tailored::most_parameters.
PersistentPlan plan_tailored(const Workload& workload, const CompileOptions& options,
                             const OnChip& chip);

/// The steps that one kernel trains, where the options ask for nothing that it can't do. Throws
/// Unsupported.
std::vector<DenseStep> steps_of_one_kernel(const Workload& workload, const CompileOptions& options);

/// What the phases of a step are cut by.
enum class Phasing {
  overlapped,  ///< the gradients of a layer's weights are computed beside the gradient of the layer
               ///< before, for which three of those lie in memory at once
  separate,    ///< two
  spread,      ///< rows of the batch in several memories: the weights change in a phase of their
               ///< own at the end, before and after which those meet
};

/// The phases of a step, each with the barrier at its end, before anybody says how their products
/// are split.
/// `states`: that the optimizer has of a parameter; two: AdamW's.
std::vector<std::vector<Job>> phases_of(std::size_t layers, KernelRule rule, Phasing phasing);

/// The threads that work off a phase.
struct Team {
  TeamKind kind = TeamKind::block;
  int blocks = 1;
  int warps = 1;  ///< of a block

  /// Over which the rows of a batch are shared out.
  [[nodiscard]] int memories() const { return kind == TeamKind::cluster ? blocks : 1; }
};

/// Chooses how a team splits the jobs of a phase, and returns an estimate of the phase's time in
/// clock cycles, with its barrier. It decides nothing but speed. `rows` of the batch are in a
/// memory.
double split(std::vector<Job>& phase, const std::vector<OnChipLayer>& layers, int rows,
             const Team& team);

/// Where the kernel keeps what it works with.
struct PersistentLayout {
  std::vector<OnChipLayer> layers;
  OnChipPlaces places;
  std::int64_t bytes = 0;
};

/// What the kernel keeps of a row and of a parameter besides.
struct Kept {
  int states = 0;  ///< of the optimizer
  KernelRule rule = KernelRule::sgd;
  std::int64_t wanted = 1;  ///< numbers of a row: its label, or a target for each output
};

/// Of all steps.
Kept kept_of(const DenseStep& step);

/// See Kept::wanted.
std::int64_t wanted_of_row(const DenseStep& step);

/// Activations and their gradients share memory where no phase needs both.
PersistentLayout lay_out(const std::vector<DenseLayer>& layers, std::int64_t batch,
                         const Kept& kept, const std::vector<std::vector<Job>>& phases);

}  // namespace crossover::cuda
