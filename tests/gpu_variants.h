// SPDX-License-Identifier: Apache-2.0
// The GPUs that a test `Gpu/*` runs on: in crossover_tests the real one, where there is one; in
// cuda_host_tests the emulated one, once for each thing that hardware may do differently.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "crossover/backend.h"

namespace crossover::test {

struct GpuVariant {
  std::string name;
  void (*prepare)() = nullptr;
  bool tf32_only = false;  // other precisions meet nothing that differs

  friend std::ostream& operator<<(std::ostream& out, const GpuVariant& variant) {
    return out << variant.name;
  }
};
const std::vector<GpuVariant>& gpu_variants();

/// The GPU as the variant has it, or the reason why there is none.
inline FoundBackend gpu_of(const GpuVariant& variant) {
  if (variant.prepare != nullptr) {
    variant.prepare();
  }
  return make_cuda_backend();
}

/// A test on one of them; skips, with the reason, where there is none.
class OnGpu : public testing::TestWithParam<GpuVariant> {
 protected:
  void SetUp() override {
    gpu_ = gpu_of(GetParam());
    if (!gpu_.backend) {
      GTEST_SKIP() << gpu_.reason;
    }
  }
  [[nodiscard]] const Backend& gpu() const { return *gpu_.backend; }

 private:
  FoundBackend gpu_;
};

}  // namespace crossover::test
