// SPDX-License-Identifier: Apache-2.0
#include "shared_sum.h"

#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace crossover {
namespace {

/// The rank's own.
std::vector<float> multiplied(const Ranks& ranks, std::span<const std::byte> from) {
  std::vector<float> values(from.size() / sizeof(float));
  std::memcpy(values.data(), from.data(), from.size());
  for (float& value : values) {
    value *= static_cast<float>(ranks.rank() + 1);
  }
  return values;
}

/// The ranks' sum of one tensor, by itself, in the host's memory.
class SumProgram : public Program {
 public:
  SumProgram(Ranks& ranks, std::int64_t floats)
      : ranks_(ranks), values_(static_cast<std::size_t>(floats)) {}

  void upload(Id /*id*/, std::span<const std::byte> from) override {
    values_ = multiplied(ranks_, from);
  }
  void download(Id /*id*/, std::span<std::byte> to) override {
    std::memcpy(to.data(), values_.data(), to.size());
  }
  void enqueue(std::int64_t /*first*/, std::int64_t /*count*/) override { ranks_.sum(values_); }
  void wait() override {}
  Profile profile() override { return {}; }

 private:
  Ranks& ranks_;
  std::vector<float> values_;
};

/// The same as a Program of the GPU.
class SumOnGpu : public Program {
 public:
  SumOnGpu(Ranks& ranks, std::unique_ptr<Program> sum)
      : Program(sum->facts()), ranks_(ranks), sum_(std::move(sum)) {}

  void upload(Id id, std::span<const std::byte> from) override {
    const std::vector<float> values = multiplied(ranks_, from);
    sum_->upload(id, std::as_bytes(std::span(values)));
  }
  void download(Id id, std::span<std::byte> to) override { sum_->download(id, to); }
  void enqueue(std::int64_t first, std::int64_t count) override { sum_->enqueue(first, count); }
  void wait() override { sum_->wait(); }
  Profile profile() override { return sum_->profile(); }

 private:
  Ranks& ranks_;
  std::unique_ptr<Program> sum_;
};

}  // namespace

std::unique_ptr<Share> sum_of(Ranks& ranks, std::int64_t floats, const Backend* gpu) {
  Workload workload{.tensors = {{.name = "sum", .shape = {floats}, .role = Role::state}},
                    .steps = {{}},
                    .order = {{}}};
  if (gpu == nullptr) {
    return std::make_unique<Share>(std::move(workload),
                                   std::make_unique<SumProgram>(ranks, floats));
  }
  workload.steps[0].ops.emplace_back(AllReduce{.tensors = {0}, .ranks = ranks.size()});
  auto sum = std::make_unique<SumOnGpu>(ranks, gpu->compile(workload, {.ranks = &ranks}));
  return std::make_unique<Share>(std::move(workload), std::move(sum));
}

}  // namespace crossover
