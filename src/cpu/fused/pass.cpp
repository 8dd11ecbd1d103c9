// SPDX-License-Identifier: Apache-2.0
// The forward pass of a network of Linear layers as one call, on one thread: weights are laid out
// beforehand, and few samples at a time go through all layers.
#include "plan.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../base/threads.h"
#include "../run/program.h"
#include "crossover/dense_training.h"
#include "kernels.h"
#include "steps.h"

namespace crossover::cpu {
namespace {

using fused::Arena;
using fused::floats_of_line;
using fused::PassLayer;
using fused::whole_lines;

/// Samples that go through all layers together: their activations stay in the first cache.
std::int64_t rows_at_once(const std::vector<DenseLayer>& layers, std::int64_t batch) {
  constexpr std::int64_t floats = 4096;
  constexpr std::int64_t fewest = 4;
  std::int64_t widest = 1;
  for (const DenseLayer& layer : layers) {
    widest = std::max(widest, whole_lines(layer.out));
  }
  return std::min(batch, std::max(fewest, floats / widest / fewest * fewest));
}

/// Whether products over the inputs take fewer multiplications of vectors, each of which loads two
/// vectors then, and not one for several samples; or whether few samples read more weights than a
/// cache holds, which arrive faster in the order in which they lie.
bool is_by_inputs(const DenseLayer& layer, std::int64_t batch) {
  constexpr std::int64_t lanes = 8;  // of the processors that most have
  constexpr std::int64_t of_sum = 4;
  constexpr std::int64_t few = 4;
  constexpr std::int64_t floats_of_cache = 1 << 18;  // the second one's, of most processors
  if (batch < few && layer.in * layer.out > floats_of_cache) {
    return true;
  }
  const auto vectors = [](std::int64_t count) { return (count + lanes - 1) / lanes; };
  const std::int64_t of_inputs = layer.out * (vectors(layer.in) + of_sum);
  return (batch < few ? 1 : 2) * of_inputs < layer.in * vectors(layer.out);
}

/// What a Program has in memory: bound to the arena's, or counted.
struct PassMemory {
  struct Parameter {
    float* at = nullptr;
    std::int64_t rows = 0, columns = 0, ld = 0;
    bool is_turned = false;  ///< stored as [columns][ld], else as [rows][ld]
  };
  std::vector<PassLayer> layers;
  std::map<Id, Parameter> parameters;
  std::map<Id, float*> plain;       ///< inputs and outputs
  std::int64_t rows = 0;            ///< that go through all layers together
  std::array<float*, 2> between{};  ///< activations of these, in turn

  PassMemory(const Workload& workload, const std::vector<DenseLayer>& from, Arena& arena) {
    const std::int64_t batch = leading(workload[from.front().x].shape);
    const Id data = workload[from.front().x].source;
    const auto take = [&](std::int64_t floats) {
      return arena.take<float>(floats + floats_of_line);
    };
    plain[data] = take(elements(workload[data].shape));
    plain[from.back().y] = take(elements(workload[from.back().y].shape));
    rows = rows_at_once(from, batch);
    std::int64_t widest = 0;
    for (const DenseLayer& layer : from) {
      const bool by_inputs = is_by_inputs(layer, batch);
      const std::int64_t ld = whole_lines(by_inputs ? layer.in : layer.out);
      float* weights = take((by_inputs ? layer.out : layer.in) * ld);
      float* bias = take(whole_lines(layer.out));
      parameters[layer.w] = {weights, layer.out, layer.in, ld, !by_inputs};
      parameters[layer.bias] = {bias, 1, layer.out, whole_lines(layer.out), false};
      layers.push_back({.in = layer.in,
                        .out = layer.out,
                        .activation = layer.activation,
                        .by_inputs = by_inputs,
                        .ld = ld,
                        .x_stride = layers.empty() ? layer.in : layers.back().y_stride,
                        .y_stride = whole_lines(layer.out),
                        .weights = weights,
                        .bias = bias});
      widest = std::max(widest, whole_lines(layer.out));
    }
    for (float*& one : between) {
      one = take(rows * widest);
    }
  }
};

class PassProgram : public Program {
 public:
  PassProgram(const Workload& workload, const std::vector<DenseLayer>& layers, std::int64_t bytes)
      : Program({.bytes = bytes, .launches = 1, .threads = 1}),
        tensors_(workload.tensors),
        order_(workload.order),
        batch_(leading(workload[layers.front().x].shape)),
        block_(allocate(bytes, 1)),
        arena_(block_.get()),
        memory_(workload, layers, arena_),
        inputs_(memory_.plain.at(workload[layers.front().x].source)),
        outputs_(memory_.plain.at(layers.back().y)),
        kernels_(fused::best_kernels()) {}

  void upload(Id id, std::span<const std::byte> from) override {
    require_size(id, from.size());
    if (const auto at = memory_.plain.find(id); at != memory_.plain.end()) {
      std::memcpy(at->second, from.data(), from.size());
      return;
    }
    const auto* plain = reinterpret_cast<const float*>(from.data());
    for_each_element(id, [&](float& stored, std::int64_t i) { stored = plain[i]; });
  }

  void download(Id id, std::span<std::byte> to) override {
    require_size(id, to.size());
    if (const auto at = memory_.plain.find(id); at != memory_.plain.end()) {
      std::memcpy(to.data(), at->second, to.size());
      return;
    }
    auto* plain = reinterpret_cast<float*>(to.data());
    for_each_element(id, [&](float& stored, std::int64_t i) { plain[i] = stored; });
  }

  void enqueue(std::int64_t first, std::int64_t count) override {
    for (std::int64_t run = first; run < first + count; ++run) {
      pass(order_[static_cast<std::size_t>(run)].first_row);
    }
  }
  void wait() override {}  // enqueue() returns when all is done

  Profile profile() override {
    const auto start = std::chrono::steady_clock::now();
    enqueue(0, std::ssize(order_));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    return {{OpCategory::product, spent.count()}};
  }

 private:
  void pass(std::int64_t first_row) const {
    const std::int64_t out = memory_.layers.back().out;
    const float* data = inputs_ + first_row * memory_.layers.front().in;
    for (std::int64_t row = 0; row < batch_; row += memory_.rows) {
      const std::int64_t rows = std::min(memory_.rows, batch_ - row);
      const float* x = data + row * memory_.layers.front().in;
      for (std::size_t i = 0; i < memory_.layers.size(); ++i) {
        float* y = memory_.between[i % 2];
        kernels_.pass(memory_.layers[i], x, y, rows);
        x = y;
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        std::copy_n(x + i * memory_.layers.back().y_stride, out, outputs_ + (row + i) * out);
      }
    }
  }

  void require_size(Id id, std::size_t size) const {
    const Tensor& tensor = tensors_.at(static_cast<std::size_t>(id));
    if ((!memory_.plain.contains(id) && !memory_.parameters.contains(id)) ||
        static_cast<std::int64_t>(size) != crossover::bytes(tensor)) {
      throw std::invalid_argument("tensor '" + tensor.name + "' can't be copied in " +
                                  std::to_string(size) + " bytes");
    }
  }

  /// visit(where it is stored, its place in the tensor).
  template <class Visit>
  void for_each_element(Id id, const Visit& visit) const {
    const PassMemory::Parameter& one = memory_.parameters.at(id);
    for (std::int64_t row = 0; row < one.rows; ++row) {
      for (std::int64_t column = 0; column < one.columns; ++column) {
        const std::int64_t at = one.is_turned ? column * one.ld + row : row * one.ld + column;
        visit(one.at[at], row * one.columns + column);
      }
    }
  }

  const std::vector<Tensor> tensors_;
  const std::vector<Run> order_;
  const std::int64_t batch_;
  const Block block_;
  Arena arena_;
  const PassMemory memory_;
  const float* const inputs_;
  float* const outputs_;
  const fused::Kernels kernels_;
};

class PassPlan : public Plan {
 public:
  explicit PassPlan(const Workload& workload)
      : workload_(workload), layers_(dense_pass(workload)) {}

  [[nodiscard]] std::int64_t bytes() const override {
    Arena arena;
    static_cast<void>(PassMemory(workload_, layers_, arena));
    return arena.bytes();
  }
  [[nodiscard]] std::int64_t bytes_keeping_activations() const override { return bytes(); }
  [[nodiscard]] std::int64_t launches() const override { return 1; }
  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    flush_denormals(1);  // before the first number is computed
    return std::make_unique<PassProgram>(workload_, layers_, bytes());
  }

 private:
  const Workload workload_;
  const std::vector<DenseLayer> layers_;
};

}  // namespace

std::unique_ptr<Plan> plan_pass(const Workload& workload) {
  return std::make_unique<PassPlan>(workload);
}

}  // namespace crossover::cpu
