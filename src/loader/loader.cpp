// SPDX-License-Identifier: Apache-2.0
#include "loader.h"

#include <utility>

namespace crossover {

Loader::Loader(Program& to, std::vector<LoadedTensor> data, std::vector<LoadedBatch> batches,
               int workers)
    : to_(to),
      data_(std::move(data)),
      batches_(std::move(batches)),
      ready_(static_cast<std::size_t>(workers)) {
  for (int worker = 0; worker < workers; ++worker) {
    workers_.emplace_back([this, worker] { work(worker); });
  }
}

Loader::~Loader() {
  constexpr std::int64_t all = std::int64_t{1} << 62U;  // of a call that was broken off
  trained_.value.store(all, std::memory_order_release);
  trained_.value.notify_all();
  ends_ = true;
  calls_.add_one();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void Loader::begin(std::int64_t first, std::int64_t count, const std::optional<Shuffle>& order) {
  first_ = first;
  count_ = count;
  order_ = order;
  next_ = 0;
  trained_.value.store(0, std::memory_order_relaxed);
  for (Count& ready : ready_) {
    ready.value.store(0, std::memory_order_relaxed);
  }
  calls_.add_one();
}

void Loader::wait_for_next() {
  const auto workers = std::ssize(workers_);
  if (workers == 0) {
    bring(batches_[static_cast<std::size_t>(first_ + next_)]);
  } else {
    ready_[static_cast<std::size_t>(next_ % workers)].wait_for(next_ / workers + 1);
  }
  ++next_;
}

void Loader::release() { trained_.add_one(); }

/// So that no worker is still about to look at what the next call changes.
void Loader::finish() {
  finished_.wait_for(std::ssize(workers_) * calls_.value.load(std::memory_order_relaxed));
}

void Loader::work(int worker) {
  const std::int64_t workers = std::ssize(ready_);
  Count& ready = ready_[static_cast<std::size_t>(worker)];
  for (std::int64_t call = 1;; ++call) {
    calls_.wait_for(call);
    if (ends_) {
      return;
    }
    for (std::int64_t batch = worker; batch < count_; batch += workers) {
      trained_.wait_for(batch - workers);  // then its slot is free
      bring(batches_[static_cast<std::size_t>(first_ + batch)]);
      ready.add_one();
    }
    finished_.add_one();
  }
}

void Loader::bring(const LoadedBatch& batch) const {
  for (std::int64_t i = 0; i < batch.rows; ++i) {
    const std::int64_t row = batch.first_row + i;
    const std::int64_t from = order_ ? (*order_)[row] : row;
    for (const LoadedTensor& tensor : data_) {
      const auto at = static_cast<std::size_t>(from * tensor.row_bytes);
      to_.upload_row(
          tensor.id, batch.slot + i,
          std::span(tensor.rows).subspan(at, static_cast<std::size_t>(tensor.row_bytes)));
    }
  }
}

}  // namespace crossover
