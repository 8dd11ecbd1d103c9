// SPDX-License-Identifier: Apache-2.0
// The variables that kernels declare __shared__.
#pragma once

namespace cuda_host {

/// Fills them with garbage, as a block finds them.
void spoil_shared_memory();

}  // namespace cuda_host
