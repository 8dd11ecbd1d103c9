// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "crossover/probe.h"

namespace crossover::cpu {

/// A square matrix product. Throws Unsupported where oneDNN has none in that precision.
std::unique_ptr<Probe> make_matrix_probe(const MatrixProbe& spec);

}  // namespace crossover::cpu
