// SPDX-License-Identifier: Apache-2.0
// The threads that bring rows to where a Program reads them, and how they keep out of its way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "crossover/backend.h"
#include "crossover/random.h"

namespace crossover {

/// What one step reads, and where it reads it.
struct LoadedBatch {
  std::int64_t first_row = 0;  ///< of the epoch
  std::int64_t rows = 0;
  std::int64_t slot = 0;  ///< its first row in the Program
};

/// A data tensor, whole.
struct LoadedTensor {
  Id id = none;
  std::int64_t row_bytes = 0;
  std::vector<std::byte> rows;
};

class Loader {
 public:
  /// Batches that follow each other lie in slots of their own, workers + 1 of them. `to` must
  /// outlive it.
  Loader(Program& to, std::vector<LoadedTensor> data, std::vector<LoadedBatch> batches,
         int workers);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  [[nodiscard]] std::vector<LoadedTensor>& data() { return data_; }

  /// Brings `count` batches from `first` on, of rows as they lie or in that order. The caller
  /// trains them: each after wait_for_next(), and says so by release(); then finish().
  void begin(std::int64_t first, std::int64_t count, const std::optional<Shuffle>& order);
  void wait_for_next();
  void release();
  void finish();

 private:
  /// On a cache line of its own.
  struct alignas(64) Count {
    std::atomic<std::int64_t> value = 0;

    void wait_for(std::int64_t least) const {
      for (std::int64_t now = value.load(std::memory_order_acquire); now < least;
           now = value.load(std::memory_order_acquire)) {
        value.wait(now, std::memory_order_acquire);
      }
    }
    void add_one() {
      value.fetch_add(1, std::memory_order_release);
      value.notify_all();
    }
  };

  void work(int worker);
  void bring(const LoadedBatch& batch) const;

  Program& to_;
  std::vector<LoadedTensor> data_;
  const std::vector<LoadedBatch> batches_;

  // What begin() asks for; workers read it behind calls_.
  std::int64_t first_ = 0, count_ = 0;
  std::optional<Shuffle> order_;
  bool ends_ = false;

  std::int64_t next_ = 0;     ///< of the batches asked for
  Count calls_;               ///< of begin()
  Count trained_;             ///< batches of this call
  Count finished_;            ///< workers, of all calls
  std::vector<Count> ready_;  ///< by worker: batches of this call
  std::vector<std::thread> workers_;
};

}  // namespace crossover
