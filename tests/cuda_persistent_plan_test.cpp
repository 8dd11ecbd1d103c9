// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../src/cuda/plan/persistent.h"
#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "support.h"

namespace crossover::test {

// ---- A persistent kernel's plan, carried out on names instead of numbers. Needs no CUDA.

inline Workload epoch_of(const std::string& network) {
  const Task task = find_model(network);
  return fuse(training_epoch(
      task.model, {.rows = task.rows, .batch = task.batch, .optimizer = task.optimizer}));
}

inline cuda::PersistentPlan persistent_plan(const std::string& network,
                                            const cuda::OnChip& chip = {},
                                            std::int64_t copies = 1) {
  return cuda::plan_persistent(epoch_of(network),
                               {.execution = Execution::persistent, .copies = copies}, chip);
}

/// The blocks that share out the rows of a batch.
inline int memories(const cuda::PersistentPlan& plan) {
  return plan.team == cuda::TeamKind::cluster ? plan.blocks : 1;
}

/// Goes over a step's jobs as the kernel does, with a name for what each float of shared memory
/// holds, of a cluster that of the block with the most rows: whoever reads must find what was
/// written, and no two jobs between the same barriers may touch what one of them writes. What all
/// of a cluster touch needs a barrier of all before and behind it.
class Walk {
 public:
  explicit Walk(const cuda::PersistentPlan& plan)
      : plan_(plan), floats_(static_cast<std::size_t>(plan.bytes) / sizeof(float)) {
    for (std::size_t l = 0; l < plan.layers.size(); ++l) {
      const cuda::OnChipLayer& layer = plan.layers[l];
      const int w = (layer.out + 3) / 4 * 4 * cuda::leading_dimension(layer.in);
      for (int copy = 0; copy <= plan.places.states; ++copy) {
        const std::string name = std::to_string(copy) + " of " + std::to_string(l);
        define(layer.w + copy * plan.places.parameters, w, "w" + name);
        define(layer.bias + copy * plan.places.parameters, layer.out, "bias" + name);
      }
    }
    define(plan.layers[0].x, 2 * plan.places.inputs, "x");
    define(plan.places.wanted, 2 * plan.places.wanted_next, "wanted");
    if (plan.places.gradients > 0) {
      define(plan.places.gradients, plan.places.parameters, "gradients");
    }
    if (plan.places.rule == cuda::KernelRule::adamw) {
      define(plan.places.factors, 2, "factors");
    }
  }

  void step(const cuda::OnChipStep& step) {
    const auto batch = static_cast<int>(plan_.dense.front().batch);
    batch_ = (batch + memories(plan_) - 1) / memories(plan_);
    for (int j = 0; j < step.jobs; ++j) {
      const cuda::Job& job = step.job[j];
      if (job.kind == cuda::Job::Kind::barrier || job.kind == cuda::Job::Kind::exchange) {
        ++barriers;
        readers_.clear();
        writers_.clear();
        if (job.kind == cuda::Job::Kind::exchange) {
          ++exchanges;
          since_exchange_.clear();
        } else {
          EXPECT_FALSE(all_meet_) << "others may still read or write here";
        }
        all_meet_ = false;
      } else {
        ++number_;
        run(job);
      }
    }
  }

  int barriers = 0, exchanges = 0;

 private:
  void run(const cuda::Job& job) {
    if (plan_.team == cuda::TeamKind::cluster) {
      const bool is_of_all =
          job.kind == cuda::Job::Kind::update || job.kind == cuda::Job::Kind::mean_loss;
      all_meet_ |= is_of_all;
      if (is_of_all) {
        EXPECT_TRUE(since_exchange_.empty()) << "others may not have come that far";
      } else {
        since_exchange_.insert(number_);
      }
    }
    const std::size_t l = job.layer;
    const cuda::OnChipLayer& layer = plan_.layers[l];
    const std::string me = std::to_string(l);
    const auto x = [&] {
      l == 0 ? reads(layer.x, 2 * plan_.places.inputs, "x")
             : reads(layer.x, matrix(layer.in), "y" + std::to_string(l - 1));
    };
    const auto w = [&] {
      reads(layer.w, layer.out * cuda::leading_dimension(layer.in), "w0 of " + me);
    };
    switch (job.kind) {
      case cuda::Job::Kind::forward:
        x();
        w();
        writes(layer.y, matrix(layer.out), "y" + me);
        break;
      case cuda::Job::Kind::loss:
        reads(layer.y, matrix(layer.out), "y" + me);
        writes(layer.dy, matrix(layer.out), "dy" + me);
        writes(plan_.places.row_losses, batch_, "row losses");
        break;
      case cuda::Job::Kind::mean_loss:
        reads(plan_.places.row_losses, batch_, "row losses");
        break;
      case cuda::Job::Kind::dx:
        x();
        w();
        reads(layer.dy, matrix(layer.out), "dy" + me);
        writes(layer.dx, matrix(layer.in), "dy" + std::to_string(l - 1));
        break;
      case cuda::Job::Kind::dw:
        x();
        reads(layer.dy, matrix(layer.out), "dy" + me);
        if (plan_.places.gradients > 0) {
          writes(layer.w + plan_.places.gradients, layer.out * cuda::leading_dimension(layer.in),
                 "gradients");
        } else {
          writes(layer.w, layer.out * cuda::leading_dimension(layer.in), "w0 of " + me);
        }
        break;
      case cuda::Job::Kind::update:
        reads(plan_.places.gradients, plan_.places.parameters, "gradients");
        for (std::size_t i = 0; i < plan_.layers.size(); ++i) {
          const cuda::OnChipLayer& one = plan_.layers[i];
          writes(one.w, one.out * cuda::leading_dimension(one.in), "w0 of " + std::to_string(i));
        }
        break;
      case cuda::Job::Kind::dbias:
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
      ASSERT_FALSE(holds.starts_with("gradients") != what.starts_with("gradients"))
          << what << " over " << holds;
      ASSERT_FALSE(holds.starts_with("w") != what.starts_with("w") || holds == "x" ||
                   holds == "wanted" || holds.starts_with("bias"))
          << what << " over " << holds;
      ASSERT_TRUE(!writers_.contains(i)) << what << " and another are written between two barriers";
      ASSERT_TRUE(readers_[i].empty() || readers_[i] == std::set{number_})
          << holds << " is being read where " << what << " is written";
      writers_[i] = number_;
      holds = what;
    }
  }

  const cuda::PersistentPlan& plan_;
  std::vector<std::string> floats_;
  std::map<int, std::set<int>> readers_;
  std::map<int, int> writers_;
  std::set<int> since_exchange_;  ///< jobs of single blocks
  bool all_meet_ = false;         ///< in the phase
  int number_ = 0;
  int batch_ = 0;
};

// ---- Who trains a network in one kernel, and how its jobs are shared out. Needs no CUDA.

namespace {

using cuda::Job;
using cuda::OnChip;
using cuda::OnChipStep;
using cuda::PersistentPlan;
using cuda::TeamKind;

constexpr CompileOptions persistent{.execution = Execution::persistent};

/// "1", "8" or "all": of multiprocessors.
std::string team_of(const std::string& network, const OnChip& chip) {
  const PersistentPlan plan = persistent_plan(network, chip);
  EXPECT_EQ(plan.is_on_chip(), plan.bytes <= chip.shared_bytes) << network;
  EXPECT_EQ(plan.team == TeamKind::block, plan.blocks == 1) << network;
  return plan.team == TeamKind::grid ? "all" : std::to_string(plan.blocks);
}

/// One block trains alone where meeting takes more than what the others compute, a cluster what
/// neither one block holds nor all multiprocessors are needed for.
TEST(PersistentPlan, TakesTheTeamThatTheNetworkNeeds) {
  struct Teams {
    OnChip chip;
    std::string team;
    std::vector<const char*> networks;
  };
  const OnChip alone{.cluster_blocks = 1};
  const OnChip small{.shared_bytes = 99 << 10};  // of capability 12.0
  for (const auto& [chip, team, networks] : std::vector<Teams>{
           {alone, "1", {"disc-2", "disc-3", "disc-4", "disc-5", "disc-6", "disc-7", "heart"}},
           {alone, "all", {"disc-7x1.125", "disc-8", "disc-9", "disc-10", "disc-11"}},
           {{}, "1", {"disc-2", "disc-3", "heart"}},
           {{}, "8", {"disc-4", "disc-5", "disc-6", "disc-7", "disc-7x1.125", "disc-7x1.25"}},
           {{}, "all", {"disc-7x1.5", "disc-8", "disc-11"}},
           {small, "8", {"disc-6"}},
           {small, "all", {"disc-7"}},
           {{.cluster_blocks = 2}, "2", {"disc-7"}},
           {{.cluster_blocks = 4}, "4", {"disc-7"}}}) {
    for (const char* network : networks) {
      EXPECT_EQ(team_of(network, chip), team) << network;
    }
  }
  for (const int multiprocessors : {58, 108, 148}) {
    EXPECT_EQ(persistent_plan("disc-9", {.multiprocessors = multiprocessors}).blocks,
              multiprocessors);
  }
}

/// The more of them share a device of 128 multiprocessors, the fewer each has.
TEST(PersistentPlan, LeavesOtherCopiesTheirMultiprocessors) {
  int before = 8;
  for (const std::int64_t copies : {1, 16, 32, 64, 128, 1024}) {
    const int blocks = persistent_plan("disc-7", {}, copies).blocks;
    EXPECT_LE(blocks, before) << copies;
    before = blocks;
  }
  EXPECT_EQ(persistent_plan("disc-7", {}, 16).blocks, 8);
  EXPECT_EQ(persistent_plan("disc-7", {}, 128).blocks, 1);
}

TEST(PersistentPlan, CountsItsMultiprocessors) {
  const auto gpu = make_planned_gpu();
  const auto estimate = [&](const char* network) {
    return gpu->estimate(epoch_of(network), persistent);
  };
  const auto multiprocessors = [&](const char* network) {
    return estimate(network).multiprocessors;
  };
  EXPECT_EQ(multiprocessors("disc-2"), 1);
  EXPECT_EQ(multiprocessors("disc-7"), 8);
  EXPECT_EQ(multiprocessors("disc-8"), 0) << "all";
  EXPECT_EQ(estimate("disc-7").launches, 1);
  EXPECT_EQ(estimate("disc-8").launches, 1);
  for (const char* network : {"disc-12", "fcn-r", "alexnet-r", "lstm"}) {
    EXPECT_THAT([&] { static_cast<void>(multiprocessors(network)); },
                testing::Throws<Unsupported>())
        << network;
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
      const PersistentPlan plan = persistent_plan(network, {.threads = threads});
      EXPECT_LE(plan.threads, threads);
      for (const OnChipStep& step : plan.steps) {
        for (int j = 0; j < step.jobs; ++j) {
          const Job& job = step.job[j];
          EXPECT_TRUE(job.rows == 1 || job.rows == 2 || job.rows == 4);
          EXPECT_LE(job.lanes_log2, 5);
        }
      }
    }
  }
}

// ---- What one multiprocessor or each of a cluster holds from barrier to barrier. Needs no CUDA.

/// A network, the kilobytes of a block, the blocks of the largest cluster.
struct Place {
  const char* network;
  std::int64_t kilobytes;
  int cluster_blocks = 1;
};

class PersistentPlaces : public testing::TestWithParam<Place> {};

TEST_P(PersistentPlaces, LetNothingBeOverwrittenThatIsStillRead) {
  const auto& [network, kilobytes, cluster_blocks] = GetParam();
  if (thinned() && kilobytes > 100) {
    GTEST_SKIP() << "walks through every number: without sanitizers, or with CROSSOVER_TEST_ALL";
  }
  const OnChip chip{.shared_bytes = kilobytes << 10U, .cluster_blocks = cluster_blocks};
  const PersistentPlan plan = persistent_plan(network, chip);
  EXPECT_EQ(plan.bytes <= chip.shared_bytes, plan.is_on_chip());
  EXPECT_EQ(plan.team == TeamKind::cluster, cluster_blocks > 1);
  Walk walk(plan);
  for (const OnChipStep& step : plan.steps) {
    walk.step(step);
    walk.step(step);
    ASSERT_FALSE(HasFatalFailure());
  }
}

// Sizes of shared memory that GPUs have, but for those that make disc-6 take the other phases and
// disc-5 a cluster of two.
INSTANTIATE_TEST_SUITE_P(
    Cuda, PersistentPlaces,
    testing::Values(Place{"disc-2", 99}, Place{"disc-3", 64}, Place{"disc-5", 99},
                    Place{"disc-6", 110}, Place{"disc-6", 163}, Place{"disc-7", 227},
                    Place{"heart", 64}, Place{"disc-8", 227}, Place{"heart", 1},
                    Place{"disc-5", 34, 2}, Place{"disc-6", 99, 4}, Place{"disc-7", 227, 8}),
    [](const auto& parameters) {
      const Place& place = parameters.param;
      std::string name = place.network;
      std::replace(name.begin(), name.end(), '-', '_');
      return name + "_in_" + std::to_string(place.kilobytes) +
             (place.cluster_blocks > 1 ? "_of_" + std::to_string(place.cluster_blocks) : "");
    });

TEST(PersistentPlan, HasTwoBarriersALayerAndOneMoreWherePhasesOverlap) {
  const auto barriers = [](const PersistentPlan& plan) {
    Walk walk(plan);
    walk.step(plan.steps.front());
    EXPECT_EQ(walk.exchanges, plan.team == TeamKind::cluster ? 2 : 0) << "barriers of all";
    return walk.barriers;
  };
  const OnChip alone{.cluster_blocks = 1};
  EXPECT_EQ(barriers(persistent_plan("disc-2", alone)), 2 * 2 + 1);
  EXPECT_EQ(barriers(persistent_plan("disc-6", alone)), 2 * 6 + 1);
  EXPECT_EQ(barriers(persistent_plan("disc-7", alone)), 7 + 1 + 2 * 7 - 1)
      << "too large to overlap them";
  const PersistentPlan of_cluster = persistent_plan("disc-7");
  ASSERT_EQ(of_cluster.team, TeamKind::cluster);
  EXPECT_EQ(barriers(of_cluster), 2 * 7 + 2);
}

}  // namespace

}  // namespace crossover::test
