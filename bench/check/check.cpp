// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>
#include <utility>

#include "build_info.h"
#include "crossover/verify.h"
#include "file/context.h"
#include "rows/described_gpu.h"
#include "run/spent.h"
#include "worker/bench_worker.h"

namespace crossover::bench {
namespace {

constexpr double default_seconds = 60;
constexpr double share_of_one = 1.0 / 12;  // 5 s of these
/// Of the driver, the libraries and the list of checks.
constexpr double start_seconds = 30;

constexpr const char* not_reached = "not reached";

struct Line {
  Check check;
  std::string verdict = not_reached;
  std::string reason;  ///< empty: ok, or not reached
  double seconds = 0;
};

bool is_failure(const Line& line) {
  return line.verdict != "ok" && line.verdict != "refused" && line.verdict != not_reached;
}

// ---- the table as text

/// The widest of each column.
struct Widths {
  std::size_t device = 0, what = 0, precision = 0, how = 0;

  explicit Widths(const std::vector<Line>& lines) {
    for (const Line& line : lines) {
      device = std::max(device, line.check.device.size());
      what = std::max(what, line.check.what.size());
      precision = std::max(precision, line.check.precision.size());
      how = std::max(how, line.check.how.size());
    }
  }
};

void print(const Line& line, const Widths& widths) {
  const auto column = [](const std::string& text, std::size_t width) {
    return text + std::string(width - text.size() + 2, ' ');
  };
  std::cout << column(line.check.device, widths.device) << column(line.check.what, widths.what)
            << column(line.check.precision, widths.precision) << column(line.check.how, widths.how)
            << line.verdict << (line.reason.empty() ? "" : " (" + line.reason + ")") << std::endl;
}

void print_summary(const Json& context) {
  const Json& software = context.at("software");
  const Json& machine = context.at("machine");
  std::cout << "bench " << build::version << ", commit " << commit_line() << ", "
            << software.at("compiler").get<std::string>() << "\n";
  std::cout << "cpu    " << machine.at("cpu").at("model").get<std::string>() << ", "
            << machine.at("cpu").at("cores") << " cores, "
            << machine.at("cpu").at("simd").get<std::string>() << "\n";
  const Json& gpu = machine.at("gpu");
  std::cout << "gpu    ";
  if (gpu.is_null()) {
    std::cout << machine.at("gpu_reason").get<std::string>() << "\n";
  } else {
    std::cout << gpu.at("name").get<std::string>();
    for (const auto& [key, value] : gpu.items()) {
      if (key != "name") {
        std::cout << ", " << key << " "
                  << (value.is_string() ? value.get<std::string>() : value.dump());
      }
    }
    std::cout << "\n";
  }
  std::cout << "with   ";
  const char* separator = "";
  for (const auto& [library, version] : software.at("libraries").items()) {
    std::cout << std::exchange(separator, ", ") << library << " " << version.get<std::string>();
  }
  std::cout << "\n" << std::endl;
}

std::string counted(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what;
}

/// "All 143 checks passed in 21 s."
std::string conclusion(const std::vector<Line>& lines, double seconds) {
  const auto count = [&](auto is) {
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), is));
  };
  const std::size_t failed = count(is_failure);
  const std::size_t refused = count([](const Line& l) { return l.verdict == "refused"; });
  const std::size_t open = count([](const Line& l) { return l.verdict == not_reached; });
  const std::string time = " in " + std::to_string(std::lround(std::ceil(seconds))) + " s.";
  if (failed + refused + open == 0) {
    return "All " + counted(lines.size(), "checks passed") + time;
  }
  std::vector<std::string> parts{counted(lines.size() - failed - refused - open, "passed")};
  for (const auto& [number, what] :
       {std::pair{failed, "failed"}, {refused, "were refused"}, {open, "were not reached"}}) {
    if (number > 0) {
      parts.push_back(counted(number, what));
    }
  }
  return "Of " + counted(lines.size(), "checks ") + join(parts) + time;
}

// ---- the table as JSON

Json json_of(const Line& line) {
  return {{"name", line.check.name()}, {"device", line.check.device},
          {"what", line.check.what},   {"precision", line.check.precision},
          {"how", line.check.how},     {"verdict", line.verdict},
          {"reason", line.reason},     {"seconds", std::round(line.seconds * 1e3) / 1e3}};
}

/// The whole file each time: who reads it meanwhile, or after a crash, finds all that is known.
class CheckFile {
 public:
  explicit CheckFile(std::filesystem::path path, Json head)
      : path_(std::move(path)), head_(std::move(head)) {}

  void write(const std::vector<Line>& lines, double seconds) {
    if (path_.empty()) {
      return;
    }
    Json all = head_;
    all["seconds"] = std::round(seconds * 1e3) / 1e3;
    all["summary"] = conclusion(lines, seconds);
    all["checks"] = Json::array();
    for (const Line& line : lines) {
      all["checks"].push_back(json_of(line));
    }
    const std::filesystem::path beside = path_.string() + ".tmp";
    std::ofstream file(beside);
    file << all.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    file.close();
    std::error_code error;
    if (file) {
      std::filesystem::rename(beside, path_, error);
    }
    if (!file || error) {
      throw UsageError(path_.string() + " can't be written; name another file with --out");
    }
  }

 private:
  std::filesystem::path path_;
  Json head_;
};

// ---- the child

/// The devices as the child describes them; where it can't, the CPU alone.
class Child {
 public:
  explicit Child(std::vector<std::string> words)
      : words_(std::move(words)), worker_(start_bench_worker(words_)) {}

  /// What has happened to it is in gpu_reason.
  Devices devices() {
    try {
      return described_devices(worker_->ask({{"do", "describe"}}, start_seconds));
    } catch (const WorkerEnded& end) {
      words_.emplace_back("--cuda=off");
      worker_ = start_bench_worker(words_);
      Devices cpu = described_devices(worker_->ask({{"do", "describe"}}, start_seconds));
      cpu.gpu_reason = std::string("none (") + end.what() + " while the GPU was opened)";
      return cpu;
    }
  }

  Json check(const std::string& name, double limit_seconds) {
    if (is_new_) {
      static_cast<void>(worker_->ask({{"do", "describe"}}, start_seconds));
      is_new_ = false;
    }
    try {
      Json answer = worker_->ask({{"do", "check"}, {"name", name}}, limit_seconds);
      if (answer.value("device_failed", false)) {
        is_new_ = worker_->replace();
      }
      return answer;
    } catch (const WorkerEnded&) {
      is_new_ = true;
      throw;
    }
  }

 private:
  std::vector<std::string> words_;
  std::unique_ptr<WorkerProcess> worker_;
  bool is_new_ = false;
};

void take_verdict(Line& line, Child& child, double limit_seconds) {
  const auto start = std::chrono::steady_clock::now();
  try {
    const Json answer = child.check(line.check.name(), limit_seconds);
    line.verdict = answer.at("verdict");
    line.reason = answer.at("reason");
  } catch (const WorkerEnded& end) {
    line.verdict = end.hung ? "hung" : "crashed";
    line.reason = end.what();
  }
  line.seconds = seconds_since(start);
}

}  // namespace

Json run_check(const std::vector<Check>& checks, const std::string& name,
               const std::function<void(const std::string& part)>& tell) {
  std::size_t refused = 0;
  std::string reason;
  const auto ended = [](const char* verdict, const std::string& why) -> Json {
    return {{"verdict", verdict}, {"reason", why}};
  };
  const auto found = std::find_if(checks.begin(), checks.end(),
                                  [&](const Check& one) { return one.name() == name; });
  if (found == checks.end()) {  // it was planned for a GPU that this process has not
    return ended("failed", "the GPU is gone");
  }
  const Check& check = *found;
  const auto refuse = [&](const Part& part, const char* why) {
    if (refused++ == 0) {
      reason = check.parts.size() == 1 ? why : part.name + ": " + why;
    }
  };
  for (const Part& part : check.parts) {
    tell(part.name);
    const auto failed = [&](const char* verdict, const char* why) {
      return ended(verdict, check.parts.size() == 1 ? why : part.name + ": " + why);
    };
    try {
      part.run();
    } catch (const Unsupported& error) {
      refuse(part, error.what());
    } catch (const OutOfMemory& error) {
      refuse(part, error.what());
    } catch (const std::bad_alloc&) {
      refuse(part, "out of memory");
    } catch (const Mismatch& error) {
      return failed("wrong", error.what());
    } catch (const DeviceFailed& error) {
      Json answer = failed("crashed", error.what());
      answer["device_failed"] = true;
      return answer;
    } catch (const std::exception& error) {
      return failed("failed", error.what());
    }
  }
  if (refused > 0 && refused < check.parts.size()) {
    reason = std::to_string(refused) + " of " + std::to_string(check.parts.size()) + " refused; " +
             reason;
  }
  return ended(refused > 0 ? "refused" : "ok", reason);
}

void check_machine(const Arguments& arguments, const std::vector<std::string>& words) {
  const Instant start = std::chrono::steady_clock::now();
  const double seconds = arguments.budget_seconds.value_or(default_seconds);
  Child child(words);
  Devices devices = child.devices();
  std::vector<Line> lines;
  for (Check& check : all_checks(arguments, devices)) {
    lines.push_back({.check = std::move(check)});
  }
  const Json head = {{"crossover_check", 1},
                     {"date", now_in_utc()},
                     {"machine", machine_json(devices)},
                     {"software", software_json(devices)}};
  print_summary(head);
  CheckFile file(arguments.out.value_or(""), head);
  const Widths widths(lines);
  for (Line& line : lines) {
    if (seconds_since(start) < seconds) {
      take_verdict(line, child, seconds * share_of_one);
      print(line, widths);
      file.write(lines, seconds_since(start));
    }
  }
  const auto failed = [](const Line& line) { return is_failure(line); };
  if (std::any_of(lines.begin(), lines.end(), failed)) {
    std::cout << "\nFailed:\n";
  }
  for (const Line& line : lines) {
    if (is_failure(line)) {
      print(line, widths);
    }
  }
  std::cout << "\n" << conclusion(lines, seconds_since(start)) << std::endl;
}

}  // namespace crossover::bench
