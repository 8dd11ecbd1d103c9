// SPDX-License-Identifier: Apache-2.0
// The deterministic initial state of a training run, for a Program or for the reference.
#pragma once

#include "crossover/backend.h"
#include "crossover/dataset.h"
#include "crossover/reference.h"

namespace crossover {

/// Uploads the rows of the data set to the data tensors "inputs", and "labels" or "targets".
void set_data(Program& program, const Workload& workload, const Dataset& dataset);
void set_data(Reference& reference, const Dataset& dataset);

/// The same where nobody asks for labels or targets: of a forward_pass().
void set_inputs(Program& program, const Workload& workload, const Dataset& dataset);
void set_inputs(Reference& reference, const Dataset& dataset);

/// Sets parameters to their initial values, gradients and optimizer states to zero. The reference
/// has values of 16 bits as they are stored.
void restart(Program& program, const Workload& workload);
void restart(Reference& reference);

/// A tensor's values, whatever its storage type.
std::vector<double> download(Program& program, const Workload& workload, Id id);

/// Throws std::invalid_argument where the count differs from the tensor's.
void upload(Program& program, const Workload& workload, Id id, std::span<const double> values);

}  // namespace crossover
