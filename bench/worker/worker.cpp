// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

#include "axes/flag.h"
#include "base/bounded_json.h"
#include "base/say.h"
#include "crossover/machine.h"

namespace crossover::bench {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  std::ranges::transform(texts, std::back_inserter(all),
                         [](std::string& text) { return text.data(); });
  all.push_back(nullptr);
  return all;
}

/// The environment of this process with these in it.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!variables.contains(text.substr(0, text.find('=')))) {
      all.push_back(text);
    }
  }
  for (const auto& [name, value] : variables) {
    all.push_back(name);
    all.back().append("=").append(value);
  }
  return all;
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error(std::string("no pipe to a worker: ") + std::strerror(errno));
  }
  return ends;
}

/// A process that a signal ended has this and the signal's number as its code.
constexpr int of_signals = 128;

/// To free what it holds, and to look for leaks where it does that.
constexpr std::chrono::duration<double> at_its_end(60);

/// How often, of what one waits in silence, its word is believed that it goes on; and the least
/// that a word counts: nobody has a new one more often.
constexpr int times_believed = 100;
constexpr double apart_seconds = 0.5;

std::string in_seconds(double seconds) {
  std::ostringstream text;
  text.precision(3);
  text << seconds << " s";
  return text.str();
}

}  // namespace

WorkerProcess::WorkerProcess(std::vector<std::string> command,
                             const std::map<std::string, std::string>& variables)
    : command_(std::move(command)), variables_(environment_with(variables)) {
  std::signal(SIGPIPE, SIG_IGN);  // a worker that has ended is an error, not a signal
}

void WorkerProcess::start() {
  const std::array<int, 2> requests = make_pipe();
  const std::array<int, 2> answers = make_pipe();
  const std::array<int, 2> errors = make_pipe();
  // Between fork() and execve() nothing may allocate.
  std::vector<char*> words = pointers(command_);
  std::vector<char*> variables = pointers(variables_);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGPIPE, SIG_DFL);
    unbind_processors();  // OpenMP may have bound this thread to one, which is not for the child
    const bool is_ready = getppid() == parent && dup2(requests[0], STDIN_FILENO) >= 0 &&
                          dup2(answers[1], STDOUT_FILENO) >= 0 &&
                          dup2(errors[1], STDERR_FILENO) >= 0;
    if (is_ready) {
      execve(words.front(), words.data(), variables.data());
    }
    constexpr int not_found = 127;
    _exit(not_found);
  }
  ::close(requests[0]);
  ::close(answers[1]);
  ::close(errors[1]);
  pipes_ = {.from = answers[0], .to = requests[1]};
  errors_ = errors[0];
  fcntl(errors_, F_SETFL, O_NONBLOCK);
  told_.merge(telling_);
  telling_.clear();
  answers_.emplace(pipes_.from, errors_, [this] { pass_on(); });
  if (process_ < 0) {
    throw std::runtime_error(std::string("no process for a worker: ") + std::strerror(errno));
  }
}

Json WorkerProcess::ask(const Json& request, double limit_seconds) {
  if (process_ < 0) {
    start();
  }
  doing_.clear();
  last_words_.clear();
  paused_before_ = answers_->paused_seconds();
  if (!write_json(pipes_.to, request)) {
    lost(limit_seconds);
  }
  double believed_seconds = times_believed * limit_seconds;
  for (;;) {
    std::optional<std::string> line;
    const auto begun = std::chrono::steady_clock::now();
    const double paused = answers_->paused_seconds();
    try {
      line = answers_->next(limit_seconds);
    } catch (const LineReader::Late&) {
      lost("did not answer within " + in_seconds(limit_seconds), /*hung=*/true);
    } catch (const LineReader::TooLong&) {
      lost("answered '" + request.at("do").get<std::string>() + "' with a line of over " +
               std::to_string(LineReader::longest >> 20) + " MB",
           /*hung=*/false);
    }
    if (!line) {
      lost(limit_seconds);
    }
    Json answer = bounded_json(*line, deepest_answer);
    if (!answer.is_object()) {
      lost("answered what is no object of JSON, or is nested too deeply: " + line->substr(0, 80),
           /*hung=*/false);
    }
    if (!answer.contains("doing") || !answer["doing"].is_string()) {
      if (const std::string fault = fault_of(request, answer); !fault.empty()) {
        lost("answered '" + request.at("do").get<std::string>() + "' with nonsense (" + fault +
                 "): " + line->substr(0, 80),
             /*hung=*/false);
      }
      return answer;
    }
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begun;
    believed_seconds -=
        std::max(apart_seconds, waited.count() - (answers_->paused_seconds() - paused));
    if (believed_seconds < 0) {
      lost("said what it is doing for " + std::to_string(times_believed) + " times " +
               in_seconds(limit_seconds) + ", and did not answer",
           /*hung=*/true);
    }
    constexpr std::size_t longest = 200;
    doing_ = answer["doing"].get<std::string>().substr(0, longest);
  }
}

void WorkerProcess::lost(const std::string& how, bool hung) {
  end(std::chrono::seconds(0));
  throw WorkerEnded("the worker's process " + how + (doing_.empty() ? "" : " while " + doing_) +
                        (last_words_.empty() ? "" : "; its last words: " + last_words_),
                    hung);
}

void WorkerProcess::lost(double limit_seconds) {
  // One that closed its output, and stays, is waited for no longer than for an answer.
  const int code = end(std::min(at_its_end, std::chrono::duration<double>(limit_seconds)));
  lost(code > of_signals
           ? std::string("was ended by a signal (") + strsignal(code - of_signals) + ")"
           : "ended with exit code " + std::to_string(code),
       /*hung=*/false);
}

void WorkerProcess::pass_on() {
  constexpr std::size_t most = 1 << 20;  // at once: whoever floods it is not waited for
  constexpr std::size_t longest = 1 << 16;
  std::array<char, 4096> block{};
  std::size_t taken = 0;
  for (ssize_t count = 0;
       taken < most && (count = read(errors_, block.data(), block.size())) > 0;) {
    taken += static_cast<std::size_t>(count);
    unfinished_.append(block.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = unfinished_.find('\n')) != std::string::npos;) {
      pass_on(unfinished_.substr(0, end));
      unfinished_.erase(0, end + 1);
    }
    if (unfinished_.size() > longest) {
      pass_on(std::exchange(unfinished_, ""));
    }
  }
}

void WorkerProcess::pass_on(const std::string& line) {
  constexpr std::size_t most_remembered = 1000;
  constexpr std::size_t longest = 200;
  if (std::ranges::any_of(line, [](unsigned char c) { return std::isalpha(c) != 0; })) {
    last_words_ = line.substr(0, longest);
  }
  if (told_.contains(line)) {
    return;
  }
  if (telling_.size() < most_remembered) {
    telling_.insert(line);
  }
  write_line(STDERR_FILENO, printable(line));
}

bool WorkerProcess::replace(const std::vector<std::string>& more) {
  end(std::chrono::seconds(0));
  command_.insert(command_.end(), more.begin(), more.end());
  return true;
}

bool WorkerProcess::renew() {
  code_ = std::max(code_, end(at_its_end));
  return true;
}

int WorkerProcess::close() { return std::max(code_, end(at_its_end)); }

int WorkerProcess::end(std::chrono::duration<double> patience) {
  if (process_ < 0) {
    return 0;
  }
  ::close(pipes_.to);
  // A driver may keep a process that was killed; then nobody can wait for its end.
  constexpr std::chrono::seconds after_kill(5);
  constexpr std::chrono::milliseconds nap(1);
  const auto start = std::chrono::steady_clock::now();
  int status = 0;
  while (waitpid(process_, &status, WNOHANG) == 0) {
    pass_on();
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited >= patience) {
      kill(process_, SIGKILL);
    }
    if (waited > patience + after_kill) {
      status = SIGKILL;
      break;
    }
    std::this_thread::sleep_for(nap);
  }
  pass_on();
  if (!unfinished_.empty()) {
    pass_on(std::exchange(unfinished_, ""));
  }
  ::close(pipes_.from);
  ::close(errors_);
  process_ = -1;
  return WIFSIGNALED(status) ? of_signals + WTERMSIG(status) : WEXITSTATUS(status);
}

std::unique_ptr<WorkerProcess> start_own_worker(const std::vector<std::string>& words) {
  std::vector<std::string> command{"/proc/self/exe"};
  if (access(command.front().c_str(), X_OK) != 0) {
    throw UsageError(command.front() +
                     " can't be started, which is this program; mount /proc, or use --in-process");
  }
  command.insert(command.end(), words.begin(), words.end());
  command.emplace_back("--worker");
  return std::make_unique<WorkerProcess>(std::move(command));
}

}  // namespace crossover::bench
