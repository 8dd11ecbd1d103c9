// SPDX-License-Identifier: Apache-2.0
#include "../gpu_variants.h"

#include "cuda_host.h"

namespace crossover::test {

const std::vector<GpuVariant>& gpu_variants() {
  static const std::vector<GpuVariant> all{
      {"usual", [] {}},
      {"mask_at_zero",
       [] {  // as an H200's cuBLASLt 13.1
         cuda_host::device().mask_at_zero = true;
         cuda_host::device().rounds_before_bias = true;
       }},
      {"tf32_truncated", [] { cuda_host::device().tf32 = cuda_host::Tf32::truncated; }, true},
      {"tf32_exact", [] { cuda_host::device().tf32 = cuda_host::Tf32::exact; }, true},
      {"no_epilogues", [] { cuda_host::device().refused_epilogues = ~0U; }},
  };
  return all;
}

}  // namespace crossover::test
