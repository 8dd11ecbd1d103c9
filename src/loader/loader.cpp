// SPDX-License-Identifier: Apache-2.0
// A network trained on batches that are assembled while it trains: backend_over.h says how.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "crossover/backend.h"
#include "crossover/backend_over.h"
#include "crossover/extensions.h"
#include "crossover/random.h"
#include "crossover/training.h"

namespace crossover {

// ---- The threads that bring rows to where a Program reads them, and how they keep out of its way.

namespace {

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
  Loader(TakesRows& to, std::vector<LoadedTensor> data, std::vector<LoadedBatch> batches,
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

  void end();
  void work(int worker);
  void bring(const LoadedBatch& batch) const;

  TakesRows& to_;
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

}  // namespace

Loader::Loader(TakesRows& to, std::vector<LoadedTensor> data, std::vector<LoadedBatch> batches,
               int workers)
    : to_(to),
      data_(std::move(data)),
      batches_(std::move(batches)),
      ready_(static_cast<std::size_t>(workers)) {
  try {
    for (int worker = 0; worker < workers; ++worker) {
      workers_.emplace_back([this, worker] { work(worker); });
    }
  } catch (const std::system_error&) {
    const std::size_t started = workers_.size();
    end();
    throw OutOfMemory("the system starts " + std::to_string(started) + " of " +
                      std::to_string(workers) + " threads that load batches");
  } catch (...) {
    end();
    throw;
  }
}

Loader::~Loader() { end(); }

void Loader::end() {
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

namespace {

std::int64_t rows_of(const Tensor& data) { return data.shape.front(); }

std::int64_t row_bytes(const Tensor& data) { return bytes(data) / rows_of(data); }

std::int64_t data_bytes(const Workload& workload) {
  std::int64_t sum = 0;
  for (const Id id : tensors_of(workload, Role::data)) {
    sum += bytes(workload[id]);
  }
  return sum;
}

/// A training of the whole data set as its device runs it: on slots, into which batches are
/// brought.
struct Slotted {
  Workload workload;
  std::vector<LoadedBatch> batches;  ///< by position of the order
};

Slotted slotted(const Workload& whole, int workers) {
  constexpr std::int64_t apart = 16;  // floats of a cache line: a row as a column may have one
  std::vector<std::int64_t> rows;     // by step
  for (const Step& step : whole.steps) {
    const std::vector<Id> views = views_of(whole, step);
    rows.push_back(views.empty() ? 0 : whole[views.front()].shape.front());
  }
  const std::int64_t largest = *std::max_element(rows.begin(), rows.end());
  const std::int64_t slot = (largest + apart - 1) / apart * apart;
  const std::int64_t slots = std::min<std::int64_t>(workers + 1, std::ssize(whole.order));
  Slotted made{.workload = unshuffled(whole), .batches = {}};
  for (std::size_t position = 0; position < whole.order.size(); ++position) {
    Run& run = made.workload.order[position];
    const std::int64_t at = static_cast<std::int64_t>(position) % slots * slot;
    made.batches.push_back(
        {.first_row = run.first_row, .rows = rows[static_cast<std::size_t>(run.step)], .slot = at});
    run.first_row = at;
  }
  for (const Id id : tensors_of(whole, Role::data)) {
    made.workload.tensors[static_cast<std::size_t>(id)].shape.front() = slots * slot;
  }
  return made;
}

class LoadingProgram : public Program {
 public:
  LoadingProgram(std::unique_ptr<Program> own, const Workload& whole,
                 std::vector<LoadedBatch> batches, int workers)
      : Program(own->facts()),
        own_(std::move(own)),
        epoch_id_(whole.epoch),
        steps_(std::ssize(whole.order)) {
    facts_.bytes += data_bytes(whole);
    std::vector<LoadedTensor> data;
    for (const Id id : tensors_of(whole, Role::data)) {
      data.push_back({.id = id,
                      .row_bytes = row_bytes(whole[id]),
                      .rows = std::vector<std::byte>(static_cast<std::size_t>(bytes(whole[id])))});
      rows_ = rows_of(whole[id]);
    }
    auto* by_row = own_->extension<TakesRows>();
    if (by_row == nullptr) {
      throw Unsupported("this device takes no rows while it trains");
    }
    loader_.emplace(*by_row, std::move(data), std::move(batches), workers);
  }

  void upload(Id id, std::span<const std::byte> from) override {
    if (const auto own = kept(id, from.size()); !own.empty()) {
      std::memcpy(own.data(), from.data(), from.size());
    } else {
      own_->upload(id, from);
    }
  }

  void download(Id id, std::span<std::byte> to) override {
    if (const auto own = kept(id, to.size()); !own.empty()) {
      std::memcpy(to.data(), own.data(), to.size());
    } else {
      own_->download(id, to);
    }
  }

  void enqueue(std::int64_t first, std::int64_t count) override {
    loader_->begin(first, count,
                   epoch_id_ == none ? std::nullopt : std::optional(Shuffle(rows_, epoch_)));
    for (std::int64_t position = first; position < first + count; ++position) {
      loader_->wait_for_next();
      own_->enqueue(position, 1);
      own_->wait();
      loader_->release();
    }
    loader_->finish();
    if (first + count == steps_) {
      ++epoch_;
    }
  }

  void wait() override {}  // enqueue() returns when all is done

  /// Of the steps alone, on the batches that are there.
  Profile profile() override { return own_->profile(); }

 private:
  /// What is not the device's. Throws std::invalid_argument where it has another size.
  std::span<std::byte> kept(Id id, std::size_t size) {
    std::span<std::byte> found;
    if (id == epoch_id_ && id != none) {
      found = std::as_writable_bytes(std::span(&epoch_, 1));
    }
    for (LoadedTensor& tensor : loader_->data()) {
      if (tensor.id == id) {
        found = tensor.rows;
      }
    }
    if (!found.empty() && found.size() != size) {
      throw std::invalid_argument("a copy of another size than its tensor");
    }
    return found;
  }

  std::unique_ptr<Program> own_;
  const Id epoch_id_;
  const std::int64_t steps_;
  std::int64_t rows_ = 0;
  std::int32_t epoch_ = 0;
  std::optional<Loader> loader_;
};

class LoadingPlan : public Plan {
 public:
  LoadingPlan(const Backend& own, const Workload& whole, const CompileOptions& options, int workers)
      : whole_(whole), workers_(workers) {
    Slotted made = slotted(whole, workers);
    own_ = own.plan(made.workload, options);
    batches_ = std::move(made.batches);
  }

  [[nodiscard]] std::int64_t bytes() const override { return own_->bytes() + data_bytes(whole_); }
  [[nodiscard]] std::int64_t bytes_keeping_activations() const override {
    return own_->bytes_keeping_activations() + data_bytes(whole_);
  }
  [[nodiscard]] std::int64_t launches() const override { return own_->launches(); }

  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    return std::make_unique<LoadingProgram>(own_->instantiate(), whole_, std::move(batches_),
                                            workers_);
  }

 private:
  const Workload whole_;
  const int workers_;
  std::unique_ptr<Plan> own_;
  std::vector<LoadedBatch> batches_;
};

class LoadingBackend : public BackendOver {
 public:
  LoadingBackend(const Backend& own, int workers) : BackendOver(own), workers_(workers) {}

  [[nodiscard]] Estimate estimate(const Workload& workload,
                                  const CompileOptions& options) const override {
    return own().estimate(unshuffled(workload), options);
  }
  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& workload,
                                           const CompileOptions& options) const override {
    check(workload);
    return std::make_unique<LoadingPlan>(own(), workload, options, workers_);
  }

 private:
  const int workers_;
};

}  // namespace

std::unique_ptr<Backend> make_loading_backend(const Backend& own, int workers) {
  return std::make_unique<LoadingBackend>(own, workers);
}

}  // namespace crossover
