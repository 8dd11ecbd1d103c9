// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iterator>
#include <sstream>
#include <thread>

namespace crossover::bench {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  std::transform(texts.begin(), texts.end(), std::back_inserter(all),
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
constexpr std::chrono::seconds at_its_end(60);

int code_of(int status) {
  return WIFSIGNALED(status) ? of_signals + WTERMSIG(status) : WEXITSTATUS(status);
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
  // Between fork() and execve() nothing may allocate.
  std::vector<char*> words = pointers(command_);
  std::vector<char*> variables = pointers(variables_);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGPIPE, SIG_DFL);
    const bool is_ready = getppid() == parent && dup2(requests[0], STDIN_FILENO) >= 0 &&
                          dup2(answers[1], STDOUT_FILENO) >= 0;
    if (is_ready) {
      execve(words.front(), words.data(), variables.data());
    }
    constexpr int not_found = 127;
    _exit(not_found);
  }
  ::close(requests[0]);
  ::close(answers[1]);
  pipes_ = {.from = answers[0], .to = requests[1]};
  answers_.emplace(pipes_.from);
  if (process_ < 0) {
    throw std::runtime_error(std::string("no process for a worker: ") + std::strerror(errno));
  }
}

Json WorkerProcess::ask(const Json& request, double limit_seconds) {
  if (process_ < 0) {
    start();
  }
  doing_.clear();
  if (!write_json(pipes_.to, request)) {
    lost();
  }
  for (;;) {
    std::optional<std::string> line;
    try {
      line = answers_->next(limit_seconds);
    } catch (const LineReader::Late&) {
      std::ostringstream how;
      how.precision(3);
      how << "did not answer within " << limit_seconds << " s";
      lost(how.str(), /*hung=*/true);
    }
    if (!line) {
      lost();
    }
    Json answer = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
    if (!answer.is_object()) {
      lost("answered what is no object of JSON: " + line->substr(0, 80), /*hung=*/false);
    }
    if (!answer.contains("doing")) {
      return answer;
    }
    doing_ = answer["doing"];
  }
}

void WorkerProcess::lost(const std::string& how, bool hung) {
  end(std::chrono::seconds(0));
  throw WorkerEnded("the worker's process " + how + (doing_.empty() ? "" : " while " + doing_),
                    hung);
}

void WorkerProcess::lost() {
  const int code = end(at_its_end);
  lost(code > of_signals
           ? std::string("was ended by a signal (") + strsignal(code - of_signals) + ")"
           : "ended with exit code " + std::to_string(code),
       /*hung=*/false);
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

int WorkerProcess::end(std::chrono::seconds patience) {
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
  ::close(pipes_.from);
  process_ = -1;
  return code_of(status);
}

}  // namespace crossover::bench
