// SPDX-License-Identifier: Apache-2.0
#include "../bench/ceilings.h"

#include <gtest/gtest.h>

namespace crossover::bench {
namespace {

Ceilings measured() {
  Ceilings ceilings;
  ceilings.raise(Ceiling::flops_per_second, "cuda", Precision::f32, 0, 100);
  ceilings.raise(Ceiling::memory_bytes_per_second, "cuda", Precision::f32, 0, 10);
  ceilings.raise(Ceiling::bytes_per_second_to_device, "cuda", Precision::f32, 0, 2);
  ceilings.raise(Ceiling::launches_per_second, "cuda", Precision::f32, 0, 4);
  ceilings.raise(Ceiling::graph_nodes_per_second, "cuda", Precision::f32, 0, 8);
  return ceilings;
}

MinimumWork work() { return {.device = "cuda", .flops = 100, .memory_bytes = 10}; }

TEST(Ceilings, KeepTheHighest) {
  Ceilings ceilings = measured();
  ceilings.raise(Ceiling::flops_per_second, "cuda", Precision::f32, 0, 50);
  EXPECT_EQ(ceilings.find(Ceiling::flops_per_second, "cuda", Precision::f32, 0), 100);
  ceilings.raise(Ceiling::flops_per_second, "cuda", Precision::f32, 0, 200);
  EXPECT_EQ(ceilings.find(Ceiling::flops_per_second, "cuda", Precision::f32, 0), 200);
}

TEST(Ceilings, AreKeptByDevicePrecisionAndThreads) {
  const Ceilings ceilings = measured();
  EXPECT_EQ(ceilings.find(Ceiling::flops_per_second, "cpu", Precision::f32, 1), std::nullopt);
  EXPECT_EQ(ceilings.find(Ceiling::flops_per_second, "cuda", Precision::bf16, 0), std::nullopt);
  EXPECT_EQ(ceilings.find(Ceiling::memory_bytes_per_second, "cuda", Precision::bf16, 0), 10)
      << "bandwidth knows no precision";
}

TEST(Ceilings, TheLongestPartBounds) {
  const Ceilings ceilings = measured();
  MinimumWork of = work();
  of.flops = 300;
  EXPECT_EQ(ceilings.bound(of)->name, "compute");
  EXPECT_DOUBLE_EQ(ceilings.bound(of)->seconds, 3);
  of.memory_bytes = 40;
  EXPECT_EQ(ceilings.bound(of)->name, "memory");
  of.bytes_to_device = 10;
  EXPECT_EQ(ceilings.bound(of)->name, "copy");
  of.launches = 24;
  EXPECT_EQ(ceilings.bound(of)->name, "launch");
  EXPECT_DOUBLE_EQ(ceilings.bound(of)->seconds, 6);
  of.graph = true;
  EXPECT_EQ(ceilings.bound(of)->name, "copy") << "nodes of a graph are launched faster";
}

TEST(Ceilings, WhatWasNotMeasuredGivesNoBound) {
  MinimumWork of = work();
  of.precision = Precision::bf16;
  EXPECT_EQ(measured().bound(of), std::nullopt);
  EXPECT_EQ(Ceilings().bound(work()), std::nullopt);
}

TEST(Ceilings, WithoutMemoryTrafficOnlyComputeNeedsACeiling) {
  Ceilings ceilings;
  ceilings.raise(Ceiling::flops_per_second, "cpu", Precision::f32, 2, 100);
  EXPECT_EQ(ceilings.bound({.device = "cpu", .threads = 2, .flops = 50})->name, "compute");
}

}  // namespace
}  // namespace crossover::bench
