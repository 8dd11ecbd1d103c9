// SPDX-License-Identifier: Apache-2.0
// What the launches that follow may touch. A GPU does not ask; the directory is on the include
// path, so that one that does can stand in for it.
#pragma once

namespace crossover::cuda {

/// While it lives: of a launch of a plan, of what gathers its rows, or of a whole plan.
struct Footprint {
  template <class... Of>
  explicit Footprint(const Of&... /*of*/) {}
};

}  // namespace crossover::cuda
