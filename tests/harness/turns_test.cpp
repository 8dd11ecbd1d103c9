// SPDX-License-Identifier: Apache-2.0
// Whose turn it is among rows of the same work, on devices that compute nothing.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "made_rows.h"

namespace crossover::test {
namespace {

using namespace bench;
using Names = std::vector<std::string>;
using Fresh = std::function<std::unique_ptr<Worker>()>;

/// Rows on both devices, and what they did in which order.
class Turns : public MadeRows {
 protected:
  Turns() : MadeRows({.repetitions = repetitions, .min_time_seconds = 1e-6}) {}

  /// "cpu disc-2", say.
  void add(const std::string& device, const std::string& model, int threads = 1,
           const std::string& pass = "Epoch") {
    RowSpec spec{.family = RowFamily::epoch, .model = model, .device = device};
    if (device == "cpu") {
      spec.threads = threads;
    }
    const std::string shown =
        device + " " + model + (threads > 1 ? " " + std::to_string(threads) : "");
    MadeRows::add({.spec = spec}, pass,
                  [this, shown](Result& /*result*/) -> std::unique_ptr<PreparedBenchmark> {
                    if (held_ >= room_) {
                      log_.push_back(shown + " has no room");
                      throw OutOfMemory("not enough memory");
                    }
                    if (shown == failing_) {
                      throw std::runtime_error("wrong");
                    }
                    return std::make_unique<Logged>(*this, shown);
                  });
  }

  /// Workers that hold nothing yet.
  Fresh fresh() {
    return [this] { return worker(); };
  }

  Names measured(const ScheduleOptions& options = {}) { return measured(options, *worker()); }

  Names measured(const ScheduleOptions& options, Worker& by) {
    log_.clear();
    spent_ = {};
    run(options, repetitions, by);
    EXPECT_TRUE(spent_.timed > 0 || unmeasured_ == plan_.size());
    EXPECT_LE(spent_.timed + spent_.warm_up + spent_.verification + spent_.profile + spent_.lent,
              spent_.all());
    return log_;
  }

  static constexpr int repetitions = 3;
  std::string failing_;

 private:
  class Logged : public PreparedBenchmark {
   public:
    Logged(Turns& test, std::string shown) : test_(test), shown_(std::move(shown)) {
      ++test_.held_;
    }
    ~Logged() override { --test_.held_; }
    Logged(const Logged&) = delete;
    Logged& operator=(const Logged&) = delete;
    void run() override { ran_ = true; }
    void check() override {
      ASSERT_TRUE(ran_);
      if (test_.log_.empty() || test_.log_.back() != shown_ || !is_trial_) {
        test_.log_.push_back(shown_);
      }
      is_trial_ = true;
    }
    void start() override { is_trial_ = false; }

   private:
    Turns& test_;
    std::string shown_;
    bool ran_ = false;
    bool is_trial_ = true;
  };

  Names log_;
};

/// Trials of a first repetition come in a row: how often is not what these tests are about.
Names without_repeats(const Names& log) {
  Names found;
  for (const std::string& name : log) {
    if (found.empty() || found.back() != name) {
      found.push_back(name);
    }
  }
  return found;
}

TEST_F(Turns, AlternateBetweenDevicesThatDoTheSameWork) {
  add("cpu", "disc-2");
  add("cuda", "disc-2");
  add("cpu", "disc-3");
  add("cuda", "disc-3");
  EXPECT_EQ(without_repeats(measured()),
            (Names{"cpu disc-2", "cuda disc-2", "cpu disc-2", "cuda disc-2", "cpu disc-2",
                   "cuda disc-2", "cpu disc-3", "cuda disc-3", "cpu disc-3", "cuda disc-3",
                   "cpu disc-3", "cuda disc-3"}));
  EXPECT_EQ(unmeasured_, 0U);
}

TEST_F(Turns, FollowEachOtherOnOneDevice) {
  add("cpu", "disc-2", 1);
  add("cpu", "disc-2", 2);
  EXPECT_EQ(without_repeats(measured()), (Names{"cpu disc-2", "cpu disc-2 2"}));
}

TEST_F(Turns, AlternateOnOneDeviceWhereTheyAreShuffled) {
  add("cpu", "disc-2", 1);
  add("cpu", "disc-2", 2);
  EXPECT_GE(without_repeats(measured({.together = Together::all, .shuffled = true})).size(),
            4U);  // each round has both
}

TEST_F(Turns, AlternateOnOneDeviceWhereTheyGoTogether) {
  add("cpu", "disc-2", 1);
  add("cpu", "disc-2", 2);
  add("cpu", "disc-3");
  EXPECT_EQ(without_repeats(measured({.together = Together::all})),
            (Names{"cpu disc-2", "cpu disc-2 2", "cpu disc-2", "cpu disc-2 2", "cpu disc-2",
                   "cpu disc-2 2", "cpu disc-3"}));
}

TEST_F(Turns, OfARowBesideAnotherAreWithItWhereOthersOfTheirDeviceFollow) {
  add("cpu", "disc-2", 1);
  add("cpu", "disc-2", 2);
  const std::string lead = plan_.front().name;
  add("cpu", "disc-2", 3);
  rows_[plan_.back().name].lead = lead;
  std::swap(plan_[1], plan_[2]);
  EXPECT_EQ(without_repeats(measured()),
            (Names{"cpu disc-2", "cpu disc-2 3", "cpu disc-2", "cpu disc-2 3", "cpu disc-2",
                   "cpu disc-2 3", "cpu disc-2 2"}));
}

TEST_F(Turns, OfWhatAnswersComeFirstWithFewRepetitionsAndTheRestBesideAllOthers) {
  constexpr std::size_t many = 7;
  add("cpu", "disc-2", 1, pass_of_answer);
  add("cpu", "disc-4", 1, pass_of_answer);
  add("cpu", "disc-3");
  std::vector<std::size_t> when_answered;
  when_answered_ = [&] {
    for (const PlannedRow& planned : plan_) {
      when_answered.push_back(rows_[planned.name].record.repetitions.size());
    }
  };
  for (const PlannedRow& planned : plan_) {
    rows_[planned.name].repetitions = many;
  }
  const Names log = without_repeats(measured({.answer_seconds = 1000}));
  EXPECT_EQ(when_answered, (std::vector<std::size_t>{5, 5, 0}));
  EXPECT_EQ(log, (Names{"cpu disc-2", "cpu disc-4", "cpu disc-2", "cpu disc-4", "cpu disc-3"}));
  for (const PlannedRow& planned : plan_) {
    EXPECT_EQ(rows_[planned.name].record.repetitions.size(), many);
  }
}

TEST_F(Turns, OfOneNetworkAnswerNothing) {
  add("cpu", "disc-2", 1, pass_of_answer);
  add("cuda", "disc-2", 1, pass_of_answer);
  when_answered_ = [] { ADD_FAILURE(); };
  measured({.answer_seconds = 1000});
}

TEST_F(Turns, AreLeftByARowThatFails) {
  add("cpu", "disc-2");
  add("cuda", "disc-2");
  failing_ = "cuda disc-2";
  EXPECT_EQ(without_repeats(measured()), Names{"cpu disc-2"});
  EXPECT_EQ(unmeasured_, 1U);
  EXPECT_EQ(rows_[plan_[1].name].record.outcome, Outcome::failed);
}

/// As a process whose n-th request is its end.
class Ending : public Worker {
 public:
  Ending(Fresh fresh, int requests) : fresh_(std::move(fresh)), left_(requests) {}
  Json ask(const Json& request, double limit_seconds) override {
    if (request.at("do") == "describe") {
      return {{"devices", {{"cuda", Json::object()}}}};
    }
    if (--left_ == 0) {
      own_ = fresh_();
      throw WorkerEnded("the worker's process was ended by a signal (Segmentation fault)");
    }
    return own_->ask(request, limit_seconds);
  }

 private:
  Fresh fresh_;
  int left_;
  std::unique_ptr<Worker> own_ = fresh_();
};

TEST_F(Turns, OfAWorkerThatEndsCostOneRow) {
  for (int last = 1; last <= 14; ++last) {
    SCOPED_TRACE(last);
    begin_anew();
    add("cpu", "disc-2");
    add("cuda", "disc-2");
    add("cpu", "disc-3");
    Ending worker(fresh(), last);
    measured({}, worker);
    EXPECT_LE(unmeasured_, 1U);  // none, where it ended when it was to free what it held
    for (const PlannedRow& planned : plan_) {
      const Record& record = rows_[planned.name].record;
      if (record.outcome == Outcome::measured) {
        EXPECT_EQ(record.repetitions.size(), std::size_t{repetitions});
      } else {
        EXPECT_EQ(record.outcome, Outcome::failed);
        EXPECT_EQ(record.reason, "the worker's process was ended by a signal (Segmentation fault)");
      }
    }
  }
}

/// Rows that were prepared in it are made anew; their repetitions say so.
TEST_F(Turns, OfAWorkerThatEndsGoOnInAnotherInstance) {
  add("cpu", "disc-2");
  add("cuda", "disc-2");
  Ending worker(fresh(), 6);  // the second repetition of the second row
  measured({}, worker);
  std::vector<int> instances;
  for (const Repetition& repetition : rows_[plan_[0].name].record.repetitions) {
    instances.push_back(repetition.instance);
  }
  EXPECT_EQ(instances, (std::vector<int>{0, 0, 1}));
}

/// As a process that can be renewed: what it held is gone.
class Renewed : public Worker {
 public:
  explicit Renewed(Fresh fresh) : fresh_(std::move(fresh)) {}
  Json ask(const Json& request, double limit_seconds) override {
    return request.at("do") == "prepare" && fails_in_ == renewals
               ? failed_
               : own_->ask(request, limit_seconds);
  }
  bool renew() override {
    ++renewals;
    own_ = fresh_();
    return true;
  }
  void fail_in(int pass, const Json& how) {
    fails_in_ = pass - 1;
    failed_ = how;
  }
  int renewals = 0;

 private:
  Fresh fresh_;
  int fails_in_ = -1;
  Json failed_;
  std::unique_ptr<Worker> own_ = fresh_();
};

std::vector<int> instances_of(const Row& row) {
  std::vector<int> instances;
  for (const Repetition& repetition : row.record.repetitions) {
    instances.push_back(repetition.instance);
  }
  return instances;
}

TEST_F(Turns, OfEachPassAreAnotherInstanceInANewProcess) {
  add("cpu", "disc-2");
  add("cuda", "disc-2");
  add("cpu", "disc-3");
  Renewed worker(fresh());
  EXPECT_EQ(without_repeats(measured({.limits = {.most_passes = 9}}, worker)),
            (Names{"cpu disc-2", "cuda disc-2", "cpu disc-3", "cpu disc-2", "cuda disc-2",
                   "cpu disc-3", "cpu disc-2", "cuda disc-2", "cpu disc-3"}));
  EXPECT_EQ(worker.renewals, repetitions - 1);
  for (const PlannedRow& planned : plan_) {
    EXPECT_EQ(instances_of(rows_[planned.name]), (std::vector<int>{0, 1, 2}));
  }
}

TEST_F(Turns, OfAnInstanceThatIsUnavailableLeaveTheEarlierRepetitions) {
  add("cpu", "disc-2");
  Renewed worker(fresh());
  worker.fail_in(2, {{"outcome", "skipped"}, {"error_message", "not enough memory"}});
  measured({.limits = {.most_passes = 9}}, worker);
  const Record& record = rows_[plan_[0].name].record;
  EXPECT_EQ(record.outcome, Outcome::measured);
  EXPECT_EQ(instances_of(rows_[plan_[0].name]), std::vector<int>{0});
}

TEST_F(Turns, OfAnInstanceWithWrongResultsAreAFailure) {
  add("cpu", "disc-2");
  Renewed worker(fresh());
  worker.fail_in(3, {{"outcome", "failed"}, {"error_message", "the results differ"}});
  measured({.limits = {.most_passes = 9}}, worker);
  EXPECT_EQ(rows_[plan_[0].name].record.outcome, Outcome::failed);
  EXPECT_EQ(unmeasured_, 1U);
}

/// What making a further instance costs shows in the second pass.
class Dear : public Renewed {
 public:
  using Renewed::Renewed;
  Json ask(const Json& request, double limit_seconds) override {
    Json answer = Renewed::ask(request, limit_seconds);
    if (request.at("do") == "prepare" && renewals > 0) {
      answer["spent"]["making"] = 100;
    }
    return answer;
  }
};

TEST_F(Turns, AllComeOfAGroupWhoseFurtherInstancesTurnOutToBeDear) {
  constexpr int many = 9;
  add("cpu", "disc-2");
  add("cuda", "disc-2");
  for (const PlannedRow& planned : plan_) {
    rows_[planned.name].repetitions = many;
  }
  Dear worker(fresh());
  measured({.limits = {.most_passes = many}}, worker);
  for (const PlannedRow& planned : plan_) {
    const Record& record = rows_[planned.name].record;
    EXPECT_EQ(record.repetitions.size(), std::size_t{many});
    EXPECT_GE(record.instances, repetitions);
    EXPECT_LT(record.instances, many);
  }
}

/// Beside another program, until that ends.
class Disturbed : public Worker {
 public:
  Disturbed(const Fresh& fresh, int threads) : own_(fresh()), threads_(threads) {}
  Json ask(const Json& request, double limit_seconds) override {
    Json answer = own_->ask(request, limit_seconds);
    if (request.at("do") == "repeat") {
      answer["times"]["cpu_wait"] = threads_ * (is_busy ? 0.5 : 0.01);
    }
    return answer;
  }
  bool is_busy = true;

 private:
  std::unique_ptr<Worker> own_;
  int threads_;  ///< that wait so
};

TEST_F(Turns, ComeAgainForRowsThatWereDisturbedOnceTheMachineIsQuietWhileThereIsTime) {
  constexpr double plenty = 100;
  for (const auto& [quiet, share, threads] :
       {std::tuple{false, plenty, 1}, {true, plenty, 1}, {true, 0.0, 1}, {true, plenty, 16}}) {
    SCOPED_TRACE(std::to_string(share) + " on " + std::to_string(threads));
    const bool ends = quiet;
    begin_anew();
    add("cpu", "disc-2", threads);
    add("cpu", "disc-3", threads);
    Disturbed worker(fresh(), threads);
    measured({.limits = {.share_again = share},
              .is_quiet =
                  [&] {
                    worker.is_busy = !ends;
                    return ends;
                  }},
             worker);
    for (const PlannedRow& planned : plan_) {
      const Record& record = rows_[planned.name].record;
      EXPECT_EQ(std::ssize(record.repetitions), ends && share > 0 ? 2 * repetitions : repetitions);
      EXPECT_EQ(disturbed_repetitions(rows_[planned.name]), repetitions);
    }
  }
}

/// Repetitions of so many milliseconds, of which a hypervisor took these shares of a processor.
Row row_of(const std::vector<double>& milliseconds, const std::vector<double>& stolen = {}) {
  Row row;
  for (std::size_t i = 0; i < milliseconds.size(); ++i) {
    row.record.repetitions.push_back({.seconds = 1e-3 * milliseconds[i]});
    if (i < stolen.size()) {
      row.record.repetitions.back().counters["cpu_steal"] = stolen[i];
    }
  }
  return row;
}

TEST(Doubts, AreOfTimesFarApartAndOfWhatAHypervisorTook) {
  EXPECT_TRUE(doubts_about(row_of({1, 1.1, 1.2, 1.1, 1.25})).empty());
  EXPECT_TRUE(doubts_about(row_of({1, 2, 3, 4})).empty()) << "of so few nobody can tell";
  EXPECT_EQ(doubts_about(row_of({1.2, 1, 1.1, 1.5, 1.1})),
            (std::vector<std::string>{"its slowest repetition took 50 % longer than its fastest"}));
  EXPECT_TRUE(doubts_about(row_of({1, 1}, {0.01, 0})).empty());
  Row row = row_of({1, 1, 1}, {0.02, 0, 0.3});
  row.warnings = {"a warning"};
  row.record.doubts = {"a doubt"};
  EXPECT_EQ(doubts_about(row),
            (std::vector<std::string>{
                "a warning", "a doubt",
                "a hypervisor took up to 30 % of a processor in 2 of 3 repetitions"}));
}

TEST(Disturbed, AreRepetitionsOfWhichAHypervisorTookMuchOfAllProcessors) {
  const double all = usable_processors();
  EXPECT_EQ(disturbed_repetitions(row_of({1, 1, 1}, {0.04 * all, 0.06 * all, 0})), 1);
}

TEST_F(Turns, ComeLaterForARowThatDoesNotFitBesideTheOthers) {
  add("cpu", "disc-2", 1);
  add("cuda", "disc-2");
  add("cpu", "disc-2", 2);
  room_ = 2;
  EXPECT_EQ(without_repeats(measured()),
            (Names{"cpu disc-2", "cuda disc-2", "cpu disc-2 2 has no room", "cpu disc-2",
                   "cuda disc-2", "cpu disc-2", "cuda disc-2", "cpu disc-2 2"}));
  EXPECT_EQ(unmeasured_, 0U);
}

TEST_F(Turns, NeverComeForARowThatFitsNowhere) {
  add("cpu", "disc-2");
  add("cuda", "disc-2");
  room_ = 0;
  measured();
  EXPECT_EQ(unmeasured_, 2U);
  for (const PlannedRow& planned : plan_) {
    EXPECT_EQ(rows_[planned.name].record.outcome, Outcome::skipped);
    EXPECT_EQ(rows_[planned.name].record.reason, "not enough memory");
  }
}

}  // namespace
}  // namespace crossover::test
