// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../automatic/automatic.h"
#include "../cpu/base/threads.h"
#include "crossover/backend_over.h"
#include "crossover/executions.h"
#include "crossover/extensions.h"
#include "crossover/training.h"

namespace crossover {
namespace {

bool is_shared(const Tensor& tensor) {
  return tensor.role == Role::data || tensor.role == Role::loss;
}

/// Of a training of copies: that of one, and where in it the tensors of the others are.
class Copies {
 public:
  Copies(const Workload& all, std::int64_t count) : count_(count) {
    const std::int64_t shared = std::count_if(all.tensors.begin(), all.tensors.end(), is_shared);
    const std::int64_t own = (std::ssize(all.tensors) - shared) / count;
    one_.tensors.assign(all.tensors.begin(), all.tensors.begin() + shared + own);
    one_.steps.assign(all.steps.begin(), all.steps.begin() + std::ssize(all.steps) / count);
    for (std::size_t at = 0; at < all.order.size(); at += static_cast<std::size_t>(count)) {
      one_.order.push_back(all.order[at]);
    }
    for (std::size_t id = 0; id < one_.tensors.size(); ++id) {
      if (Tensor& tensor = one_.tensors[id]; !is_shared(tensor)) {
        own_.push_back(static_cast<Id>(id));
      } else if (tensor.role == Role::loss) {
        tensor.shape = {std::ssize(one_.order)};
      }
    }
  }

  /// So many copies of the same network.
  [[nodiscard]] Copies of_count(std::int64_t count) const {
    Copies others = *this;
    others.count_ = count;
    return others;
  }

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] const Workload& one() const { return one_; }
  [[nodiscard]] Role role(Id id) const {
    return is_of_first(id) ? one_[id].role : Role::activation;
  }
  [[nodiscard]] std::int64_t copy(Id id) const {
    return is_of_first(id) ? 0 : 1 + behind(id) / std::ssize(own_);
  }
  /// Its number in the training of that copy alone.
  [[nodiscard]] Id number(Id id) const {
    return is_of_first(id) ? id : own_[static_cast<std::size_t>(behind(id) % std::ssize(own_))];
  }

 private:
  [[nodiscard]] bool is_of_first(Id id) const { return id < std::ssize(one_.tensors); }
  [[nodiscard]] std::int64_t behind(Id id) const { return id - std::ssize(one_.tensors); }

  std::int64_t count_;
  Workload one_;
  std::vector<Id> own_;  ///< of copy 0
};

/// work(copy) for each, on so many threads, of which each always has the same copies.
template <class Work>
void for_each_copy(std::int64_t copies, int threads, const Work& work) {
  if (threads == 1 || copies <= 1) {
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      work(copy);
    }
    return;
  }
  std::exception_ptr failure;
  std::mutex failing;
#pragma omp parallel num_threads(threads)
  for (std::int64_t copy = omp_get_thread_num(); copy < copies; copy += omp_get_num_threads()) {
    try {
      work(copy);
    } catch (...) {
      const std::lock_guard lock(failing);
      failure = std::current_exception();
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

using Programs = std::vector<std::unique_ptr<Program>>;

/// How copies share threads and streams.
struct Sharing {
  int threads = 1;            ///< side by side: each trains copies of its own
  std::int64_t in_turn = 0;   ///< so many copies, the last ones, come after those, one by one: each
                              ///< has all threads
  bool step_by_step = false;  ///< copies are given one step each
};

class CopiesProgram : public Program {
 public:
  CopiesProgram(Copies copies, Programs programs, const Sharing& sharing)
      : Program(programs.front()->facts()),
        copies_(std::move(copies)),
        programs_(std::move(programs)),
        sharing_(sharing),
        of_all_(programs_.front()->facts().copies > 1 ? programs_.front()->extension<TrainsCopies>()
                                                      : nullptr),
        joined_(join_all()) {
    const std::int64_t programs_like_it = of_all_ != nullptr ? 1 : copies_.count();
    facts_.bytes *= programs_like_it;
    facts_.launches *= joined_ != nullptr ? 1 : programs_like_it;
    facts_.reorders.count *= programs_like_it;
    facts_.reorders.bytes *= programs_like_it;
    if (facts_.threads) {
      facts_.threads =
          std::max(sharing.threads, programs_.back()->facts().threads.value_or(sharing.threads));
    }
    if (facts_.chosen) {
      facts_.chosen->threads = facts_.threads.value_or(1);
    }
  }

  void upload(Id id, std::span<const std::byte> from) override {
    wait_if_joined();
    if (copies_.role(id) == Role::data) {
      for (const auto& program : programs_) {
        program->upload(id, from);
      }
    } else if (copies_.role(id) == Role::loss) {
      for_each_loss(from.size(), [&](std::int64_t copy, std::vector<float>& losses) {
        for_each_place(copy, losses, [&](float& loss, std::size_t place) {
          std::memcpy(&loss, from.data() + place, sizeof(float));
        });
        upload_to(copy, id, std::as_bytes(std::span(losses)));
      });
    } else {
      const std::int64_t copy = copies_.copy(id);
      upload_to(copy, copies_.number(id), from);
    }
  }

  void download(Id id, std::span<std::byte> to) override {
    wait_if_joined();
    if (copies_.role(id) == Role::loss) {
      for_each_loss(to.size(), [&](std::int64_t copy, std::vector<float>& losses) {
        download_from(copy, id, std::as_writable_bytes(std::span(losses)));
        for_each_place(copy, losses, [&](const float& loss, std::size_t place) {
          std::memcpy(to.data() + place, &loss, sizeof(float));
        });
      });
    } else {
      const std::int64_t copy = copies_.copy(id);
      download_from(copy, copies_.number(id), to);
    }
  }

  void enqueue(std::int64_t first, std::int64_t count) override {
    const std::int64_t copies = copies_.count();
    if (joined_ != nullptr) {
      const bool all_alike = first % copies == 0 && count % copies == 0;
      if (all_alike_ != all_alike) {
        wait();
        all_alike_ = all_alike;
      }
      if (all_alike) {
        joined_->enqueue_joined(first / copies, count / copies);
        return;
      }
    }
    const auto one_by_one = [&](std::int64_t from, std::int64_t end) {
      for (std::int64_t position = from; position < end; ++position) {
        const std::int64_t copy = position % copies;
        if (of_all_ != nullptr) {
          of_all_->enqueue_for(copy, position / copies, 1);
        } else {
          program_of(copy).enqueue(position / copies, 1);
        }
      }
    };
    if (of_all_ != nullptr) {
      const std::int64_t end = first + count;
      const std::int64_t first_of_all = std::min(end, (first + copies - 1) / copies * copies);
      const std::int64_t end_of_all = std::max(first_of_all, end / copies * copies);
      one_by_one(first, first_of_all);
      programs_.front()->enqueue(first_of_all / copies, (end_of_all - first_of_all) / copies);
      one_by_one(end_of_all, end);
      return;
    }
    if (sharing_.step_by_step) {
      return one_by_one(first, first + count);
    }
    const auto train = [=, this](std::int64_t copy) {
      // Of the copy's own runs those that begin at or behind a position of the order.
      const auto runs = [=](std::int64_t position) {
        return (position - copy + copies - 1) / copies;
      };
      const std::int64_t own = runs(first);
      program_of(copy).enqueue(own, runs(first + count) - own);
    };
    const std::int64_t side_by_side = copies - sharing_.in_turn;
    for_each_copy(side_by_side, sharing_.threads, train);
    for (std::int64_t copy = side_by_side; copy < copies; ++copy) {
      train(copy);
    }
  }

  void wait() override {
    if (joined_ != nullptr && all_alike_) {
      programs_.front()->wait();  // to ask each would take a microsecond
      return;
    }
    for (const auto& program : programs_) {
      program->wait();
    }
  }

  Profile profile() override {
    Profile all;
    for (const auto& program : programs_) {
      for (const auto& [category, seconds] : program->profile()) {
        all[category] += seconds;
      }
    }
    return all;
  }

  /// Leaves nothing to run.
  [[nodiscard]] Programs take_programs() { return std::move(programs_); }

 private:
  [[nodiscard]] TrainsCopies* join_all() const {
    std::vector<Program*> others;
    for (const auto& program : std::span(programs_).subspan(1)) {
      others.push_back(program.get());
    }
    auto* first = programs_.front()->extension<TrainsCopies>();
    return first != nullptr && !others.empty() && first->join(others) ? first : nullptr;
  }
  /// What one Program has enqueued may be the others' work.
  void wait_if_joined() {
    if (joined_ != nullptr) {
      wait();
    }
  }

  /// Where each copy has a Program of its own.
  [[nodiscard]] Program& program_of(std::int64_t copy) const {
    return *programs_[static_cast<std::size_t>(copy)];
  }
  void upload_to(std::int64_t copy, Id id, std::span<const std::byte> from) const {
    if (of_all_ != nullptr) {
      of_all_->upload_to(copy, id, from);
    } else {
      program_of(copy).upload(id, from);
    }
  }
  void download_from(std::int64_t copy, Id id, std::span<std::byte> to) const {
    if (of_all_ != nullptr) {
      of_all_->download_from(copy, id, to);
    } else {
      program_of(copy).download(id, to);
    }
  }

  /// work(copy, its losses); throws std::invalid_argument where all are of another size.
  template <class Work>
  void for_each_loss(std::size_t bytes, const Work& work) const {
    std::vector<float> losses(copies_.one().order.size());
    if (bytes != losses.size() * static_cast<std::size_t>(copies_.count()) * sizeof(float)) {
      throw std::invalid_argument("losses of another size than those of all copies");
    }
    for (std::int64_t copy = 0; copy < copies_.count(); ++copy) {
      work(copy, losses);
    }
  }

  /// visit(loss, its place among those of all copies, in bytes).
  template <class Visit>
  void for_each_place(std::int64_t copy, std::vector<float>& losses, const Visit& visit) const {
    for (std::size_t run = 0; run < losses.size(); ++run) {
      const auto copies = static_cast<std::size_t>(copies_.count());
      visit(losses[run], (run * copies + static_cast<std::size_t>(copy)) * sizeof(float));
    }
  }

  const Copies copies_;
  Programs programs_;
  const Sharing sharing_;
  TrainsCopies* const of_all_;  ///< the one Program of all copies; null: each has its own
  TrainsCopies* const joined_;  ///< the first of theirs, whose launches train all; null: none does
  bool all_alike_ = true;       ///< what was enqueued last
};

class CopiesPlan : public Plan {
 public:
  CopiesPlan(const Backend& own, Copies copies, CompileOptions options, Stopwatch now)
      : own_(own), copies_(std::move(copies)), options_(std::move(options)), now_(std::move(now)) {
    all_threads_ = std::exchange(options_.threads, 1);
    options_.copies = copies_.count();
    first_ = own.plan(copies_.one(), options_);
  }

  [[nodiscard]] std::int64_t bytes() const override { return programs() * first_->bytes(); }
  [[nodiscard]] std::int64_t bytes_keeping_activations() const override {
    return programs() * first_->bytes_keeping_activations();
  }
  [[nodiscard]] std::int64_t launches() const override {
    return (first_->joins() ? 1 : programs()) * first_->launches();
  }

  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    Programs first;
    first.push_back(first_->instantiate());
    const ProgramFacts& facts = first.front()->facts();
    if (facts.chosen) {
      options_.execution = facts.chosen->execution;
      options_.products = facts.chosen->products;
      options_.convolutions = facts.chosen->convolutions;
    }
    options_.graph_form = facts.graph_form;
    // By one alone. One kernel for all of them joins, and is made already.
    if (const std::optional<Choice> chosen = facts.chosen;
        chosen && is_gpu() && !facts_of(chosen->execution).in_one_kernel) {
      const auto planned = own_.plan(own_.optimize(copies_.one(), options_), options_);
      if (planned->copies() > 1) {
        first.clear();  // frees its memory
        first.push_back(planned->instantiate());
        first.front()->set_chosen(*chosen);
      }
    }
    if (first.front()->facts().copies > 1) {
      return std::make_unique<CopiesProgram>(copies_, std::move(first), Sharing{});
    }
    if (!facts_of(options_.execution).in_one_kernel) {
      options_.copies = 1;  // the others are such Programs, too
    }
    Sharing sharing{
        .threads = static_cast<int>(std::min<std::int64_t>(all_threads_, copies_.count())),
        .step_by_step = goes_step_by_step()};
    Programs programs = made(copies_.count(), sharing.threads, std::move(first));
    if (const std::int64_t last = copies_.count() % all_threads_; last > 0) {
      sharing.in_turn = take_turns(programs, last) ? last : 0;
    }
    return std::make_unique<CopiesProgram>(copies_, std::move(programs), sharing);
  }

 private:
  [[nodiscard]] bool is_gpu() const { return own_.describe().memory_bytes > 0; }
  [[nodiscard]] std::int64_t programs() const { return copies_.count() / first_->copies(); }

  /// Each by the thread that will train it: so its memory lies near, and denormal numbers are zero
  /// there. `programs`: those that there are.
  [[nodiscard]] Programs made(std::int64_t count, int threads, Programs programs = {}) const {
    const std::int64_t there = std::ssize(programs);
    programs.resize(static_cast<std::size_t>(count));
    for_each_copy(count, threads, [&](std::int64_t copy) {
      if (copy >= there) {
        programs[static_cast<std::size_t>(copy)] = own_.compile(copies_.one(), options_);
      }
    });
    return programs;
  }

  /// The `last` copies leave threads idle side by side. In turn on all threads they may be faster:
  /// by trial, with both in memory. Whether they take the place of those among `programs`.
  [[nodiscard]] bool take_turns(Programs& programs, std::int64_t last) {
    options_.threads = all_threads_;
    Programs on_all_threads;
    try {
      on_all_threads = made(last, 1);
    } catch (const OutOfMemory&) {  // there is room for one of both
      return false;
    }
    if (on_all_threads.front()->facts().threads.value_or(1) == 1) {
      return false;
    }
    const auto from = programs.end() - last;
    Programs on_one(std::make_move_iterator(from), std::make_move_iterator(programs.end()));
    for (const Programs* group : {&on_one, &on_all_threads}) {
      for (const auto& program : *group) {
        begin_trial(*program, copies_.one());
      }
    }
    CopiesProgram side_by_side(copies_.of_count(last), std::move(on_one),
                               {.threads = static_cast<int>(last)});
    CopiesProgram in_turn(copies_.of_count(last), std::move(on_all_threads), {.in_turn = last});
    const Trials trials{.runs = last * std::ssize(copies_.one().order), .least = last};
    const Contender first{side_by_side, seconds_of_least(side_by_side, trials, now_)};
    const Contender second{in_turn, seconds_of_least(in_turn, trials, now_)};
    const bool takes_turns = ratio_of_seconds(first, second, trials, now_) < 1;
    Programs winners = (takes_turns ? in_turn : side_by_side).take_programs();
    for (const auto& program : winners) {  // it has trained
      clear(*program, copies_.one(), {Role::parameter, Role::gradient, Role::state, Role::loss});
    }
    std::move(winners.begin(), winners.end(), from);
    return takes_turns;
  }

  /// A GPU's streams hold but so many launches, behind which the host would wait for one copy
  /// before it comes to the next.
  [[nodiscard]] bool goes_step_by_step() const {
    return is_gpu() && options_.placement == Placement::resident &&
           !facts_of(options_.execution).of_whole_order;
  }

  const Backend& own_;
  const Copies copies_;
  CompileOptions options_;  ///< of one copy
  const Stopwatch now_;
  int all_threads_ = 1;
  std::unique_ptr<Plan> first_;
};

class CopiesBackend : public BackendOver {
 public:
  CopiesBackend(const Backend& own, std::int64_t copies, Stopwatch now)
      : BackendOver(own), copies_(copies), now_(std::move(now)) {}

  [[nodiscard]] std::vector<Execution> executions(const Workload& workload,
                                                  Precision precision) const override {
    return own().executions(Copies(workload, copies_).one(), precision);
  }
  [[nodiscard]] Estimate estimate(const Workload& workload,
                                  const CompileOptions& options) const override {
    CompileOptions at_once = options;
    at_once.copies = copies_;
    Estimate all = own().estimate(Copies(workload, copies_).one(), at_once);
    const std::int64_t programs = copies_ / all.copies;
    all.launches *= all.joins ? 1 : programs;
    all.bytes *= programs;
    all.workspace_bytes *= programs;
    return all;
  }
  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& workload,
                                           const CompileOptions& options) const override {
    check(workload);
    cpu::allow_threads(options.threads);
    return std::make_unique<CopiesPlan>(own(), Copies(workload, copies_), options, now_);
  }

 private:
  const std::int64_t copies_;
  const Stopwatch now_;
};

}  // namespace

std::unique_ptr<Backend> make_copies_backend(const Backend& own, std::int64_t copies,
                                             Stopwatch now) {
  return std::make_unique<CopiesBackend>(own, copies, std::move(now));
}

}  // namespace crossover
