// SPDX-License-Identifier: Apache-2.0
// What Highway is told before <hwy/foreach_target.h>, the same wherever it compiles for each
// target.
#pragma once

// Without it Highway 1.0.3 does not compile for processors that have those instructions.
#define HWY_WANT_AVX3_DL  // NOLINT
// Arrays of vectors need sizes that are known to the compiler.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)  // NOLINT
