// SPDX-License-Identifier: Apache-2.0
// The reference and the CPU backend against golden training runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "crossover/start.h"
#include "golden.h"

namespace crossover::test {
namespace {

void expect_reference(const Golden& golden) {
  const Training training = golden.training(Form::plain);
  if (CROSSOVER_SANITIZED && flops(golden, training.workload) > 2e9) {
    GTEST_SKIP() << "too slow under sanitizers; runs in the default build";
  }
  Reference reference(training.workload);
  set_data(reference, training.data);
  restart(reference);
  const Id loss = find(training.workload, "loss");
  // Both compute in float64; what is left is the order of their sums.
  expect_golden(
      golden, training.workload, 1e-9, 1e-8, 1e-9,
      [&](std::int64_t first, std::int64_t count) { reference.run(first, count); },
      [&] { return copy(reference[loss]); }, [&](Id id) { return copy(reference[id]); });
}

class ReferenceGolden : public testing::TestWithParam<Golden> {};

TEST_P(ReferenceGolden, Trajectory) { expect_reference(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Mlp, ReferenceGolden, testing::ValuesIn(golden_mlps()), labelled);

/// Calls part(backend, form) for each form; skips the test where there is no GPU.
template <class Part>
void on_gpu(const Part& part) {
  const FoundBackend gpu = make_cuda_backend();
  if (!gpu.backend) {
    GTEST_SKIP() << gpu.reason;
  }
  for (const Form form : all_forms) {
    part(*gpu.backend, form);
  }
}

void expect_trajectory(const Golden& golden, Form form, const Backend& backend,
                       const CompileOptions& options) {
  const Training training = golden.training(form);
  expect_golden(golden, training, *started(backend, training, options));
}

const auto on_cpu = testing::Combine(testing::ValuesIn(golden_mlps()), testing::ValuesIn(all_forms),
                                     testing::Values(1, 2));  // threads

/// Under sanitizers a large network runs no code that the small ones do not, and takes minutes;
/// elsewhere it runs as `once` says: its forms and threads differ as on the small ones.
bool only_in_all(const Golden& golden, bool once) {
  return golden.large && !test_all() && (thinned() || !once);
}

constexpr const char* with_all = "large, or like others: runs with CROSSOVER_TEST_ALL";

class CpuGolden : public testing::TestWithParam<std::tuple<Golden, Form, int>> {};

TEST_P(CpuGolden, Trajectory) {
  const auto& [golden, form, threads] = GetParam();
  if (only_in_all(golden, threads == threads_of(form))) {
    GTEST_SKIP() << with_all;
  }
  expect_trajectory(golden, form, *make_cpu_backend(), {.threads = threads});
}

TEST_P(CpuGolden, TrajectoryOfTheExecutionThatIsChosen) {
  const auto& [golden, form, threads] = GetParam();
  if (only_in_all(golden, form == Form::update_fused && threads == 2)) {
    GTEST_SKIP() << with_all;
  }
  expect_trajectory(golden, form, *make_cpu_backend(),
                    {.threads = threads, .execution = Execution::automatic});
}

INSTANTIATE_TEST_SUITE_P(Mlp, CpuGolden, on_cpu, labelled);

class GpuGolden : public testing::TestWithParam<std::tuple<Golden, GpuMode>> {};

TEST_P(GpuGolden, Trajectory) {
  const auto& [golden, mode] = GetParam();
  on_gpu([&golden = golden, &mode = mode](const Backend& gpu, Form form) {
    expect_trajectory(golden, form, gpu, mode.options);
  });
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuGolden,
                         testing::Combine(testing::ValuesIn(golden_mlps()),
                                          testing::ValuesIn(gpu_modes())),
                         labelled);

/// One kernel for the epoch, of networks that fit on a multiprocessor of the GPU at hand.
void train_in_one_kernel(const Golden& golden, Execution execution) {
  on_gpu([&](const Backend& gpu, Form form) {
    if (form == Form::plain) {
      return;  // it takes what fuse() made
    }
    try {
      for (const Placement placement : {Placement::resident, Placement::pinned_async}) {
        expect_trajectory(golden, form, gpu, {.execution = execution, .placement = placement});
      }
    } catch (const Unsupported& missing) {
      GTEST_SKIP() << missing.what();
    }
  });
}

class GpuPersistent : public testing::TestWithParam<Golden> {};
TEST_P(GpuPersistent, Trajectory) { train_in_one_kernel(GetParam(), Execution::persistent); }
INSTANTIATE_TEST_SUITE_P(Gpu, GpuPersistent, testing::ValuesIn(golden_mlps()), labelled);

class GpuTailored : public testing::TestWithParam<Golden> {};
TEST_P(GpuTailored, Trajectory) { train_in_one_kernel(GetParam(), Execution::tailored); }
INSTANTIATE_TEST_SUITE_P(Gpu, GpuTailored, testing::ValuesIn(golden_mlps()), labelled);

class CpuBf16 : public testing::TestWithParam<std::tuple<Golden, Form, int>> {};

TEST_P(CpuBf16, IsVerified) {
  const auto& [golden, form, threads] = GetParam();
  const auto cpu = make_cpu_backend();
  if (const std::string missing = cpu->missing_for(Precision::bf16); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  if (only_in_all(golden, form == Form::fused && threads == 2)) {
    GTEST_SKIP() << with_all;
  }
  expect_verified(golden, form, *cpu, {.threads = threads, .precision = Precision::bf16});
}

INSTANTIATE_TEST_SUITE_P(Mlp, CpuBf16, on_cpu, labelled);

class GpuPrecision : public testing::TestWithParam<std::tuple<Golden, Precision>> {};

TEST_P(GpuPrecision, IsVerified) {
  const auto& [golden, precision] = GetParam();
  on_gpu([&golden = golden, precision = precision](const Backend& gpu, Form form) {
    if (const std::string missing = gpu.missing_for(precision); !missing.empty()) {
      GTEST_SKIP() << missing;
    }
    expect_verified(golden, form, gpu, {.precision = precision});
  });
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuPrecision,
                         testing::Combine(testing::ValuesIn(golden_mlps()),
                                          testing::Values(Precision::tf32, Precision::bf16,
                                                          Precision::f16)),
                         labelled);

// ---- networks of images and sequences

/// Skips the test where the network is large and not asked for, or a GPU lacks the library that
/// one of its operations needs.
template <class Part>
void on_network_of_gpu(const Golden& golden, const Part& part) {
  if (golden.large && !test_all()) {
    GTEST_SKIP() << with_all;
  }
  try {
    part();
  } catch (const Unsupported& missing) {
    GTEST_SKIP() << missing.what();
  }
}

/// In tf32 and 16 bits; of batch-normalized networks the first step, because later ones magnify the
/// rounding of the first.
void expect_losses_nearby(const Golden& golden, Form form, const Backend& backend,
                          const CompileOptions& options) {
  constexpr double tolerance = 2e-2;
  if (const std::string missing = backend.missing_for(options.precision); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  const Training training = golden.training(form, options.precision);
  const auto program = started(backend, training, options);
  const auto steps = std::min(std::ssize(golden.losses), std::ssize(training.workload.order));
  program->enqueue(0, steps);
  program->wait();
  const std::vector<double> losses =
      download(*program, training.workload, find(training.workload, "loss"));
  const auto& layers = golden.model.layers;
  const bool normalized = std::any_of(layers.begin(), layers.end(), [](const Layer& layer) {
    return std::holds_alternative<BatchNormLayer>(layer.kind);
  });
  for (std::size_t i = 0; i < static_cast<std::size_t>(normalized ? 1 : steps); ++i) {
    EXPECT_NEAR(losses[i] / golden.losses[i], 1, tolerance) << "step " << i + 1;
  }
}

const auto networks = testing::ValuesIn(golden_networks());
const auto network_forms = testing::Values(Form::plain, Form::fused);

class NetworkOnReference : public testing::TestWithParam<Golden> {};

TEST_P(NetworkOnReference, Trajectory) {
  if (GetParam().large && !test_all()) {
    GTEST_SKIP() << with_all;
  }
  expect_reference(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Network, NetworkOnReference, networks, labelled);

class NetworkOnCpu : public testing::TestWithParam<std::tuple<Golden, Form, int>> {};

TEST_P(NetworkOnCpu, Trajectory) {
  const auto& [golden, form, threads] = GetParam();
  if (only_in_all(golden, threads == threads_of(form)) || left_to_others(form, threads)) {
    GTEST_SKIP() << with_all;
  }
  expect_trajectory(golden, form, *make_cpu_backend(), {.threads = threads});
}

TEST_P(NetworkOnCpu, LossesInBf16) {
  const auto& [golden, form, threads] = GetParam();
  // Without instructions for it a large network takes minutes in bf16.
  if ((golden.large && !test_all()) || left_to_others(form, threads)) {
    GTEST_SKIP() << with_all;
  }
  expect_losses_nearby(golden, form, *make_cpu_backend(),
                       {.threads = threads, .precision = Precision::bf16});
}

INSTANTIATE_TEST_SUITE_P(Network, NetworkOnCpu,
                         testing::Combine(networks, network_forms, testing::Values(1, 2)),
                         labelled);

class NetworkOnGpu : public testing::TestWithParam<std::tuple<Golden, GpuMode>> {};

TEST_P(NetworkOnGpu, Trajectory) {
  const auto& [golden, mode] = GetParam();
  on_gpu([&golden = golden, &mode = mode](const Backend& gpu, Form form) {
    on_network_of_gpu(golden, [&] { expect_trajectory(golden, form, gpu, mode.options); });
  });
}

INSTANTIATE_TEST_SUITE_P(Gpu, NetworkOnGpu,
                         testing::Combine(networks, testing::ValuesIn(gpu_modes())), labelled);

class NetworkGpuPrecision : public testing::TestWithParam<std::tuple<Golden, Precision>> {};

TEST_P(NetworkGpuPrecision, Losses) {
  const auto& [golden, precision] = GetParam();
  on_gpu([&golden = golden, precision = precision](const Backend& gpu, Form form) {
    on_network_of_gpu(golden,
                      [&] { expect_losses_nearby(golden, form, gpu, {.precision = precision}); });
  });
}

INSTANTIATE_TEST_SUITE_P(
    Gpu, NetworkGpuPrecision,
    testing::Combine(networks, testing::Values(Precision::tf32, Precision::bf16, Precision::f16)),
    labelled);

/// A few small networks of each kind in all that a GPU can do with them.
class GpuExecution : public testing::TestWithParam<std::tuple<Golden, GpuMode, Precision>> {};

TEST_P(GpuExecution, IsVerified) {
  const auto& [golden, mode, precision] = GetParam();
  const FoundBackend gpu = make_cuda_backend();
  const std::string missing = gpu.backend ? gpu.backend->missing_for(precision) : gpu.reason;
  if (!missing.empty()) {
    GTEST_SKIP() << missing;
  }
  const CompileOptions options{.precision = precision, .execution = mode.options.execution};
  on_network_of_gpu(golden, [&] {
    expect_verified(std::get<0>(GetParam()), Form::update_fused, *gpu.backend, options);
  });
}

std::vector<Golden> small_of_each_kind() {
  std::vector<Golden> all = golden_mlps();
  const std::vector<Golden> others = golden_networks();
  all.insert(all.end(), others.begin(), others.end());
  const std::set<std::string> wanted{"disc-2",    "disc-8",     "heart",
                                     "alexnet-r", "lstm-small", "gpt-short"};
  std::erase_if(all, [&](const Golden& golden) { return !wanted.contains(golden.name); });
  return all;
}

const std::vector<GpuMode> every_execution{{"eager", {.execution = Execution::eager}},
                                           {"graph", {.execution = Execution::graph}},
                                           {"graph_epoch", {.execution = Execution::graph_epoch}},
                                           {"persistent", {.execution = Execution::persistent}}};

INSTANTIATE_TEST_SUITE_P(Gpu, GpuExecution,
                         testing::Combine(testing::ValuesIn(small_of_each_kind()),
                                          testing::ValuesIn(every_execution),
                                          testing::Values(Precision::f32, Precision::tf32,
                                                          Precision::bf16, Precision::f16)),
                         labelled);

}  // namespace
}  // namespace crossover::test
