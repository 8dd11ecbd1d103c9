// SPDX-License-Identifier: Apache-2.0
// What a step puts into the stream, as data: the planner decides it, tests read it, bind.h makes
// calls of it. Needs no CUDA. Each family of launches stands beside its kernels.
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "../forms.h"
#include "attention.h"
#include "crossover/operation.h"
#include "elementwise.h"
#include "loss.h"
#include "normalization.h"
#include "operand.h"
#include "optimizer.h"
#include "pool.h"
#include "sequence.h"

namespace crossover::cuda {

// ---- Sums over ranks

/// What an AllReduce becomes. In the second stream where it is `beside` what comes next.
struct SumLaunch {
  /// Tensors that lie one after another, and the padding between them: zeros on all ranks.
  struct Span {
    Operand first;
    std::int64_t count = 0;
  };
  std::vector<Span> spans;
  bool beside = false;
  static constexpr OpCategory category = OpCategory::communication;
};

/// What comes next waits for all sums in the second stream.
struct SumsEndLaunch {
  static constexpr OpCategory category = OpCategory::communication;
};

// ---- All launches

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
    GroupNormGradSumsLaunch, SumLaunch, SumsEndLaunch, MapLaunch, MapGradLaunch, ResampleLaunch>;

template <class Launched, class... Kinds>
constexpr bool is_one_of = (std::is_same_v<Launched, Kinds> || ...);

/// Whether one can do the same for each of several networks (Site::networks): those that dense
/// networks are made of.
template <class Launched>
constexpr bool takes_networks =
    is_one_of<Launched, ProductLaunch, BiasActivateLaunch, CastLaunch, ActivateLaunch,
              ActivateGradLaunch, MapLaunch, MapGradLaunch, AddLaunch, ColumnSumsLaunch,
              RowSumsLaunch, LossLaunch, ElementwiseLossLaunch, MeanLossLaunch, AdvanceLaunch,
              UpdateLaunch, AdamWTimeLaunch, ZeroLaunch, CountLaunch, DropoutLaunch>;

}  // namespace crossover::cuda
