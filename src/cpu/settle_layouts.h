// SPDX-License-Identifier: Apache-2.0
// Layouts that several operations share, settled before the first of them is asked: those of images
// and of the weights of convolutions.
#pragma once

#include "lowering.h"

namespace crossover::cpu {

/// Throws Unsupported, dnnl::error.
void settle_layouts(Lowering& to);

}  // namespace crossover::cpu
