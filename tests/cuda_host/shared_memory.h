// SPDX-License-Identifier: Apache-2.0
// The variables that kernels declare __shared__, and the dynamic shared memory of a launch.
#pragma once

namespace cuda_host {

/// Fills them with garbage, as a block finds them, and makes that of the launch anew.
void spoil_shared_memory(unsigned dynamic_bytes);

}  // namespace cuda_host
