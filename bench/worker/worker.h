// SPDX-License-Identifier: Apache-2.0
// Whatever computes, as the program that plans sees it: bench's own rows in this process or in a
// child, PyTorch in another.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "worker/protocol.h"

namespace crossover::bench {

/// The worker's process is no more; what() is a sentence on how it ended.
struct WorkerEnded : std::runtime_error {
  explicit WorkerEnded(const std::string& how, bool no_answer = false)
      : std::runtime_error(how), hung(no_answer) {}
  bool hung;  ///< it had to be ended: no answer came in time
};

class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  virtual ~Worker() = default;

  /// Throws WorkerEnded, also where nothing is heard of it for `limit_seconds`, or its answer is
  /// not what docs/protocol.md says; what was prepared is gone then, and the next request finds a
  /// new process.
  virtual Json ask(const Json& request, double limit_seconds) = 0;

  /// Seconds of the last request in which this process could not run: it was stopped, or frozen.
  [[nodiscard]] virtual double paused_seconds() const { return 0; }

  /// Ends it at once, so that the next request finds a new process, with `more` behind its words.
  /// False where it has none: then all stays as it is.
  virtual bool replace(const std::vector<std::string>& /*more*/) { return false; }

  /// Lets its process end by itself, so that the next request finds a new one. False where it has
  /// none.
  virtual bool renew() { return false; }
};

/// Answers in this process: for debuggers and profilers, and for tests.
class LocalWorker : public Worker {
 public:
  explicit LocalWorker(std::function<Json(const Json& request)> answer)
      : answer_(std::move(answer)) {}
  Json ask(const Json& request, double /*limit_seconds*/) override { return answer_(request); }

 private:
  std::function<Json(const Json& request)> answer_;
};

/// A child, started when it is first asked. It dies with this process, and Ctrl-C is not for it.
/// What it says on standard error is passed on, each line once: the next process says it again.
class WorkerProcess : public Worker {
 public:
  /// `command`: a program's path and its arguments. `variables`: beside those of this process.
  explicit WorkerProcess(std::vector<std::string> command,
                         const std::map<std::string, std::string>& variables = {});
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess() override { close(); }

  Json ask(const Json& request, double limit_seconds) override;
  [[nodiscard]] double paused_seconds() const override {
    return answers_ ? answers_->paused_seconds() - paused_before_ : 0;
  }
  bool replace(const std::vector<std::string>& more) override;
  bool renew() override;

  /// Lets it end by itself, and waits. Its exit code, or 128 and the signal's number, or that of a
  /// renewed one before it; 0 where there is none.
  int close();

 private:
  void start();
  /// Waits for its end, and makes it end after `patience`.
  int end(std::chrono::duration<double> patience);
  /// What is there of its standard error.
  void pass_on();
  void pass_on(const std::string& line);
  /// It ended, or soon will.
  [[noreturn]] void lost(double limit_seconds);
  [[noreturn]] void lost(const std::string& how, bool hung);

  std::vector<std::string> command_;
  std::vector<std::string> variables_;  ///< NAME=VALUE, all
  pid_t process_ = -1;
  int code_ = 0;  ///< of the processes that were renewed: the largest
  Pipes pipes_;
  int errors_ = -1;                ///< its standard error
  std::string unfinished_;         ///< of that, without its line's end
  std::string last_words_;         ///< of that, since it was asked last
  std::set<std::string> told_;     ///< lines of the processes before
  std::set<std::string> telling_;  ///< of this one
  std::optional<LineReader> answers_;
  double paused_before_ = 0;  ///< it was asked last, in seconds
  std::string doing_;         ///< by its own word, since it was asked last
};

/// This program as a child of its own, which --worker tells so; `words`: the command line without
/// the program.
std::unique_ptr<WorkerProcess> start_own_worker(const std::vector<std::string>& words);

}  // namespace crossover::bench
