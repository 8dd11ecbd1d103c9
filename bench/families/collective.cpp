// SPDX-License-Identifier: Apache-2.0
// Family Collective: what ranks need to sum values over all of them, by itself.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crossover/extensions.h"
#include "crossover/shared_training.h"
#include "families/device.h"
#include "families/families.h"
#include "families/work.h"
#include "rows/row.h"

namespace crossover::bench {
namespace {

class PreparedSum : public PreparedBenchmark {
 public:
  explicit PreparedSum(std::unique_ptr<Program> program, std::int64_t floats)
      : program_(std::move(program)), floats_(static_cast<std::size_t>(floats)) {}

  /// Zeros: any other number would grow with each sum.
  void start() override {
    upload([](std::size_t /*i*/) { return 0.0F; });
  }
  void expect(std::int64_t iterations) override { expect_passes(*program_, iterations); }
  std::vector<double> seconds_of_ranks() override { return seconds_of_passes(*program_); }
  void run() override {
    program_->enqueue(0, 1);
    program_->wait();
  }

  /// Small whole numbers, another one on each rank, have exact sums. Throws Mismatch.
  void verify(int ranks) {
    constexpr std::size_t period = 1009;
    const auto value = [](std::size_t i) { return static_cast<float>(i % period); };
    upload(value);
    run();
    std::vector<float> sums(floats_);
    program_->download(0, std::as_writable_bytes(std::span(sums)));
    const int numbers = ranks * (ranks + 1) / 2;  // 1 + 2 + ... of each rank
    const auto factor = static_cast<float>(numbers);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (sums[i] != factor * value(i)) {
        throw Mismatch("the sum of value " + std::to_string(i) + " over the ranks is " +
                       std::to_string(sums[i]) + ", not " + std::to_string(factor * value(i)));
      }
    }
  }

 private:
  template <class Value>
  void upload(const Value& value) {
    std::vector<float> values(floats_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = value(i);
    }
    program_->upload(0, std::as_bytes(std::span(std::as_const(values))));
  }

  std::unique_ptr<Program> program_;
  const std::size_t floats_;
};

}  // namespace

std::unique_ptr<PreparedBenchmark> make_collective(RowContext& context, const RowSpec& row,
                                                   Result& result) {
  const Target target = target_of(row, context.devices);
  if (target.joined == nullptr) {
    throw std::logic_error("a row of several ranks is made by one of them");
  }
  const std::int64_t bytes = value_of(row, &RowSpec::bytes);
  const auto floats = bytes / static_cast<std::int64_t>(sizeof(float));
  const Backend* gpu = target.device->has_own_memory() ? target.device->backend.get() : nullptr;
  auto made = std::make_unique<PreparedSum>(
      make_shared_sum(*target.joined, floats, gpu, configuration_json(row).dump()), floats);
  verify_or_note(result, [&] { made->verify(target.ranks); });
  result.verification.reference = "every sum of whole numbers, bit for bit, on all ranks alike";
  result.counters["bytes"] = static_cast<double>(bytes);
  result.counters["count"] = 1;
  result.counters["ranks"] = target.ranks;
  return made;
}

void register_collectives(const Arguments& arguments, Devices& devices, Rows& rows) {
  constexpr std::int64_t least = 4;
  constexpr std::int64_t most = 64 << 20;
  constexpr std::int64_t step = 16;
  for (const int ranks : arguments.ranks) {
    for (std::int64_t bytes = least; ranks > 1 && bytes <= most; bytes *= step) {
      for (Device& device : devices.all) {
        Row row{.spec = {.family = RowFamily::collective,
                         .op = CollectiveOp::allreduce,
                         .bytes = bytes,
                         .device = device.name(),
                         .ranks = ranks},
                .device = &device,
                .expected =
                    expected_seconds(device, 1, arguments.sweep.effort, arguments.sweep.most_passes,
                                     {.bytes_copied = static_cast<double>(bytes)}),
                .warnings =
                    device.has_threads() ? doubts_about_threads(1, ranks) : doubts_about_gpus()};
        if (arguments.mixed) {
          row.warnings.emplace_back(ranks_are_mixed);
        }
        rows.add(std::move(row));
      }
    }
  }
}

}  // namespace crossover::bench
