// SPDX-License-Identifier: Apache-2.0
// The steps of a fused program, bound to memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "crossover/backend.h"
#include "crossover/dense_training.h"
#include "crossover/step.h"
#include "kernels.h"

namespace crossover::cpu::fused {

// ---- Where the tensors of a fused program lie: matrices with their samples along a line of
// memory, as kernels.h wants them, and the way in and out.

/// Hands out parts of one block, each at the start of a cache line; without a block it only counts.
class Arena {
 public:
  explicit Arena(std::byte* base = nullptr) : base_(base) {}

  template <class T>
  T* take(std::int64_t count) {
    const std::int64_t offset = bytes_;
    constexpr std::int64_t line = 64;
    bytes_ += (count * static_cast<std::int64_t>(sizeof(T)) + line - 1) / line * line;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + offset);
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* base_;
  std::int64_t bytes_ = 0;
};

/// A tensor in memory.
struct Stored {
  std::byte* at = nullptr;
  /// Of a matrix [rows, columns] whose elements lie so far apart; zero where it lies as it is.
  std::int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;
};

class Memory {
 public:
  explicit Memory(const std::vector<Tensor>& tensors)
      : tensors_(tensors), stored_(tensors.size()) {}

  /// The matrix, or a vector of that many elements as a matrix of one column; with `ld` floats for
  /// each column, and room for whole tiles of them.
  float* matrix(Arena& arena, Id id, std::int64_t ld);
  /// The matrix with `ld` floats for each row.
  float* rows(Arena& arena, Id id, std::int64_t ld);
  /// As it is, and a line more, which kernels may read.
  template <class T>
  T* plain(Arena& arena, Id id) {
    constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
    T* at = arena.take<T>(elements(tensors_[static_cast<std::size_t>(id)].shape) + line);
    stored_[static_cast<std::size_t>(id)] = {.at = reinterpret_cast<std::byte*>(at)};
    return at;
  }

  /// See Program.
  void upload(Id id, std::span<const std::byte> from) const;
  void download(Id id, std::span<std::byte> to) const;
  void upload_row(Id id, std::int64_t row, std::span<const std::byte> from) const;

 private:
  [[nodiscard]] const Stored& place(Id id, std::size_t size) const;

  std::vector<Tensor> tensors_;
  std::vector<Stored> stored_;
};

// ---- Phases, each a part of every thread's work.

/// What all threads do between two places where they may wait for each other. What is shared is cut
/// into as many parts as there are threads.
struct Phase {
  enum class Kind {
    gather,
    forward,
    loss,
    backward,  ///< the gradient of a layer's inputs, then the update
    gradient,  ///< of a layer's inputs alone
    sum,       ///< a layer's gradients, as far as other parts update by them
    update,    ///< by the own gradients and those sums
  };
  Kind kind{};
  std::int64_t layer = 0;
  bool shared = false;  ///< by all threads; else the first one does it
  bool wait = false;    ///< for what the others did before

  /// Of a batch that is cut by samples: whether a thread needs its own alone.
  [[nodiscard]] bool of_samples() const { return kind != Kind::backward && kind != Kind::update; }
};

/// The optimizer of a step.
struct Optimizer {
  float rate = 0;  ///< of gradient descent
  float momentum = 0, gradient_factor = 1;
  std::int32_t* time = nullptr;  ///< AdamW's; null without
  AdamWOptions adamw;
  UpdateTerms of_weights, of_biases;

  /// For the step that comes; AdamW's time is set forward.
  [[nodiscard]] Update next() const;
};

/// Samples that are trained together, and their matrices.
struct Samples {
  std::int64_t first = 0;  ///< in the batch
  Batch batch;
  float* inputs = nullptr;  ///< [features][stride]
  Loss loss;
  std::vector<Layer> layers;
};

struct FusedStep {
  const float* data = nullptr;  ///< [features][data_ld]; by rows [samples][data_ld]
  std::int64_t data_ld = 0;
  const std::int32_t* labels = nullptr;  ///< null where there are targets
  const float* targets = nullptr;        ///< [outputs][targets_ld]; likewise
  std::int64_t targets_ld = 0;
  std::int64_t summed_losses = 0;  ///< of which the step's loss is the mean
  float* losses = nullptr;         ///< of all runs
  /// The whole batch, of which parts are features, or one for each part: of each thread `chunks`.
  std::vector<Samples> samples;
  /// Of a thread's samples, which go through all layers chunk by chunk, so that they stay in a
  /// cache.
  int chunks = 1;
  Optimizer optimizer;
  std::vector<Phase> phases;

  [[nodiscard]] bool by_samples() const { return samples.size() > 1; }
};

/// One part of [0, count), which is cut at multiples of `unit`.
struct Part {
  std::int64_t begin, end;
};
Part part_of(std::int64_t count, std::int64_t unit, std::int64_t part, std::int64_t parts);

/// Whether the batches of all steps lie by rows (Batch): else those of none do.
bool lie_by_rows(const std::vector<DenseStep>& training);

/// Binds the steps of `training` to the arena's memory, or counts what they take. `memory` learns
/// where the tensors lie. `keep`: all of them, and so the parameters' gradients too. Throws
/// Unsupported where an optimizer treats layers differently.
std::vector<FusedStep> bind_steps(const Workload& workload, const std::vector<DenseStep>& training,
                                  int threads, bool keep, Arena& arena, Memory& memory);

}  // namespace crossover::cpu::fused
