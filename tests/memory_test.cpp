// SPDX-License-Identifier: Apache-2.0
#include "crossover/memory.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "crossover/machine.h"
#include "support.h"

namespace crossover::test {
namespace {

Workload epoch(std::int64_t rows, std::int64_t accumulate) {
  return fuse(training_epoch(
      residual_model(),
      {.rows = rows, .batch = 5, .optimizer = AdamWOptions{}, .accumulate = accumulate}));
}

/// Runs the order twice and says whose values each line of the block holds.
class Owners {
 public:
  Owners(const Workload& workload, const MemoryPlan& plan)
      : workload_(workload),
        plan_(plan),
        owners_(static_cast<std::size_t>(plan.bytes / MemoryPlan::alignment), none) {}

  void run() {
    for (const crossover::Run& run : workload_.order) {
      for (const Op& op : workload_.steps[static_cast<std::size_t>(run.step)].ops) {
        const Operands used = operands(op);
        for (const Id id : used.reads) {
          expect_owner(id, name(op));
        }
        for (const Id id : used.writes) {
          take(id);
        }
        for (const Id id : used.writes) {  // no two of them, and nothing that is read, share memory
          expect_owner(id, name(op));
        }
        for (const Id id : used.reads) {
          expect_owner(id, name(op));
        }
      }
    }
  }

  void take(Id id) {
    for (Id& owner : lines(id)) {
      owner = id;
    }
  }

 private:
  std::span<Id> lines(Id id) {
    if (workload_[id].role == Role::input) {
      return {};
    }
    const std::int64_t at = plan_.offset[static_cast<std::size_t>(id)];
    EXPECT_GE(at, 0) << workload_[id].name;
    EXPECT_EQ(at % MemoryPlan::alignment, 0);
    const std::int64_t end =
        (at + bytes(workload_[id]) + MemoryPlan::alignment - 1) / MemoryPlan::alignment;
    EXPECT_LE(end, std::ssize(owners_));
    return std::span(owners_).subspan(static_cast<std::size_t>(at / MemoryPlan::alignment),
                                      static_cast<std::size_t>(end - at / MemoryPlan::alignment));
  }

  void expect_owner(Id id, const std::string& op) {
    for (const Id owner : lines(id)) {
      ASSERT_EQ(owner, id) << op << " finds values of "
                           << (owner == none ? "nobody" : workload_[owner].name) << " in "
                           << workload_[id].name;
    }
  }

  const Workload& workload_;
  const MemoryPlan& plan_;
  std::vector<Id> owners_;
};

void expect_nothing_overwritten(const Workload& workload) {
  const MemoryPlan plan = plan_memory(workload);
  Owners owners(workload, plan);
  for (const Role role : {Role::data, Role::parameter, Role::gradient, Role::state, Role::loss}) {
    for (const Id id : tensors_of(workload, role)) {
      owners.take(id);
    }
  }
  owners.run();
  owners.run();
}

TEST(MemoryPlan, KeepsWhatIsStillRead) {
  for (const std::int64_t accumulate : {1, 3}) {
    expect_nothing_overwritten(epoch(13, accumulate));
  }
}

TEST(MemoryPlan, ReusesMemoryOfActivationsThatNobodyReadsAnyMore) {
  OneOp chain;
  const Shape shape{1000};
  Id last = chain.tensor("x", shape, Role::data);
  Step step;
  for (int i = 0; i < 10; ++i) {
    const Id next = chain.tensor("y" + std::to_string(i), shape);
    step.ops.emplace_back(Activate{.x = last, .y = next, .activation = Activation::relu});
    last = next;
  }
  chain.workload.steps = {step};
  chain.workload.order = {{}};
  expect_nothing_overwritten(chain.workload);
  const std::int64_t line = 4032;  // 4000 bytes, and what aligns them
  EXPECT_EQ(plan_memory(chain.workload).bytes, 3 * line);
}

TEST(MemoryPlan, KeepsWhatWasUploadedAndResults) {
  OneOp one;
  const Shape shape{100};
  const Id uploaded = one.tensor("uploaded", shape);
  const Id early = one.tensor("early", shape);
  const Id late = one.tensor("late", shape);
  const Id result = one.tensor("result", shape);
  Step step;
  step.ops = {Activate{.x = uploaded, .y = early, .activation = Activation::relu},
              Activate{.x = early, .y = result, .activation = Activation::relu},
              Activate{.x = uploaded, .y = late, .activation = Activation::relu}};
  one.workload.steps = {step};
  one.workload.order = {{}};
  const std::vector<std::int64_t> at = plan_memory(one.workload).offset;
  const auto place = [&](Id id) { return at[static_cast<std::size_t>(id)]; };
  EXPECT_EQ(std::set<std::int64_t>({place(uploaded), place(result), place(late)}).size(), 3);
  EXPECT_EQ(place(late), place(early));
}

TEST(MemoryPlan, SharesActivationsBetweenSteps) {
  // The short last batch needs less than the full ones before it: nothing is added for it but its
  // rows.
  const MemoryPlan with = plan_memory(epoch(13, 1));
  const MemoryPlan without = plan_memory(epoch(10, 1));
  EXPECT_LE(with.bytes - without.bytes, 4 * MemoryPlan::alignment);
}

TEST(MemoryPlan, LaysParametersGradientsAndStatesInParallel) {
  const Workload workload = epoch(10, 1);
  const MemoryPlan plan = plan_memory(workload);
  const auto parameters = tensors_of(workload, Role::parameter);
  const auto gradients = tensors_of(workload, Role::gradient);
  const auto states = tensors_of(workload, Role::state);
  const auto at = [&](Id id) { return plan.offset[static_cast<std::size_t>(id)]; };
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(at(parameters[i]) - at(parameters[0]), at(gradients[i]) - at(gradients[0]));
    EXPECT_EQ(at(parameters[i]) - at(parameters[0]), at(states[i]) - at(states[0]));
  }
}

TEST(MemoryPlan, GivesEachTensorTheBytesThatItsDeviceAsksFor) {
  const Workload workload = epoch(13, 1);
  std::vector<std::int64_t> physical;
  for (const Tensor& tensor : workload.tensors) {
    physical.push_back(2 * bytes(tensor) + 1);
  }
  const MemoryPlan plan = plan_memory(workload, physical);
  for (const Role role : {Role::parameter, Role::gradient, Role::state}) {
    const std::vector<Id> ids = tensors_of(workload, role);
    for (std::size_t i = 1; i < ids.size(); ++i) {
      const auto before = static_cast<std::size_t>(ids[i - 1]);
      EXPECT_GE(plan.offset[static_cast<std::size_t>(ids[i])] - plan.offset[before],
                physical[before]);
    }
  }
  EXPECT_GT(plan.bytes, 2 * plan_memory(workload).bytes - 64 * std::ssize(workload.tensors));
}

TEST(MemoryPlan, StreamsInputsThroughSeveralBuffersAndHoldsNoData) {
  const Workload workload = epoch(13, 1);
  const StreamedMemoryPlan streamed = plan_streamed_memory(workload, 2);
  std::int64_t inputs_end = 0;
  for (const Id id : tensors_of(workload, Role::input)) {
    const std::int64_t at = streamed.plan.offset[static_cast<std::size_t>(id)];
    ASSERT_GE(at, 0);
    inputs_end = std::max(inputs_end, at + bytes(workload[id]));
  }
  EXPECT_LE(inputs_end, streamed.input_bytes);
  for (const Id id : tensors_of(workload, Role::data)) {
    EXPECT_EQ(streamed.plan.offset[static_cast<std::size_t>(id)], -1);
  }
  for (const Id id : tensors_of(workload, Role::parameter)) {
    EXPECT_GE(streamed.plan.offset[static_cast<std::size_t>(id)], 2 * streamed.input_bytes);
  }
}

TEST(MemoryPlan, RefusesWhatDoesNotFit63Bits) {
  OneOp one;
  const Shape huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
  const Id x = one.tensor("x", huge);
  one.operation(Activate{.x = x, .y = one.tensor("y", huge), .activation = Activation::relu});
  EXPECT_THROW(static_cast<void>(plan_memory(one.workload)), std::overflow_error);
}

TEST(AvailableMemory, IsSomethingAndNotMoreThanExists) {
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LE(available_memory_bytes(), total_memory_bytes());
  EXPECT_LT(total_memory_bytes(), std::int64_t{1} << 50);
}

/// Files below a folder of their own, as /proc and /sys/fs/cgroup have them.
class Groups : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(root_); }

  ControlGroup with(const std::string& own,
                    const std::vector<std::pair<std::string, std::string>>& files) {
    std::filesystem::remove_all(root_);
    write("proc/self/cgroup", own);
    for (const auto& [path, text] : files) {
      write("sys/fs/cgroup/" + path, text);
    }
    return control_group(root_);
  }

 private:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("crossover-groups-" + std::to_string(getpid()));
};

TEST_F(Groups, WithoutLimitsLeaveAll) {
  for (const ControlGroup& none :
       {with("", {}), with("0::/\n", {{"memory.max", "max"}, {"cpu.max", "max 100000"}}),
        with("4:memory:/\n3:cpu,cpuacct:/\n",
             {{"memory/memory.limit_in_bytes", "9223372036854771712"},
              {"memory/memory.usage_in_bytes", "5000"},
              {"cpu,cpuacct/cpu.cfs_quota_us", "-1"},
              {"cpu,cpuacct/cpu.cfs_period_us", "100000"}})}) {
    EXPECT_EQ(none.memory_bytes, ControlGroup::unlimited);
    EXPECT_EQ(none.memory_left_bytes, ControlGroup::unlimited);
    EXPECT_FALSE(none.quota);
  }
}

TEST_F(Groups, FilesThatWereReadAreNotUsedMemory) {
  const ControlGroup second = with("0::/\n", {{"memory.max", "1000"},
                                              {"memory.current", "950"},
                                              {"memory.stat", "anon 50\ninactive_file 900"},
                                              {"cpu.max", "150000 100000"}});
  EXPECT_EQ(second.memory_bytes, 1000);
  EXPECT_EQ(second.memory_left_bytes, 950);
  EXPECT_EQ(second.quota, 1.5);
  const ControlGroup first = with("4:memory:/docker/a\n3:cpu,cpuacct:/docker/a\n",
                                  {{"memory/memory.limit_in_bytes", "1000"},
                                   {"memory/memory.usage_in_bytes", "950"},
                                   {"memory/memory.stat", "total_inactive_file 900"},
                                   {"cpu,cpuacct/cpu.cfs_quota_us", "100000"},
                                   {"cpu,cpuacct/cpu.cfs_period_us", "100000"}});
  EXPECT_EQ(first.memory_left_bytes, 950);
  EXPECT_EQ(first.quota, 1);
}

TEST_F(Groups, TheTightestOfThoseAroundCounts) {
  const ControlGroup slice =
      with("0::/user.slice/run.scope\n", {{"user.slice/memory.max", "1000"},
                                          {"user.slice/memory.current", "400"},
                                          {"user.slice/cpu.max", "50000 100000"},
                                          {"user.slice/run.scope/memory.max", "max"},
                                          {"user.slice/run.scope/cpu.max", "200000 100000"}});
  EXPECT_EQ(slice.memory_left_bytes, 600);
  EXPECT_EQ(slice.quota, 0.5);
  const ControlGroup v1 = with("4:memory:/a/b\n", {{"memory/a/memory.limit_in_bytes", "1000"},
                                                   {"memory/a/b/memory.limit_in_bytes", "700"}});
  EXPECT_EQ(v1.memory_bytes, 700);
  // Of a container whose namespace shows a group outside of what is mounted.
  EXPECT_EQ(with("0::/../../other\n", {{"memory.max", "1000"}}).memory_bytes, 1000);
}

}  // namespace
}  // namespace crossover::test
