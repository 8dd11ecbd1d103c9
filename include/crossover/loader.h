// SPDX-License-Identifier: Apache-2.0
// Batches that are assembled from rows while a network trains, as a framework's data loader does,
// instead of lying ready.
#pragma once

#include <memory>

#include "crossover/backend.h"

namespace crossover {

/// Compiles for `own`, which must take single rows (Program::upload_row), and outlive it. A Program
/// keeps the whole data set aside. Of each batch the rows are brought, one by one and in the
/// epoch's order (Workload::epoch), to where its step reads them: by `workers` threads, each of
/// which has every workers-th batch and goes ahead of the training by as many batches as there are
/// workers; or, without any, by the thread that trains, before each step. A call of enqueue()
/// begins with its first batch: nothing is brought ahead of it, and it returns when all is done.
std::unique_ptr<Backend> make_loading_backend(const Backend& own, int workers);

}  // namespace crossover
