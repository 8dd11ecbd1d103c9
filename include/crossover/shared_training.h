// SPDX-License-Identifier: Apache-2.0
// One training by all ranks. Rank 0 sees a Program of the whole batch: it uploads the whole data
// set, downloads the loss of the whole batch, and so verifies it as if it ran alone. What it asks
// of its Program the others do with theirs: follow().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "crossover/backend.h"
#include "crossover/dataset.h"
#include "crossover/model.h"
#include "crossover/ranks.h"
#include "crossover/training.h"

namespace crossover {

/// On rank 0: plans training_epoch(model, whole) for all ranks, each with its share and its
/// `options` of plan(). optimize() leaves the whole as it is, since nobody runs it. A download
/// throws std::runtime_error where parameters or states differ between ranks. The arguments must
/// outlive its Programs.
std::unique_ptr<Backend> make_shared_backend(Ranks& ranks, const Backend& own,
                                             const std::string& row, const Model& model,
                                             const TrainingOptions& whole);

/// The rows in the order of a training that is `whole` with in_turn: of each batch share after
/// share.
Dataset rows_in_turn(const Dataset& rows, const TrainingOptions& whole);

/// On rank 0: a Program whose one pass sums so many floats over the ranks, in place. What is
/// uploaded to its tensor 0 is multiplied by the number of each rank, from 1, so that none has what
/// another one has. `gpu`: in that one's memory, of the row that the others find by its name; null:
/// in the host's.
std::unique_ptr<Program> make_shared_sum(Ranks& ranks, std::int64_t floats,
                                         const Backend* gpu = nullptr, const std::string& row = "");

/// The network, its training and how to compile it, as a rank that follows finds them by the name
/// of the row.
struct Followed {
  const Backend* backend = nullptr;
  Model model;
  TrainingOptions whole;
  CompileOptions options;
};

/// On every other rank: does what rank 0's shared Programs do, until end_following().
void follow(Ranks& ranks, const std::function<Followed(const std::string& row)>& find);

/// On rank 0 the first rank whose number is not that of rank 0; 0 where there is none, and on the
/// others, which call it, too.
int differing_rank(Ranks& ranks, std::uint64_t own);

/// On rank 0: the others return from follow().
void end_following(Ranks& ranks);

}  // namespace crossover
