// SPDX-License-Identifier: Apache-2.0
// A persistent kernel's plan, carried out on names instead of numbers. Needs no CUDA.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "../src/cuda/planning/persistent.h"
#include "crossover/catalogue.h"
#include "support.h"

namespace crossover::test {

inline Workload epoch_of(const std::string& network) {
  const Task task = find_model(network);
  return fuse(training_epoch(
      task.model, {.rows = task.rows, .batch = task.batch, .optimizer = task.optimizer}));
}

inline cuda::PersistentPlan persistent_plan(const std::string& network,
                                            const cuda::OnChip& chip = {}) {
  return cuda::plan_persistent(epoch_of(network), {.execution = Execution::persistent}, chip);
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
    if (plan.places.states == cuda::states_of_adamw) {
      define(plan.places.factors, 2, "factors");
    }
  }

  void step(const cuda::OnChipStep& step) {
    batch_ = (step.batch + memories(plan_) - 1) / memories(plan_);
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

}  // namespace crossover::test
