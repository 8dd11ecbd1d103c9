// SPDX-License-Identifier: Apache-2.0
// How the CPU runs each operation: a function for each adds the operation's kernels. One that is
// missing here does not compile in lower.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <type_traits>
#include <vector>

#include "../plan/lowering.h"
#include "crossover/backend.h"
#include "crossover/step.h"

namespace crossover::cpu {

/// work(true or false, as a type): a kernel of its own for each.
template <class Work>
void with_bool(bool is, const Work& work) {
  is ? work(std::true_type{}) : work(std::false_type{});
}

void lower(const Linear& op, Lowering& to);
void lower(const LinearGrad& op, Lowering& to);
void lower(const Cast& op, Lowering& to);
void lower(const Activate& op, Lowering& to);
void lower(const ActivateGrad& op, Lowering& to);
void lower(const Add& op, Lowering& to);
void lower(const SoftmaxCrossEntropy& op, Lowering& to);
void lower(const ElementwiseLoss& op, Lowering& to);
void lower(const Update& op, Lowering& to);
void lower(const Gemm& op, Lowering& to);
void lower(const Convolution& op, Lowering& to);
void lower(const ConvolutionGrad& op, Lowering& to);
void lower(const ChannelBiasGrad& op, Lowering& to);
void lower(const Pool& op, Lowering& to);
void lower(const PoolGrad& op, Lowering& to);
void lower(const Resample& op, Lowering& to);
void lower(const Dropout& op, Lowering& to);
void lower(const DropoutGrad& op, Lowering& to);
void lower(const Embedding& op, Lowering& to);
void lower(const EmbeddingGrad& op, Lowering& to);
void lower(const PositionEmbedding& op, Lowering& to);
void lower(const PositionEmbeddingGrad& op, Lowering& to);
void lower(const Norm& op, Lowering& to);
void lower(const NormGrad& op, Lowering& to);
void lower_of_images(const Norm& op, Lowering& to);  ///< of batches and groups
void lower_of_images(const NormGrad& op, Lowering& to);
void lower(const Attention& op, Lowering& to);
void lower(const AttentionGrad& op, Lowering& to);
void lower(const Recurrent& op, Lowering& to);
void lower(const RecurrentGrad& op, Lowering& to);
void lower(const Reshape& op, Lowering& to);
void lower(const Rearrange& op, Lowering& to);
void lower(const Multiply& op, Lowering& to);
void lower(const MultiplyGrad& op, Lowering& to);
void lower(const Map& op, Lowering& to);
void lower(const MapGrad& op, Lowering& to);
void lower(const Softmax& op, Lowering& to);
void lower(const SoftmaxGrad& op, Lowering& to);
void lower(const Matmul& op, Lowering& to);
void lower(const AllReduce& op, Lowering& to);
void lower(const Zero& op, Lowering& to);

// ---- What some of them share.

/// Adds a kernel, the gradient of a bias: sums [columns] (+)= the sums of a tensor, seen as a
/// matrix [leading, columns], over its rows. `sums` is f32.
void add_column_sums(Lowering& to, Id matrix, Id sums, bool accumulate);

/// Consecutive tensors of each array that an optimizer treats alike, which become one pass instead
/// of many. They lie in parallel: element i of each array belongs to element i of the first.
/// Padding between and within tensors is zero in all arrays; an update must keep it so.
struct UpdateSpan {
  std::vector<Id> first;    ///< of each array: parameters, gradients, then the optimizer's states
  Layout layout;            ///< of all of them
  std::int64_t floats = 0;  ///< of one array, padding included
  double weight_decay = 0;

  [[nodiscard]] int threads(const Lowering& to) const {
    return to.threads_for_bytes(static_cast<double>(floats) * sizeof(float));
  }
};

/// Joins the parameters that lie one after another and have the same weight decay. `weight_decay`
/// may be empty: none.
std::vector<UpdateSpan> update_spans(Lowering& to,
                                     const std::vector<const std::vector<Id>*>& arrays,
                                     const std::vector<double>& weight_decay);

/// All steps of a Workload that does check(). Where oneDNN has a say in a layout it is asked, which
/// makes descriptions for `engine`, but neither code nor memory. `execution`: eager, winograd or
/// overlapped. `ranks`: where the Workload sums over them. Throws Unsupported, dnnl::error.
LoweredWorkload lower(const Workload& workload, int threads, const dnnl::engine& engine,
                      const std::map<Id, Layout>& settled = {},
                      Execution execution = Execution::eager, Ranks* ranks = nullptr);

}  // namespace crossover::cpu
