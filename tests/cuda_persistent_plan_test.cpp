// SPDX-License-Identifier: Apache-2.0
// What one multiprocessor holds, and in which order its warps go over it. Needs no CUDA.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "../src/cuda/planning/persistent.h"
#include "crossover/catalogue.h"
#include "crossover/launches.h"
#include "support.h"

namespace crossover::test {
namespace {

using cuda::Job;
using cuda::OnChip;
using cuda::OnChipLayer;
using cuda::OnChipStep;
using cuda::PersistentPlan;
using Kind = Job::Kind;

constexpr CompileOptions persistent{.execution = Execution::persistent};

Workload epoch_of(const std::string& network) {
  const Task task = find_model(network);
  return fuse(training_epoch(
      task.model, {.rows = task.rows, .batch = task.batch, .optimizer = task.optimizer}));
}

PersistentPlan plan_of(const std::string& network, const OnChip& chip = {}) {
  return cuda::plan_persistent(epoch_of(network), persistent, chip);
}

/// Goes over a step's jobs as the kernel does, with a name for what each float of shared memory
/// holds: whoever reads must find what was written, and no two jobs between the same barriers may
/// touch what one of them writes.
class Walk {
 public:
  explicit Walk(const PersistentPlan& plan)
      : plan_(plan), floats_(static_cast<std::size_t>(plan.bytes) / sizeof(float)) {
    for (std::size_t l = 0; l < plan.layers.size(); ++l) {
      const OnChipLayer& layer = plan.layers[l];
      const int w = (layer.out + 3) / 4 * 4 * cuda::leading_dimension(layer.in);
      for (int copy = 0; copy < (plan.places.states > 0 ? 3 : 1); ++copy) {
        const std::string name = std::to_string(copy) + " of " + std::to_string(l);
        define(layer.w + copy * plan.places.states, w, "w" + name);
        define(layer.bias + copy * plan.places.states, layer.out, "bias" + name);
      }
    }
    define(plan.layers[0].x, 2 * plan.places.inputs, "x");
    define(plan.places.labels, 2 * plan.places.labels_next, "labels");
    if (plan.places.states > 0) {
      define(plan.places.factors, 2, "factors");
    }
  }

  void step(const OnChipStep& step) {
    batch_ = step.batch;
    for (int j = 0; j < step.jobs; ++j) {
      const Job& job = step.job[j];
      if (job.kind == Kind::barrier) {
        ++barriers;
        readers_.clear();
        writers_.clear();
      } else {
        ++number_;
        run(job);
      }
    }
  }

  int barriers = 0;

 private:
  void run(const Job& job) {
    const std::size_t l = job.layer;
    const OnChipLayer& layer = plan_.layers[l];
    const std::string me = std::to_string(l);
    const auto x = [&] {
      l == 0 ? reads(layer.x, 2 * plan_.places.inputs, "x")
             : reads(layer.x, matrix(layer.in), "y" + std::to_string(l - 1));
    };
    const auto w = [&] {
      reads(layer.w, layer.out * cuda::leading_dimension(layer.in), "w0 of " + me);
    };
    switch (job.kind) {
      case Kind::forward:
        x();
        w();
        writes(layer.y, matrix(layer.out), "y" + me);
        break;
      case Kind::loss:
        reads(layer.y, matrix(layer.out), "y" + me);
        writes(layer.dy, matrix(layer.out), "dy" + me);
        writes(plan_.places.row_losses, batch_, "row losses");
        break;
      case Kind::mean_loss:
        reads(plan_.places.row_losses, batch_, "row losses");
        break;
      case Kind::dx:
        x();
        w();
        reads(layer.dy, matrix(layer.out), "dy" + me);
        writes(layer.dx, matrix(layer.in), "dy" + std::to_string(l - 1));
        break;
      case Kind::dw:
        x();
        reads(layer.dy, matrix(layer.out), "dy" + me);
        writes(layer.w, layer.out * cuda::leading_dimension(layer.in), "w0 of " + me);
        break;
      case Kind::dbias:
        reads(layer.dy, matrix(layer.out), "dy" + me);
        break;
      default:
        break;
    }
  }

  [[nodiscard]] int matrix(int columns) const { return batch_ * cuda::leading_dimension(columns); }

  void define(int at, int count, const std::string& what) {
    for (int i = at; i < at + count; ++i) {
      std::string& holds = floats_.at(static_cast<std::size_t>(i));
      ASSERT_EQ(holds, "") << what << " lies on it";
      holds = what;
    }
  }

  void reads(int at, int count, const std::string& what) {
    for (int i = at; i < at + count; ++i) {
      ASSERT_EQ(floats_.at(static_cast<std::size_t>(i)), what) << "read at " << i;
      ASSERT_TRUE(!writers_.contains(i) || writers_[i] == number_) << what << " is being written";
      readers_[i].insert(number_);
    }
  }

  void writes(int at, int count, const std::string& what) {
    for (int i = at; i < at + count; ++i) {
      std::string& holds = floats_.at(static_cast<std::size_t>(i));
      ASSERT_FALSE(holds.starts_with("w") != what.starts_with("w") || holds == "x" ||
                   holds == "labels" || holds.starts_with("bias"))
          << what << " over " << holds;
      ASSERT_TRUE(!writers_.contains(i)) << what << " and another are written between two barriers";
      ASSERT_TRUE(readers_[i].empty() || readers_[i] == std::set{number_})
          << holds << " is being read where " << what << " is written";
      writers_[i] = number_;
      holds = what;
    }
  }

  const PersistentPlan& plan_;
  std::vector<std::string> floats_;
  std::map<int, std::set<int>> readers_;
  std::map<int, int> writers_;
  int number_ = 0;
  int batch_ = 0;
};

class PersistentPlaces : public testing::TestWithParam<std::pair<const char*, std::int64_t>> {};

TEST_P(PersistentPlaces, LetNothingBeOverwrittenThatIsStillRead) {
  const auto& [network, kilobytes] = GetParam();
  if (thinned() && kilobytes > 100) {
    GTEST_SKIP() << "walks through every number: without sanitizers, or with CROSSOVER_TEST_ALL";
  }
  const OnChip chip{.shared_bytes = kilobytes << 10U};
  const PersistentPlan plan = plan_of(network, chip);
  EXPECT_EQ(plan.bytes <= chip.shared_bytes, plan.is_on_chip());
  Walk walk(plan);
  for (const OnChipStep& step : plan.steps) {
    walk.step(step);
    walk.step(step);
    ASSERT_FALSE(HasFatalFailure());
  }
}

// Sizes of shared memory that GPUs have, but for one that makes disc-6 take the other phases.
INSTANTIATE_TEST_SUITE_P(Cuda, PersistentPlaces,
                         testing::Values(std::pair{"disc-2", 99}, std::pair{"disc-3", 64},
                                         std::pair{"disc-5", 99}, std::pair{"disc-6", 110},
                                         std::pair{"disc-6", 163}, std::pair{"disc-7", 227},
                                         std::pair{"heart", 64}, std::pair{"disc-8", 227},
                                         std::pair{"heart", 1}),
                         [](const auto& parameters) {
                           std::string name = parameters.param.first;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + "_in_" + std::to_string(parameters.param.second);
                         });

TEST(PersistentPlan, HasTwoBarriersALayerAndOneMoreWherePhasesOverlap) {
  const auto barriers = [](const PersistentPlan& plan) {
    Walk walk(plan);
    walk.step(plan.steps.front());
    return walk.barriers;
  };
  EXPECT_EQ(barriers(plan_of("disc-2")), 2 * 2 + 1);
  EXPECT_EQ(barriers(plan_of("disc-6")), 2 * 6 + 1);
  EXPECT_EQ(barriers(plan_of("disc-7")), 7 + 1 + 2 * 7 - 1) << "too large to overlap them";
}

TEST(PersistentPlan, TakesOneMultiprocessorUpToDisc7AndAllUpToDisc11) {
  const auto multiprocessors = [](const char* network) {
    return cuda_multiprocessors(epoch_of(network), persistent);
  };
  for (const char* network :
       {"disc-2", "disc-3", "disc-4", "disc-5", "disc-6", "disc-7", "heart"}) {
    EXPECT_EQ(multiprocessors(network), 1) << network;
  }
  for (const char* network : {"disc-8", "disc-9", "disc-10", "disc-11"}) {
    EXPECT_EQ(multiprocessors(network), 0) << network;
    EXPECT_EQ(cuda_launches(epoch_of(network), persistent), 1) << network;
  }
  for (const char* network : {"disc-12", "fcn-r", "alexnet-r", "lstm"}) {
    EXPECT_THROW(multiprocessors(network), Unsupported) << network;
  }
}

/// Of the same phases of the block, so that eight rows' vectors lie in different banks.
TEST(PersistentPlan, PutsRowsAnOddNumberOfVectorsApart) {
  for (int columns = 1; columns < 300; ++columns) {
    const int next = cuda::leading_dimension(columns);
    EXPECT_GE(next, columns);
    EXPECT_LE(next, columns + 7);
    EXPECT_EQ(next % 8, 4);
  }
}

TEST(PersistentPlan, SplitsEveryProductIntoTilesAndLanesThatTheKernelHas) {
  for (const char* network : {"disc-2", "disc-7", "heart"}) {
    for (const int threads : {32, 512}) {
      const PersistentPlan plan = plan_of(network, {.threads = threads});
      EXPECT_LE(plan.threads, threads);
      for (const OnChipStep& step : plan.steps) {
        for (int j = 0; j < step.jobs; ++j) {
          const Job& job = step.job[j];
          EXPECT_TRUE(job.rows == 1 || job.rows == 2 || job.rows == 4);
          EXPECT_TRUE(job.lanes > 0 && job.lanes <= 32 && (job.lanes & (job.lanes - 1)) == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace crossover::test
