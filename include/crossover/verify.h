// SPDX-License-Identifier: Apache-2.0
// Verify, then time: a compiled training epoch against the reference, from the deterministic start.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "crossover/backend.h"
#include "crossover/dataset.h"
#include "crossover/reference.h"
#include "crossover/step.h"

namespace crossover {

/// The reference's results for the first steps of a training, which begins the epoch anew where it
/// has fewer.
struct Trajectory {
  std::vector<double> losses;                                  ///< one for each step computed
  std::vector<std::pair<Id, std::vector<double>>> parameters;  ///< after those steps
};

/// How many steps to verify: all of the epoch, or as many as `flops` operations of the reference
/// pay for; at least two, because only a second step sees the first one's gradients and update.
std::int64_t steps_to_verify(const Workload& workload, double flops);

/// Throws std::runtime_error where the training diverges (a loss that is not finite). `shares`: how
/// many steps of the Workload are one of the training, one after another; its loss is that of all
/// their rows.
/// `start_off`: each parameter starts off by up to so much of itself, at random by `seed`.
Trajectory reference_trajectory(const Workload& workload, const Dataset& dataset,
                                std::int64_t steps, std::int64_t shares = 1, double start_off = 0,
                                std::uint64_t seed = 0);

/// The first step up to its loss, and nothing else.
Workload forward_part(const Workload& workload, std::int64_t shares = 1);

/// The reference's loss of the first step, for which it computes no gradient. `shares` and what it
/// throws as in reference_trajectory().
double reference_first_loss(const Workload& workload, const Dataset& dataset,
                            std::int64_t shares = 1);

/// Each step's loss, relative; each parameter tensor, by the norm of the difference over its norm,
/// or, of a network with batch or layer normalization or attention, all of them together.
struct Tolerance {
  double loss = 0;
  double parameters = 0;
  std::vector<double>
      tensors;  ///< of each by itself, in the trajectory's order; empty: that of all
};

/// For f32, what PyTorch's own float32 meets with a margin on the catalogue's networks; AdamW
/// divides by the root of a squared gradient, which magnifies rounding where gradients are tiny.
/// Batch-normalized networks are chaotic: 1e-3 of the loss in f32, 2e-2 in coarser precisions.
/// Some parameters of normalized networks start at zero, are nothing but updates, and differ by
/// much of themselves; and the bias of attention's keys has no gradient but rounding, which AdamW
/// divides by its own size. So of these only the vector of all parameters is compared
/// (verify_operations() sees the rest).
/// Coarser precisions: twice the unit roundoff, which docs/evidence/verification.md derives. The
/// Workload tells bf16 and f16; tf32, which it does not show, must be said.
Tolerance tolerance_for(const Workload& workload, Precision precision = Precision::f32,
                        const Arithmetic& arithmetic = {});

/// The largest relative error of rounding a number: 2^-24 for f32, 2^-11 for tf32 and f16, 2^-8 for
/// bf16; 2^-10 for tf32 where factors are truncated.
double unit_roundoff(Precision precision, const Arithmetic& arithmetic = {});

struct Verification {
  std::int64_t steps = 0;     ///< verified
  std::int64_t steps_of = 0;  ///< of the epoch; `steps` where it has fewer
  Tolerance tolerance;
  double loss_error = 0;          ///< largest of all steps
  double parameter_error = 0;     ///< largest of all tensors, or of their vector
  std::int64_t undetermined = 0;  ///< steps whose update was not verified: verify_between_kinks()
};

/// The program and the reference disagree. what() names the step or the tensor.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
  Mismatch(const std::string& what, double relative_error, double allowed)
      : std::runtime_error(what), error(relative_error), tolerance(allowed) {}
  std::optional<double> error, tolerance;  ///< relative; none: not a matter of rounding
};

/// Runs the trajectory's steps from the start, and compares whole tensors. `precision` as in
/// tolerance_for(); the program's arithmetic() counts.
Verification verify(Program& program, const Workload& workload, const Trajectory& trajectory,
                    Precision precision = Precision::f32);

/// The same, with another tolerance.
Verification verify(Program& program, const Workload& workload, const Trajectory& trajectory,
                    const Tolerance& tolerance);

/// The same of a program that has just run them, in whatever pieces, each position at most once.
Verification verify_state(Program& program, const Workload& workload, const Trajectory& trajectory,
                          Precision precision = Precision::f32);

/// Runs the first step from the start, or that of each of the copies that the program runs at once,
/// and compares the first loss.
Verification verify_first_loss(Program& program, const Workload& workload, double expected,
                               Precision precision = Precision::f32);

/// For training that verify() rejects although every operation is right: where an input of a ReLU
/// lies within rounding of zero, float32 may see it on the other side, take another gradient, and
/// be just as right; an input of exactly zero counts where the program passes its gradient
/// (relu_passes_zero). Runs both again, step by step; after each step with such an input the
/// program continues from the reference's parameters and states. So every loss is verified, and
/// every update but those of such steps, of which `undetermined` counts. Throws Mismatch where
/// something differs in spite of that, where there is no such step, and where more than half of
/// them are. Of a program that runs a step of each of several copies at once, it continues so after
/// all of these steps, and the parameters of copies without such an input are compared.
/// `reference` has its data, and its Workload's activations stand by themselves (not fuse()d).
/// `shares` as in reference_trajectory().
Verification verify_between_kinks(Program& program, const Workload& workload, Reference& reference,
                                  std::int64_t steps, Precision precision = Precision::f32,
                                  std::int64_t shares = 1);

/// The same training at a learning rate of at least 0.01, at which updates are far more than what
/// rounding changes: what verify_operations() is to see.
Workload with_visible_updates(Workload workload);

/// A loss that may differ by so much, relative, is decided by rounding.
inline constexpr double most_of_loss = 1e-2;

/// What a training in f32 may differ by where rounding decides much of it, as in deep
/// normalized networks: three times as much as the trajectory does from those of five starts that
/// are off by up to 16 roundings. But of the parameters at most half of what the steps changed, of
/// the losses most_of_loss, and never less than tolerance_for(). Where parameters are compared
/// tensor by tensor, so is this; but a tensor that the steps hardly change in float64, by less than
/// 16 roundings of what they change in all, has no gradient but rounding, and may differ by what
/// the vector of all may. In coarser precisions it is tolerance_for(). The trajectory is cut short
/// before the first step, behind the second, whose loss would need more than that: what follows
/// says nothing of the program any more. Of `copies` that train at once it then has as many steps
/// of each.
Tolerance tolerance_of_roundings(const Workload& workload, const Dataset& dataset,
                                 Trajectory& trajectory, Precision precision = Precision::f32,
                                 std::int64_t shares = 1, std::int64_t copies = 1);

struct OperationVerification {
  std::int64_t operations = 0;  ///< of one step
  double tolerance = 0;         ///< largest of all tensors
  double error = 0;             ///< largest of all tensors, as verify_operations() takes it
  bool passes_at_zero = false;  ///< a gradient did at a ReLU's input of 0: see Arithmetic
};

/// Compares whatever each operation of the first steps wrote with what the reference makes of the
/// very tensors that the operation read in the program. So an error does not grow from operation to
/// operation, masks and places of maxima are those of the program, and a wrong gradient shows
/// where it is made, in every precision, however deep the network and however small the learning
/// rate. The program, compiled with keep_activations, has its data, as the reference has, whose
/// Workload is the one that was compiled. The error is the norm of the difference over the norm of
/// the result; of a tensor that is updated in place, over the norm of its change, to which the
/// rounding of what is stored is added; of another result in f32 that differs by more than its
/// tolerance, what rounding makes of sums whose terms cancel is added, too, and so is that of sums
/// in the same tensor that the step has updated since. Whole numbers must be equal. Throws Mismatch
/// that names operation and tensor.
OperationVerification verify_operations(Program& program, Reference& reference, std::int64_t steps,
                                        Precision precision);

/// The same of the order's first step alone, from what the tensors of both hold already.
OperationVerification verify_as_they_are(Program& program, Reference& reference,
                                         Precision precision);

/// What verify_operations() allows: 1e-4 for sums in float32, and what the precision's own rounding
/// of factors and results adds to it.
double tolerance_of_operation(Type stored, Precision precision, const Arithmetic& arithmetic = {});

/// Of a tensor that was updated in place, each entry by a sum of so many terms: the norm of a
/// difference that the rounding of its entries explains. Kernels may begin with what is stored and
/// add one term after the other, as oneDNN does with AVX2.
double rounding_of_update(std::span<const double> updated, double terms = 1);

struct TensorVerification {
  std::int64_t entries = 0;  ///< of the tensors compared, all of them
  double tolerance = 0;      ///< largest of all tensors
  double error = 0;          ///< largest of all tensors: norm of the difference over its norm
};

/// Of a result of a few operations: 1e-5 for sums in float32, and what the precision's own rounding
/// of factors adds to it, and that of the result where it is stored in 16 bits.
double tolerance_of_result(Type stored, Precision precision, const Arithmetic& arithmetic = {});

/// Of a forward_pass() of the network on the rows of the data set: what the reference makes of
/// them.
std::vector<double> reference_outputs(const Workload& forward, const Dataset& dataset);

/// What is allowed of outputs: tolerance_of_result(), times the root of the number of products and
/// convolutions that an output is behind, each of which rounds anew.
double tolerance_of_outputs(const Workload& forward, Precision precision = Precision::f32,
                            const Arithmetic& arithmetic = {});

/// Compares what the program has of its last pass with the outputs of the first rows of its batch,
/// all of them together. Throws Mismatch, also where any of the batch's outputs is not finite.
TensorVerification verify_outputs(Program& program, const Workload& forward,
                                  std::span<const double> expected,
                                  Precision precision = Precision::f32);

/// Compares every tensor that the operations of the reference's Workload write, whole, with what
/// the program, compiled for that precision, has of it. Throws Mismatch that names the tensor.
TensorVerification verify_results(Program& program, Reference& reference, Precision precision);

}  // namespace crossover
