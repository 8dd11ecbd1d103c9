// SPDX-License-Identifier: Apache-2.0
// In the place of nccl_library.cpp in a build without NCCL.
#include "crossover/backend.h"
#include "library.h"

namespace crossover::cuda {

std::unique_ptr<Collectives> make_nccl(Ranks& /*ranks*/) {
  throw Unsupported(
      "several GPUs need NCCL, and this build has none (" CROSSOVER_NO_NCCL
      "); install nvidia-nccl-cu13 or libnccl-dev and build again, or say --cuda=off");
}

std::string nccl_version() { return ""; }

}  // namespace crossover::cuda
