// SPDX-License-Identifier: Apache-2.0
// How a network that was compiled for a target is compared with a reference.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "crossover/verify.h"
#include "families/training/references.h"

namespace crossover::bench {

/// A network compiled for a target.
struct CompiledNetwork {
  Workload workload;  ///< of an iteration, as it was compiled
  std::unique_ptr<Program> program;
};

/// One that trains.
struct TrainingProgram : CompiledNetwork {
  double first_loss = 0;  ///< mean of the steps of the first iteration

  [[nodiscard]] std::int64_t steps() const { return std::ssize(workload.order); }
  /// Throws std::runtime_error where a loss or a parameter is not finite.
  void require_finite() const;
  /// Trains so many steps from the deterministic start, at most those of an iteration.
  [[nodiscard]] FirstSteps first_steps(std::int64_t count) const;
  /// Whether it comes to what a verified instance came to, within the tolerances of verification.
  [[nodiscard]] bool reproduces(const FirstSteps& verified, Precision precision) const;
};

/// The forward pass of a batch.
struct ForwardProgram : CompiledNetwork {
  Precision precision = Precision::f32;
  std::vector<double> expected;  ///< outputs of the first rows, by the reference

  /// Throws Mismatch where its outputs are not those that are expected.
  [[nodiscard]] TensorVerification verified() const;
};

/// The same share after share, where losses and parameters of so many ranks must be those.
std::optional<Subject> by_shares(const Subject& subject, int ranks);

/// Of the very program that will be timed its steps, or its first loss and then steps of a smaller
/// batch in a program of their own; and each operation, in one that keeps all tensors. `expected`:
/// the subject, or by_shares() of it. Throws Mismatch.
RowVerification verified(TrainingProgram& made, const Subject& subject, const Subject& expected,
                         const Target& target, const Result& result, References& references);

}  // namespace crossover::bench
