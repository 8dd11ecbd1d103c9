// SPDX-License-Identifier: Apache-2.0
// What a step puts into the stream, as data: the planner decides it, tests read it, bind.h makes
// calls of it. Needs no CUDA. Each family of launches stands beside its kernels.
#pragma once

#include <variant>

#include "../libraries/forms.h"
#include "../libraries/sum_over_ranks.h"
#include "attention.h"
#include "batch_norm.h"
#include "elementwise.h"
#include "group_norm.h"
#include "loss.h"
#include "matmul.h"
#include "multiply.h"
#include "optimizer.h"
#include "pool.h"
#include "rearrange.h"
#include "reduction.h"
#include "sequence.h"

namespace crossover::cuda {

using Launch = std::variant<
    ProductLaunch, BiasActivateLaunch, CastLaunch, ActivateLaunch, ActivateGradLaunch, AddLaunch,
    ColumnSumsLaunch, RowSumsLaunch, LossLaunch, MeanLossLaunch, AdvanceLaunch, UpdateLaunch,
    AdamWTimeLaunch, ConvolutionLaunch, ChannelBiasLaunch, BatchNormStatisticsLaunch,
    BatchNormMomentsLaunch, BatchNormLaunch, BatchNormGradSumsLaunch, BatchNormGradTotalsLaunch,
    BatchNormGradLaunch, PoolLaunch, PoolGradLaunch, GlobalAveragePoolLaunch,
    GlobalAveragePoolGradLaunch, ReshapeLaunch, CountLaunch, DropoutLaunch, EmbeddingLaunch,
    EmbeddingGradLaunch, PositionEmbeddingLaunch, PositionEmbeddingGradLaunch, AttentionLaunch,
    AttentionGradQueriesLaunch, AttentionGradKeysLaunch, SdpaLaunch, ZeroLaunch, GatesLaunch,
    GatesGradLaunch, ElementwiseLossLaunch, RearrangeLaunch, MultiplyLaunch, MultiplySumsLaunch,
    MatmulLaunch, SoftmaxLaunch, SoftmaxGradLaunch, GroupNormLaunch, GroupNormGradLaunch,
    GroupNormGradSumsLaunch, SumLaunch, SumsEndLaunch, MapLaunch, MapGradLaunch>;

}  // namespace crossover::cuda
