// SPDX-License-Identifier: Apache-2.0
// What probes count, and that their checks see a wrong result wherever it stands.
#include "crossover/probe.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <limits>

#include "../src/probe/expected.h"
#include "crossover/backend.h"
#include "crossover/verify.h"
#include "support.h"

namespace crossover::test {
namespace {

// ---- counting

TEST(ProbeWork, CountsCopiesByTheBytesThatArrive) {
  const Work one = work(CopyProbe{.direction = Direction::host_to_device, .bytes = 100});
  EXPECT_EQ(one.bytes, 100);
  EXPECT_EQ(one.pieces, 1);
  EXPECT_EQ(one.flops, 0);
  EXPECT_EQ(work(CopyProbe{.direction = Direction::both, .bytes = 100}).bytes, 200);
  const Work batch =
      work(CopyProbe{.direction = Direction::device_to_host, .asynchronous = true, .bytes = 100});
  EXPECT_EQ(batch.bytes, 800);
  EXPECT_EQ(batch.pieces, 8);
}

TEST(ProbeWork, CountsArithmeticAndMemory) {
  EXPECT_EQ(work(FmaProbe{.values = 10, .length = 7}).flops, 140);
  EXPECT_EQ(work(MatrixProbe{.size = 4}).flops, 128);
  const Work triad = work(TriadProbe{.values = 10});
  EXPECT_EQ(triad.bytes, 120);
  EXPECT_EQ(triad.flops, 20);
  EXPECT_EQ(work(GraphNodeProbe{.nodes = 5}).pieces, 5);
  EXPECT_EQ(work(LaunchProbe{}).pieces, 1);
  EXPECT_EQ(work(LaunchProbe{.launches = 3}).pieces, 3);
}

TEST(ProbeMemory, CountsBothSides) {
  const auto both = memory_needed(CopyProbe{.direction = Direction::both, .bytes = 100});
  EXPECT_EQ(both.host, 200);
  EXPECT_EQ(both.device, 200);
  const auto within = memory_needed(CopyProbe{.direction = Direction::host_to_host, .bytes = 100});
  EXPECT_EQ(within.host, 200);
  EXPECT_EQ(within.device, 0);
  EXPECT_EQ(memory_needed(TriadProbe{.values = 10}).device, 120);
}

TEST(ProbeSpec, RefusesNumbersOutOfRange) {
  EXPECT_THROW(check(CopyProbe{.bytes = 0}), std::invalid_argument);
  EXPECT_THROW(check(FmaProbe{.values = 1, .length = 0}), std::invalid_argument);
  EXPECT_THROW(check(TriadProbe{.values = -1}), std::invalid_argument);
  EXPECT_THROW(check(GraphNodeProbe{.nodes = 0}), std::invalid_argument);
  EXPECT_THROW(check(ForkJoinProbe{.threads = 0}), std::invalid_argument);
  EXPECT_THROW(check(MatrixProbe{.size = 0}), std::invalid_argument);
  EXPECT_NO_THROW(check(MatrixProbe{.precision = Precision::tf32, .size = 33}));
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    for (const std::int64_t inexact : {64, 129, 16384}) {
      EXPECT_THROW(check(MatrixProbe{.precision = precision, .size = inexact}),
                   std::invalid_argument);
    }
    EXPECT_NO_THROW(check(MatrixProbe{.precision = precision, .size = 8192}));
  }
  EXPECT_NO_THROW(check(LaunchProbe{}));
}

// ---- checks

TEST(ProbeCheck, SeesEveryWrongByteOfACopy) {
  constexpr std::int64_t first = 64;
  std::vector<std::byte> copy(29);  // and a rest behind the last whole word
  probe::fill_pattern(copy, first, 3);
  EXPECT_NO_THROW(probe::check_pattern(copy, first, 3));
  EXPECT_THROW(probe::check_pattern(copy, first + 8, 3), Mismatch) << "bytes of another place";
  EXPECT_THROW(probe::check_pattern(copy, first, 4), Mismatch) << "bytes of another block";
  for (std::byte& byte : copy) {
    const std::byte right = byte;
    EXPECT_NE(right, std::byte{probe::spoiled_byte});
    byte ^= std::byte{1};
    EXPECT_THROW(probe::check_pattern(copy, first, 3), Mismatch);
    byte = right;
  }
}

template <class Check>
void expect_that_every_wrong_value_shows(std::vector<float> right, const Check& check_values) {
  EXPECT_NO_THROW(check_values(right));
  for (float& value : right) {
    const float kept = value;
    EXPECT_NE(kept, 0) << "as if it were spoiled";
    for (const float wrong : {std::nextafter(kept, 1e9F), std::nextafter(kept, -1e9F), 0.0F,
                              std::numeric_limits<float>::quiet_NaN()}) {
      value = wrong;
      EXPECT_THROW(check_values(right), Mismatch);
    }
    value = kept;
  }
}

TEST(ProbeCheck, SeesEveryWrongValue) {
  constexpr std::int64_t first = 1000;
  std::vector<float> triad;
  std::vector<float> multiplied;
  for (std::int64_t i = first; i < first + 100; ++i) {
    triad.push_back(probe::triad_b(i) + 3 * probe::triad_c(i));
    multiplied.push_back(probe::fma_start(i));
    for (int step = 0; step < 1000; ++step) {
      multiplied.back() = std::fma(multiplied.back(), probe::fma_factor, probe::fma_summand);
    }
  }
  expect_that_every_wrong_value_shows(
      triad, [](const std::vector<float>& got) { probe::check_triad(got, first); });
  const probe::ExpectedFma expected(1000);
  expect_that_every_wrong_value_shows(
      multiplied, [&](const std::vector<float>& got) { expected.check(got, first); });
  EXPECT_THROW(probe::ExpectedFma(999).check(multiplied, first), Mismatch);
  EXPECT_THROW(probe::ExpectedFma(1001).check(multiplied, first), Mismatch);
}

TEST(ProbeCheck, KnowsTheProduct) {
  for (const std::int64_t size : {1, 7, 128}) {
    std::vector<float> product;
    for (std::int64_t i = 0; i < size; ++i) {
      for (std::int64_t j = 0; j < size; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < size; ++k) {
          sum += static_cast<double>(probe::matrix_a(i, k)) * probe::matrix_b(k, j);
        }
        product.push_back(static_cast<float>(sum));
      }
    }
    const probe::ExpectedProduct expected(size);
    EXPECT_NO_THROW(expected.check(std::span<const float>(product), 0));
    product.back() += 1;
    EXPECT_THROW(expected.check(std::span<const float>(product), 0), Mismatch);
  }
}

template <class T>
std::vector<T> first_rows_of_product(std::int64_t size) {
  float sum = 0;
  for (std::int64_t k = 0; k < size; ++k) {
    sum += probe::matrix_a(0, k) * probe::matrix_b(k, 0);
  }
  std::vector<T> product;
  for (std::int64_t i = 0; i < 3 * size; ++i) {  // the fourth row is like the first
    const float exact = sum * static_cast<float>((1 + i / size) * (1 + i % size % 3));
    product.push_back(narrowed<T>(exact));
    EXPECT_EQ(widened(product.back()), exact) << "the type does not hold it";
  }
  return product;
}

template <class T>
void expect_exact_products() {
  for (std::int64_t size = 128; size <= 8192; size *= 2) {
    std::vector<T> product = first_rows_of_product<T>(size);
    const probe::ExpectedProduct expected(size);
    EXPECT_NO_THROW(expected.check(std::span<const T>(product), 0));
    ++product[static_cast<std::size_t>(size)].bits;  // the next number of the type
    EXPECT_THROW(expected.check(std::span<const T>(product), 0), Mismatch);
  }
}

TEST(ProbeCheck, SeesTheLastBitOfAProductIn16Bits) {
  expect_exact_products<Bf16>();
  expect_exact_products<F16>();
}

// ---- the CPU's

class CpuProbe : public testing::TestWithParam<std::pair<const char*, ProbeSpec>> {};

TEST_P(CpuProbe, IsRightAfterARunAndWrongWithoutOne) {
  const auto made = make_cpu_backend()->make_probe(GetParam().second);
  EXPECT_THROW(made->check(), Mismatch) << "nothing has run";
  made->run();
  made->run();
  EXPECT_NO_THROW(made->check());
  EXPECT_THROW(made->check(), Mismatch) << "what was checked is spoiled";
  made->run();
  EXPECT_NO_THROW(made->check());
  EXPECT_EQ(made->device_seconds(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Probes, CpuProbe,
    testing::Values(
        std::pair{"copy_1", ProbeSpec(CopyProbe{.direction = Direction::host_to_host, .bytes = 1})},
        std::pair{"copy_1003",
                  ProbeSpec(CopyProbe{.direction = Direction::host_to_host, .bytes = 1003})},
        std::pair{"fma_1", ProbeSpec(FmaProbe{.values = 1, .length = 1})},
        std::pair{"fma_2_threads",
                  ProbeSpec(FmaProbe{.values = 3 * 384 + 5, .length = 1001, .threads = 2})},
        std::pair{"triad_1", ProbeSpec(TriadProbe{.values = 1003})},
        std::pair{"triad_3_threads", ProbeSpec(TriadProbe{.values = 1003, .threads = 3})},
        std::pair{"matrix_33", ProbeSpec(MatrixProbe{.precision = Precision::f32, .size = 33})},
        std::pair{"matrix_2_threads",
                  ProbeSpec(MatrixProbe{.precision = Precision::f32, .size = 256, .threads = 2})},
        std::pair{"fork_join_1", ProbeSpec(ForkJoinProbe{.threads = 1})},
        std::pair{"fork_join_3", ProbeSpec(ForkJoinProbe{.threads = 3})}),
    [](const auto& parameters) { return parameters.param.first; });

TEST(CpuProbe, SeesThatThreadsAreMissing) {
  const auto made = make_cpu_backend()->make_probe(ForkJoinProbe{.threads = 2});
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    made->run();  // within a region OpenMP gives it no second thread
  }
  EXPECT_THROW(made->check(), Mismatch);
}

TEST(CpuProbe, LeavesTheNumberOfThreadsAlone) {
  const int before = omp_get_max_threads();
  const auto made =
      make_cpu_backend()->make_probe(TriadProbe{.values = 100, .threads = before + 1});
  made->run();
  EXPECT_EQ(omp_get_max_threads(), before);
}

TEST(CpuProbe, MultipliesInBf16OrSaysWhatIsMissing) {
  const auto backend = make_cpu_backend();
  const MatrixProbe spec{.precision = Precision::bf16, .size = 256, .threads = 2};
  if (const std::string missing = backend->missing_for(Precision::bf16); !missing.empty()) {
    EXPECT_EQ(message_of<Unsupported>([&] { static_cast<void>(backend->make_probe(spec)); }),
              missing);
    GTEST_SKIP() << missing;
  }
  const auto made = backend->make_probe(spec);
  EXPECT_THROW(made->check(), Mismatch) << "nothing has run";
  made->run();
  EXPECT_NO_THROW(made->check());
}

TEST(CpuProbe, SaysWhatItHasNot) {
  const auto backend = make_cpu_backend();
  for (const ProbeSpec& spec :
       {ProbeSpec(CopyProbe{.direction = Direction::host_to_device, .bytes = 1}),
        ProbeSpec(CopyProbe{
            .direction = Direction::host_to_host, .memory = HostMemory::pinned, .bytes = 1}),
        ProbeSpec(FmaProbe{.precision = Precision::bf16, .values = 1, .length = 1}),
        ProbeSpec(MatrixProbe{.precision = Precision::tf32, .size = 1}),
        ProbeSpec(MatrixProbe{.precision = Precision::f16, .size = 128}), ProbeSpec(LaunchProbe{}),
        ProbeSpec(GraphNodeProbe{.nodes = 1}), ProbeSpec(SynchronizeProbe{})}) {
    EXPECT_THROW(static_cast<void>(backend->make_probe(spec)), Unsupported) << spec.index();
  }
  EXPECT_THROW(static_cast<void>(backend->make_probe(TriadProbe{})), std::invalid_argument);
}

}  // namespace
}  // namespace crossover::test
