// SPDX-License-Identifier: Apache-2.0
// How each operation runs on the GPU: its rule turns it into launches. One file of this folder for
// each theme.
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
void plan_operation(const ElementwiseLoss& loss, StepPlanner& step);
void plan_operation(const Update& op, StepPlanner& step);
void plan_operation(const Gemm& gemm, StepPlanner& step);
void plan_operation(const Convolution& op, StepPlanner& step);
void plan_operation(const ConvolutionGrad& op, StepPlanner& step);
void plan_operation(const ChannelBiasGrad& op, StepPlanner& step);
void plan_operation(const Pool& op, StepPlanner& step);
void plan_operation(const PoolGrad& op, StepPlanner& step);
void plan_operation(const Resample& op, StepPlanner& step);
void plan_operation(const Dropout& op, StepPlanner& step);
void plan_operation(const DropoutGrad& op, StepPlanner& step);
void plan_operation(const Embedding& op, StepPlanner& step);
void plan_operation(const EmbeddingGrad& op, StepPlanner& step);
void plan_operation(const PositionEmbedding& op, StepPlanner& step);
void plan_operation(const PositionEmbeddingGrad& op, StepPlanner& step);
void plan_operation(const Norm& op, StepPlanner& step);
void plan_operation(const NormGrad& op, StepPlanner& step);
void plan_operation(const Attention& op, StepPlanner& step);
void plan_operation(const AttentionGrad& op, StepPlanner& step);
void plan_operation(const Recurrent& op, StepPlanner& step);
void plan_operation(const RecurrentGrad& op, StepPlanner& step);
void plan_operation(const Reshape& op, StepPlanner& step);
void plan_operation(const Rearrange& op, StepPlanner& step);
void plan_operation(const Multiply& op, StepPlanner& step);
void plan_operation(const MultiplyGrad& op, StepPlanner& step);
void plan_operation(const Map& map, StepPlanner& step);
void plan_operation(const MapGrad& grad, StepPlanner& step);
void plan_operation(const Softmax& op, StepPlanner& step);
void plan_operation(const SoftmaxGrad& op, StepPlanner& step);
void plan_operation(const Matmul& op, StepPlanner& step);
void plan_operation(const AllReduce& op, StepPlanner& step);
void plan_operation(const Zero& zero, StepPlanner& step);

}  // namespace crossover::cuda
