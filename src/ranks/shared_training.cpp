// SPDX-License-Identifier: Apache-2.0
#include "crossover/shared_training.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "commands.h"
#include "crossover/backend_over.h"
#include "crossover/executions.h"
#include "crossover/extensions.h"
#include "share.h"

namespace crossover {
namespace {

std::int64_t next_number() {
  static std::int64_t made = 0;
  return ++made;
}

/// The training of the whole batch, on rank 0.
class SharedProgram : public Program, public TakesPasses {
 public:
  SharedProgram(Ranks& ranks, std::int64_t number, std::unique_ptr<Share> own,
                const TrainingOptions& whole)
      : ranks_(ranks), number_(number), own_(std::move(own)) {
    facts_ = own_->program().facts();
    facts_.bytes *= ranks.size();
    for (int rank = 0; rank < ranks.size(); ++rank) {
      TrainingOptions share = whole;
      share.ranks = ranks.size();
      share.rank = rank;
      weights_.push_back(weights_of(share));
    }
  }
  SharedProgram(const SharedProgram&) = delete;
  SharedProgram& operator=(const SharedProgram&) = delete;
  ~SharedProgram() override {
    if (passes_ > 0) {  // the others are still at them, and hear nothing else
      end_all("it ends before the passes that all were to do");
    }
    tell(What::drop);
  }

  void upload(Id id, std::span<const std::byte> from) override {
    tell(What::upload, id, std::ssize(from));
    std::vector<std::byte> sent(from.begin(), from.end());
    ranks_.broadcast(sent);
    own_->upload(id, sent);
  }

  void download(Id id, std::span<std::byte> to) override {
    tell(What::download, id);
    const std::vector<std::byte> own = own_->download(id);
    if (own_->workload()[id].role == Role::loss) {
      download_losses(own, to);
      return;
    }
    if (const int rank = differing_rank(ranks_, hash_of(own)); rank > 0) {
      throw std::runtime_error("rank " + std::to_string(rank) + " has another '" +
                               own_->workload()[id].name + "' than rank 0 after the same steps");
    }
    if (own.size() != to.size()) {
      throw std::invalid_argument("a download of another size than its tensor");
    }
    std::copy(own.begin(), own.end(), to.begin());
  }

  void enqueue(std::int64_t first, std::int64_t count) override {
    if (passes_ == 0) {
      tell(What::enqueue, first, count);
    } else {
      --passes_;
    }
    together([&] { own_->program().enqueue(first, count); });
  }

  void wait() override {
    together([&] { own_->program().wait(); });
  }

  Profile profile() override {
    tell(What::profile);
    Profile own;
    together([&] { own = own_->program().profile(); });
    return own;
  }

  void expect_passes(std::int64_t count) override {
    tell(What::passes, count);
    passes_ = count;
    meet(ranks_);
  }

  std::vector<double> seconds_of_passes() override {
    double own = 0;
    std::vector<double> all(static_cast<std::size_t>(ranks_.size()));
    ranks_.gather(bytes_of(own), std::as_writable_bytes(std::span(all)));
    return all;
  }

 private:
  /// Where rank 0 fails the others wait for it in a sum, and would for ever: all end, and whoever
  /// started them has the sentence as the last words.
  template <class Work>
  void together(const Work& work) {
    try {
      work();
    } catch (const std::exception& error) {
      end_all(error.what());
      throw;
    }
  }
  /// Does not return.
  void end_all(const char* why) {
    std::fprintf(stderr, "rank 0: %s\n", why);
    constexpr std::chrono::milliseconds until_forwarded(300);
    std::this_thread::sleep_for(until_forwarded);
    ranks_.abort();
  }

  void tell(What what, std::int64_t a = 0, std::int64_t b = 0) {
    crossover::tell(ranks_, {.what = what, .program = number_, .a = a, .b = b});
  }

  /// Each rank's is the mean of its own rows.
  void download_losses(const std::vector<std::byte>& own, std::span<std::byte> to) {
    std::vector<std::byte> all(own.size() * static_cast<std::size_t>(ranks_.size()));
    ranks_.gather(own, all);
    const std::size_t steps = own.size() / sizeof(float);
    std::vector<float> of_ranks(steps * weights_.size());
    std::memcpy(of_ranks.data(), all.data(), all.size());
    std::vector<float> whole(steps);
    for (std::size_t step = 0; step < steps; ++step) {
      double sum = 0;
      for (std::size_t rank = 0; rank < weights_.size(); ++rank) {
        sum += weights_[rank][step] * static_cast<double>(of_ranks[rank * steps + step]);
      }
      whole[step] = static_cast<float>(sum);
    }
    if (to.size() != own.size()) {
      throw std::invalid_argument("a download of another size than its tensor");
    }
    std::memcpy(to.data(), whole.data(), to.size());
  }

  Ranks& ranks_;
  const std::int64_t number_;
  std::unique_ptr<Share> own_;
  std::vector<std::vector<double>> weights_;  ///< by rank and step
  std::int64_t passes_ = 0;                   ///< that the others will do without being told
};

class SharedPlan : public Plan {
 public:
  SharedPlan(Ranks& ranks, const Backend& own, const ShareRequest& request, std::string row,
             const Model& model, const TrainingOptions& whole, const CompileOptions& options)
      : ranks_(ranks), request_(request), row_(std::move(row)), whole_(whole) {
    TrainingOptions share = whole;
    share.ranks = ranks.size();
    share.rank = 0;
    request_.network = network_of(model, share);
    CompileOptions with_ranks = options;
    with_ranks.ranks = &ranks;
    share_ = std::make_unique<Share>(own, model, share, with_ranks);
  }

  [[nodiscard]] std::int64_t bytes() const override {
    return share_->plan().bytes() * ranks_.size();
  }
  [[nodiscard]] std::int64_t bytes_keeping_activations() const override {
    return share_->plan().bytes_keeping_activations() * ranks_.size();
  }
  [[nodiscard]] std::int64_t launches() const override { return share_->plan().launches(); }

  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    share_->instantiate();
    const std::int64_t number = next_number();
    tell(ranks_, {.what = What::make, .program = number, .a = std::ssize(row_)});
    ranks_.broadcast(bytes_of(request_));
    send(ranks_, row_);
    return std::make_unique<SharedProgram>(ranks_, number, std::move(share_), whole_);
  }

 private:
  Ranks& ranks_;
  ShareRequest request_;
  const std::string row_;
  TrainingOptions whole_;
  std::unique_ptr<Share> share_;
};

class SharedBackend : public BackendOver {
 public:
  SharedBackend(Ranks& ranks, const Backend& own, std::string row, Model model,
                const TrainingOptions& whole)
      : BackendOver(own),
        ranks_(ranks),
        row_(std::move(row)),
        model_(std::move(model)),
        whole_(whole) {}

  [[nodiscard]] GpuState state() const override { return {}; }
  [[nodiscard]] Workload optimize(Workload workload,
                                  const CompileOptions& /*options*/) const override {
    return workload;
  }
  /// Graphs are a GPU's.
  [[nodiscard]] std::vector<Execution> executions(const Workload& workload,
                                                  Precision precision) const override {
    std::vector<Execution> all{Execution::eager, Execution::overlapped};
    for (const Execution one : own().executions(workload, precision)) {
      if (const ExecutionFacts& its = facts_of(one); its.on_ranks && !its.on_cpu) {
        all.push_back(one);
      }
    }
    return all;
  }
  [[nodiscard]] Estimate estimate(const Workload& workload,
                                  const CompileOptions& options) const override {
    return own().estimate(workload, options);
  }
  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& /*workload*/,
                                           const CompileOptions& options) const override {
    return std::make_unique<SharedPlan>(ranks_, own(),
                                        ShareRequest{.rows = whole_.rows,
                                                     .batch = whole_.batch,
                                                     .execution = options.execution,
                                                     .threads = options.threads},
                                        row_, model_, whole_, options);
  }

 private:
  Ranks& ranks_;
  const std::string row_;
  const Model model_;
  const TrainingOptions whole_;
};

}  // namespace

std::unique_ptr<Backend> make_shared_backend(Ranks& ranks, const Backend& own,
                                             const std::string& row, const Model& model,
                                             const TrainingOptions& whole) {
  return std::make_unique<SharedBackend>(ranks, own, row, model, whole);
}

std::unique_ptr<Program> make_shared_sum(Ranks& ranks, std::int64_t floats, const Backend* gpu,
                                         const std::string& row) {
  auto own = sum_of(ranks, floats, gpu);
  const std::int64_t number = next_number();
  const std::int64_t length = gpu == nullptr ? 0 : std::ssize(row);
  tell(ranks, {.what = What::make_sum, .program = number, .a = floats, .b = length});
  if (gpu != nullptr) {
    send(ranks, row);
  }
  return std::make_unique<SharedProgram>(ranks, number, std::move(own), TrainingOptions{});
}

void end_following(Ranks& ranks) { tell(ranks, {.what = What::end}); }

}  // namespace crossover
