// SPDX-License-Identifier: Apache-2.0
// How each operation runs on the GPU: its rule turns it into launches. One file of this folder for
// an operation or a close family.
#pragma once

#include "crossover/step.h"

namespace crossover::cuda {

class StepPlanner;

// Throw Unsupported where the library lacks what they can't do without.
void plan_operation(const Linear& linear, StepPlanner& step);
void plan_operation(const LinearGrad& grad, StepPlanner& step);
void plan_operation(const Cast& cast, StepPlanner& step);
void plan_operation(const Activate& activate, StepPlanner& step);
void plan_operation(const ActivateGrad& grad, StepPlanner& step);
void plan_operation(const Add& add, StepPlanner& step);
void plan_operation(const SoftmaxCrossEntropy& loss, StepPlanner& step);
void plan_operation(const Sgd& sgd, StepPlanner& step);
void plan_operation(const AdamW& adamw, StepPlanner& step);
void plan_operation(const Gemm& gemm, StepPlanner& step);

}  // namespace crossover::cuda
