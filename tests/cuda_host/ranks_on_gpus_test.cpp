// SPDX-License-Identifier: Apache-2.0
// Several ranks, each on an emulated GPU of its own, train what one process trains with the whole
// batch. NCCL is a made-up one (nccl.cpp); the calls are those of src/cuda.
#include <gmock/gmock.h>

#include <cstdlib>

#include "crossover/extensions.h"
#include "crossover/shared_training.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "libraries/library.h"
#include "plan/plan.h"
#include "process_ranks.h"
#include "support.h"

// What is in NCCL's place in a build without it, beside what is here.
#define CROSSOVER_NO_NCCL "it is nowhere"
#define make_nccl make_absent_nccl
#define nccl_version absent_nccl_version
#include "libraries/nccl_absent.cpp"  // NOLINT(bugprone-suspicious-include)
#undef nccl_version
#undef make_nccl

namespace crossover::test {
namespace {

using cuda_host::Order;
using testing::HasSubstr;

struct Trained {
  Model model;
  TrainingOptions options;
  Dataset data;
};

/// Batches that no number of ranks divides, and a short one; three buckets.
Trained dense() {
  return {.model = mlp("small", {6, 16, 8, 3}, Activation::tanh),
          .options = {.rows = 24,
                      .batch = 7,
                      .optimizer = AdamWOptions{.learning_rate = 0.01},
                      .bucket_bytes = 200},
          .data = uniform_rows({6}, 24, 3)};
}

/// Gradients of products that are written in bf16 and cast before they are summed.
Trained images() {
  Model model{.name = "images", .sample = {2, 4, 4}, .classes = 3, .layers = {}};
  Value value = model.add(ConvolutionLayer{8, {.size = 3, .padding = 1}}, {0});
  value = model.add(ActivationLayer{Activation::relu}, {value});
  value = model.add(FlattenLayer{}, {value});
  model.add(LinearLayer{3}, {value});
  return {.model = model,
          .options = {.rows = 12,
                      .batch = 6,
                      .optimizer = MomentumOptions{},
                      .precision = Precision::bf16},
          .data = uniform_rows({2, 4, 4}, 12, 3)};
}

/// How the ranks' GPUs are.
struct Emulated {
  int ranks = 2;
  std::uint64_t seed = 1;
  Order order = Order::shuffled;
  std::function<void(int rank)> change = [](int /*rank*/) {};

  void reset(int rank) const {
    cuda_host::reset(seed * static_cast<std::uint64_t>(ranks) + static_cast<std::uint64_t>(rank),
                     order);
    cuda_host::device().count = ranks;
    change(rank);
  }
};

/// What verification by rank 0 says, and what it throws; "" where all is right.
std::string verdict(const Trained& training, CompileOptions options, const Emulated& emulated) {
  options.precision = training.options.precision;
  const Workload whole = training_epoch(training.model, training.options);
  const auto steps = std::ssize(whole.order);
  const Trajectory expected = reference_trajectory(whole, training.data, steps);
  std::string what;
  on_processes(emulated.ranks, [&](Ranks& ranks) {
    emulated.reset(ranks.rank());
    const FoundBackend gpu = make_cuda_backend(&ranks);
    ASSERT_EQ(gpu.reason, "");
    if (ranks.rank() > 0) {
      follow(ranks, [&](const std::string& /*row*/) {
        return Followed{gpu.backend.get(), training.model, training.options, options};
      });
      return;
    }
    try {
      const auto shared =
          make_shared_backend(ranks, *gpu.backend, "the row", training.model, training.options);
      const Workload workload = shared->optimize(whole, options);
      const auto program = shared->compile(workload, options);
      set_data(*program, workload, training.data);
      verify(*program, workload, expected, options.precision);
      restart(*program, workload);
      expect_passes(*program, 2);
      for (int pass = 0; pass < 2; ++pass) {
        program->enqueue(0, steps);
        program->wait();
      }
      EXPECT_EQ(seconds_of_passes(*program).size(), static_cast<std::size_t>(emulated.ranks));
      EXPECT_GT(program->profile()[OpCategory::communication], 0);
      program->enqueue(0, 1);  // and is destroyed with work in flight
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    end_following(ranks);
  });
  return what;
}

const auto all_ways = {Execution::eager, Execution::overlapped, Execution::graph,
                       Execution::graph_epoch};

TEST(RanksOnGpus, TrainWhatOneProcessTrains) {
  for (const Execution execution : all_ways) {
    for (const int ranks : {2, 3}) {
      EXPECT_EQ(verdict(dense(), {.execution = execution}, {.ranks = ranks}), "");
    }
    EXPECT_EQ(verdict(images(), {.execution = execution}, {}), "");
  }
}

TEST(RanksOnGpus, InWhateverOrderTheStreamsGoOn) {
  for (const Execution execution : all_ways) {
    for (const Order order : {Order::lazy, Order::eager, Order::shuffled}) {
      for (std::uint64_t seed = 2; seed < (test_all() ? 12 : 4); ++seed) {
        EXPECT_EQ(verdict(dense(), {.execution = execution}, {.seed = seed, .order = order}), "");
      }
    }
  }
}

TEST(RanksOnGpus, ReadDataFromEveryPlacementAndAddUpGradients) {
  Trained training = dense();
  training.options.accumulate = 2;
  for (const Placement placement :
       {Placement::resident, Placement::pageable, Placement::pinned_async}) {
    for (const Execution execution : {Execution::overlapped, Execution::graph}) {
      EXPECT_EQ(verdict(training, {.execution = execution, .placement = placement}, {}), "");
    }
  }
}

TEST(RanksOnGpus, WrongSumsAreFound) {
  const auto astray_from = [](int first, float by) {
    return Emulated{.change = [first, by](int rank) {
      cuda_host::device().astray_sums = rank >= first ? by : 0;
    }};
  };
  Trained training = dense();
  training.options.optimizer = SgdOptions{};
  for (const Execution execution : all_ways) {
    EXPECT_THAT(verdict(training, {.execution = execution}, astray_from(0, 1)),
                testing::StartsWith("the loss of step"));
    EXPECT_THAT(verdict(training, {.execution = execution}, astray_from(1, 1e-5F)),
                HasSubstr("than rank 0 after the same steps"));
  }
}

TEST(RanksOnGpus, ACaptureThatNcclRefusesIsSaidSo) {
  const Emulated refuses{
      .change = [](int /*rank*/) { cuda_host::device().nccl_refuses_capture = true; }};
  EXPECT_EQ(verdict(dense(), {.execution = Execution::graph}, refuses),
            "NCCL's sums can't be captured into a CUDA graph: NCCL: unhandled cuda error in "
            "ncclGroupEnd");
}

TEST(RanksOnGpus, WhatIsForOneProcessIsRefused) {
  for (const Execution execution :
       {Execution::persistent, Execution::tailored, Execution::automatic}) {
    EXPECT_THAT(verdict(dense(), {.execution = execution}, {}), HasSubstr("are for one process"));
  }
}

TEST(RanksOnGpus, SumByThemselves) {
  on_processes(3, [](Ranks& ranks) {
    Emulated{.ranks = 3}.reset(ranks.rank());
    const FoundBackend gpu = make_cuda_backend(&ranks);
    if (ranks.rank() > 0) {
      follow(ranks, [&](const std::string& row) {
        EXPECT_EQ(row, "the row");
        return Followed{gpu.backend.get(), {}, {}, {}};
      });
      return;
    }
    {
      std::vector<float> values(40'000, 2);
      const auto sum = make_shared_sum(ranks, std::ssize(values), gpu.backend.get(), "the row");
      sum->upload(0, std::as_bytes(std::span(values)));
      sum->enqueue(0, 1);
      sum->wait();
      sum->download(0, std::as_writable_bytes(std::span(values)));
      EXPECT_THAT(values, testing::Each(2.0F * (1 + 2 + 3)));
    }
    end_following(ranks);
  });
}

/// The sentence with which all ranks get no backend; the reason where they get none without one.
std::string refusal(int size, const std::function<void(int rank)>& change) {
  std::string what;
  on_processes(size, [&](Ranks& ranks) {
    cuda_host::reset(1);
    cuda_host::device().count = size;
    change(ranks.rank());
    std::string own;
    const std::string refused =
        message_of<Unsupported>([&] { own = make_cuda_backend(&ranks).reason; });
    own += refused;
    std::vector<char> of_first(own.begin(), own.end());
    of_first.resize(1000);
    ranks.broadcast(std::as_writable_bytes(std::span(of_first)));
    EXPECT_EQ(own, of_first.data());
    what = own;
  });
  return what;
}

TEST(RanksOnGpus, MoreRanksThanGpusIsASentence) {
  const auto two_gpus = [](int /*rank*/) { cuda_host::device().count = 2; };
  const std::string refused = refusal(3, two_gpus);
  EXPECT_THAT(refused, testing::StartsWith("there are more ranks than GPUs: ranks 0 and 2 of 3"));
  EXPECT_THAT(refused, HasSubstr("start as many ranks as there are GPUs"));
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  EXPECT_EQ(refusal(3, two_gpus), "");
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
}

TEST(RanksOnGpus, ARankWithoutAGpuIsASentence) {
  EXPECT_EQ(refusal(2, [](int rank) { cuda_host::device().count = rank == 0 ? 1 : 0; }),
            "rank 1 has no GPU, but others do: none (no device); start ranks where each has one");
  EXPECT_EQ(refusal(2, [](int /*rank*/) { cuda_host::device().count = 0; }), "none (no device)");
}

TEST(RanksOnGpus, WhatNcclSaysIsOneSentence) {
  const auto failing = [](const char* function, int from) {
    return refusal(
        2, [=](int rank) { cuda_host::device().failing_nccl = rank >= from ? function : ""; });
  };
  const std::string told = "NCCL: unhandled system error in ";
  const std::string more = ": made up for a test";
  EXPECT_EQ(failing("ncclGetUniqueId", 0), "rank 0: " + told + "ncclGetUniqueId" + more);
  EXPECT_EQ(failing("ncclCommInitRank", 0), "rank 0: " + told + "ncclCommInitRank" + more);
  EXPECT_EQ(failing("ncclAllReduce", 0), "rank 0: " + told + "ncclAllReduce" + more);
  EXPECT_EQ(failing("ncclGroupEnd", 0), "rank 0: " + told + "ncclGroupEnd" + more);
}

TEST(RanksOnGpus, ABuildWithoutNcclSaysWhatToDo) {
  ProcessRanks alone(cuda_host::SharedMeeting::new_name(), 0, 1);
  EXPECT_EQ(message_of<Unsupported>([&] { static_cast<void>(cuda::make_absent_nccl(alone)); }),
            "several GPUs need NCCL, and this build has none (it is nowhere); install "
            "nvidia-nccl-cu13 or libnccl-dev and build again, or say --cuda=off");
  EXPECT_EQ(cuda::nccl_version(), "2.28.9");
}

TEST(RanksOnGpus, AProcessAloneHasNoneToSumOver) {
  const Workload sum{.tensors = {{.name = "sum", .shape = {4}, .role = Role::state}},
                     .steps = {{.ops = {AllReduce{.tensors = {0}, .ranks = 2}}}},
                     .order = {{}}};
  EXPECT_THAT(message_of<Unsupported>(
                  [&] { static_cast<void>(make_cuda_backend().backend->compile(sum, {})); }),
              HasSubstr("a process alone"));
}

/// The first step of a rank.
cuda::StepPlan step_of(const Trained& training, Execution execution, std::int64_t bucket_bytes) {
  TrainingOptions share = training.options;
  share.ranks = 2;
  share.bucket_bytes = bucket_bytes;
  ProcessRanks some(cuda_host::SharedMeeting::new_name(), 0, 1);
  const Workload workload = make_planned_gpu()->optimize(training_epoch(training.model, share));
  const auto any = [](const cuda::ProductForm& /*form*/) { return true; };
  return cuda::make_plan(workload, {.execution = execution, .ranks = &some}, any).steps[0];
}

template <class Launched>
std::vector<std::size_t> places_of(const cuda::StepPlan& step) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < step.launches.size(); ++i) {
    if (std::holds_alternative<Launched>(step.launches[i])) {
      places.push_back(i);
    }
  }
  return places;
}

TEST(RanksOnGpus, SumABucketByOneCallBesideTheBackwardPass) {
  const cuda::StepPlan eager = step_of(dense(), Execution::eager, 1 << 20);
  const auto sums = places_of<cuda::SumLaunch>(eager);
  ASSERT_EQ(sums.size(), 1U);
  const auto& sum = std::get<cuda::SumLaunch>(eager.launches[sums[0]]);
  EXPECT_EQ(sum.spans.size(), 1U);
  EXPECT_FALSE(sum.beside);
  EXPECT_TRUE(places_of<cuda::SumsEndLaunch>(eager).empty());

  const cuda::StepPlan overlapped = step_of(dense(), Execution::overlapped, 200);
  const auto begun = places_of<cuda::SumLaunch>(overlapped);
  const auto ended = places_of<cuda::SumsEndLaunch>(overlapped);
  ASSERT_GT(begun.size(), 1U);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_LT(begun[0] + 1, begun[1]);  // the backward pass goes on between them
  EXPECT_LT(begun.back(), ended[0]);
  EXPECT_LT(ended[0], places_of<cuda::UpdateLaunch>(overlapped).at(0));
}

}  // namespace
}  // namespace crossover::test
