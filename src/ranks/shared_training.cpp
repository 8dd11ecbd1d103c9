// SPDX-License-Identifier: Apache-2.0
#include "crossover/shared_training.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

#include "crossover/fingerprint.h"
#include "crossover/random.h"
#include "share.h"
#include "shared_sum.h"

namespace crossover {
namespace {

/// What rank 0 tells the others; what it is about follows in messages of its own.
enum class What : std::int64_t {
  make,
  make_sum,
  drop,
  upload,
  download,
  enqueue,
  profile,
  passes,
  end
};

struct Command {
  What what = What::end;
  std::int64_t program = 0;  ///< its number
  std::int64_t a = 0, b = 0;
};

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

void tell(Ranks& ranks, Command command) { ranks.broadcast(bytes_of(command)); }

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  std::uint64_t state = bytes.size();
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    state = finalized(state ^ word);
  }
  return state;
}

/// Tells networks apart that have one name: that of a step of one rank.
std::int64_t network_of(const Model& model, TrainingOptions whole) {
  whole.rows = whole.batch = whole.ranks;
  whole.rank = 0;
  return static_cast<std::int64_t>(fingerprint(training_epoch(model, whole)));
}

/// All go on at once.
void meet(Ranks& ranks) {
  float nothing = 0;
  ranks.sum(std::span(&nothing, 1));
}

double seconds_of(Share& share, std::int64_t passes) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    share.program().enqueue(0, share.steps());
    share.program().wait();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::int64_t next_number() {
  static std::int64_t made = 0;
  return ++made;
}

/// The training of the whole batch, on rank 0.
class SharedProgram : public Program {
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
  ~SharedProgram() override { tell(What::drop); }

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
    own_->program().enqueue(first, count);
  }

  void wait() override { own_->program().wait(); }

  Profile profile() override {
    tell(What::profile);
    return own_->program().profile();
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

/// A row's name, which the others find their own things by.
void send(Ranks& ranks, std::string row) {
  ranks.broadcast(std::as_writable_bytes(std::span(row)));
}

std::string received(Ranks& ranks, std::int64_t length) {
  std::string row(static_cast<std::size_t>(length), ' ');
  ranks.broadcast(std::as_writable_bytes(std::span(row)));
  return row;
}

class SharedPlan : public Plan {
 public:
  SharedPlan(Ranks& ranks, const Backend& own, ShareRequest request, const Model& model,
             const TrainingOptions& whole, const CompileOptions& options)
      : ranks_(ranks), request_(std::move(request)), whole_(whole) {
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
    tell(ranks_, {.what = What::make, .program = number, .a = std::ssize(request_.row)});
    std::array<std::int64_t, 5> sizes{request_.rows, request_.batch,
                                      static_cast<std::int64_t>(request_.execution),
                                      request_.threads, request_.network};
    ranks_.broadcast(std::as_writable_bytes(std::span(sizes)));
    send(ranks_, request_.row);
    return std::make_unique<SharedProgram>(ranks_, number, std::move(share_), whole_);
  }

 private:
  Ranks& ranks_;
  ShareRequest request_;
  TrainingOptions whole_;
  std::unique_ptr<Share> share_;
};

class SharedBackend : public Backend {
 public:
  SharedBackend(Ranks& ranks, const Backend& own, std::string row, Model model,
                const TrainingOptions& whole)
      : ranks_(ranks), own_(own), row_(std::move(row)), model_(std::move(model)), whole_(whole) {}

  [[nodiscard]] Description describe() const override { return own_.describe(); }
  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return own_.missing_for(precision);
  }
  [[nodiscard]] Workload optimize(Workload workload,
                                  const CompileOptions& /*options*/) const override {
    return workload;
  }
  /// Graphs are a GPU's.
  [[nodiscard]] std::vector<Execution> executions(const Workload& workload,
                                                  Precision precision) const override {
    std::vector<Execution> all{Execution::eager, Execution::overlapped};
    for (const Execution one : own_.executions(workload, precision)) {
      if (one == Execution::graph || one == Execution::graph_epoch) {
        all.push_back(one);
      }
    }
    return all;
  }
  [[nodiscard]] Estimate estimate(const Workload& workload,
                                  const CompileOptions& options) const override {
    return own_.estimate(workload, options);
  }
  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& /*workload*/,
                                           const CompileOptions& options) const override {
    return std::make_unique<SharedPlan>(ranks_, own_,
                                        ShareRequest{.row = row_,
                                                     .rows = whole_.rows,
                                                     .batch = whole_.batch,
                                                     .execution = options.execution,
                                                     .threads = options.threads},
                                        model_, whole_, options);
  }
  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    return own_.make_probe(spec);
  }

 private:
  Ranks& ranks_;
  const Backend& own_;
  const std::string row_;
  const Model model_;
  const TrainingOptions whole_;
};

ShareRequest received_request(Ranks& ranks, std::int64_t length) {
  std::array<std::int64_t, 5> sizes{};
  ranks.broadcast(std::as_writable_bytes(std::span(sizes)));
  return {.row = received(ranks, length),
          .rows = sizes[0],
          .batch = sizes[1],
          .execution = static_cast<Execution>(sizes[2]),
          .threads = static_cast<int>(sizes[3]),
          .network = sizes[4]};
}

std::unique_ptr<Share> made(Ranks& ranks, const ShareRequest& request, const Followed& followed) {
  TrainingOptions share = followed.whole;
  share.ranks = ranks.size();
  if (network_of(followed.model, share) != request.network) {
    throw std::runtime_error("it has another network '" + followed.model.name +
                             "' than rank 0; start all ranks with the same files");
  }
  share.rows = request.rows;
  share.batch = request.batch;
  share.rank = ranks.rank();
  CompileOptions options = followed.options;
  options.execution = request.execution;
  options.threads = request.threads;
  options.ranks = &ranks;
  auto made = std::make_unique<Share>(*followed.backend, followed.model, share, options);
  made->instantiate();
  return made;
}

/// Does the same with the share, and answers where rank 0 gathers.
void carry_out(Ranks& ranks, const Command& command, Share& share) {
  switch (command.what) {
    case What::upload: {
      std::vector<std::byte> whole(static_cast<std::size_t>(command.b));
      ranks.broadcast(whole);
      share.upload(static_cast<Id>(command.a), whole);
      break;
    }
    case What::download: {
      const std::vector<std::byte> own = share.download(static_cast<Id>(command.a));
      if (share.workload()[static_cast<Id>(command.a)].role == Role::loss) {
        ranks.gather(own, {});
      } else {
        differing_rank(ranks, hash_of(own));
      }
      break;
    }
    case What::enqueue:
      share.program().enqueue(command.a, command.b);
      break;
    case What::profile:
      share.program().profile();
      break;
    case What::passes: {
      meet(ranks);
      double seconds = seconds_of(share, command.a);
      ranks.gather(bytes_of(seconds), {});
      break;
    }
    default:
      throw std::logic_error("rank 0 asks for what no rank can do");
  }
}

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

void follow(Ranks& ranks, const std::function<Followed(const std::string& row)>& find) {
  std::map<std::int64_t, std::unique_ptr<Share>> shares;
  for (;;) {
    Command command;
    ranks.broadcast(bytes_of(command));
    if (command.what == What::end) {
      return;
    }
    if (command.what == What::make) {
      const ShareRequest request = received_request(ranks, command.a);
      shares[command.program] = made(ranks, request, find(request.row));
    } else if (command.what == What::make_sum) {
      const bool on_gpu = command.b > 0;
      shares[command.program] =
          sum_of(ranks, command.a, on_gpu ? find(received(ranks, command.b)).backend : nullptr);
    } else if (command.what == What::drop) {
      shares.erase(command.program);
    } else {
      carry_out(ranks, command, *shares.at(command.program));
    }
  }
}

int differing_rank(Ranks& ranks, std::uint64_t own) {
  std::vector<std::uint64_t> all(ranks.rank() == 0 ? static_cast<std::size_t>(ranks.size()) : 0);
  ranks.gather(bytes_of(own), std::as_writable_bytes(std::span(all)));
  const auto other = std::find_if(all.begin(), all.end(), [&](auto one) { return one != own; });
  return other == all.end() ? 0 : static_cast<int>(other - all.begin());
}

void end_following(Ranks& ranks) { tell(ranks, {.what = What::end}); }

}  // namespace crossover
