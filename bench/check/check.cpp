// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
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
  Json found = {{"verdict", not_reached}, {"reason", ""}, {"seconds", 0}};

  [[nodiscard]] std::string verdict() const { return found.at("verdict"); }
};

bool is_failure(const Line& line) {
  return line.verdict() != "ok" && line.verdict() != "refused" && line.verdict() != not_reached;
}

// ---- the table as text

using Widths = std::array<std::size_t, 4>;

/// Of the widest text in each column.
Widths widths_of(const std::vector<Line>& lines) {
  Widths widest{};
  for (const Line& line : lines) {
    const auto columns = line.check.columns();
    for (std::size_t i = 0; i < widest.size(); ++i) {
      widest[i] = std::max(widest[i], columns[i].size());
    }
  }
  return widest;
}

void print(const Line& line, const Widths& widths) {
  const auto columns = line.check.columns();
  for (std::size_t i = 0; i < widths.size(); ++i) {
    std::cout << columns[i] << std::string(widths[i] - columns[i].size() + 2, ' ');
  }
  const std::string reason = line.found.at("reason");
  std::cout << line.verdict() << (reason.empty() ? "" : " (" + reason + ")") << std::endl;
}

/// "NVIDIA H200, 132 multiprocessors, 140.4 GiB, driver 580.65.06", or why there is none.
std::string gpu_line(const Json& machine) {
  const Json& gpu = machine.at("gpu");
  if (gpu.is_null()) {
    return machine.at("gpu_reason");
  }
  std::ostringstream text;
  text << gpu.at("name").get<std::string>();
  text.precision(4);
  if (gpu.contains("multiprocessors")) {
    text << ", " << gpu["multiprocessors"] << " multiprocessors";
  }
  if (gpu.contains("memory_bytes")) {
    constexpr double gibibyte = 1 << 30;
    text << ", " << gpu["memory_bytes"].get<double>() / gibibyte << " GiB";
  }
  text << ", driver " << gpu.value("driver", "unknown");
  return text.str();
}

void print_summary(const Json& context) {
  const Json& software = context.at("software");
  const Json& machine = context.at("machine");
  std::cout << "bench " << build::version << ", commit " << commit_line() << ", "
            << software.at("compiler").get<std::string>() << "\n";
  std::cout << "cpu    " << machine.at("cpu").at("model").get<std::string>() << ", "
            << machine.at("cpu").at("cores") << " cores, "
            << machine.at("cpu").at("simd").get<std::string>() << "\n";
  std::cout << "gpu    " << gpu_line(machine) << "\n";
  std::cout << "with   ";
  const char* separator = "";
  for (const auto& [library, version] : software.at("libraries").items()) {
    std::cout << std::exchange(separator, ", ") << library << " " << version.get<std::string>();
  }
  std::cout << "\n" << std::endl;
}

/// "All 143 checks passed in 21 s."
std::string conclusion(const std::vector<Line>& lines, double seconds) {
  std::map<std::string, std::size_t> counts;
  for (const Line& line : lines) {
    ++counts[is_failure(line) ? "failed" : line.verdict()];
  }
  const std::string all = std::to_string(lines.size());
  const std::string time = " in " + std::to_string(std::lround(std::ceil(seconds))) + " s.";
  if (counts["ok"] == lines.size()) {
    return "All " + all + " checks passed" + time;
  }
  std::vector<std::string> parts{std::to_string(counts["ok"]) + " passed"};
  for (const auto& [verdict, how] :
       {std::pair{"failed", " failed"}, {"refused", " refused"}, {not_reached, " not reached"}}) {
    if (counts[verdict] > 0) {
      parts.push_back(std::to_string(counts[verdict]) + how);
    }
  }
  return "Of " + all + " checks " + join(parts) + time;
}

// ---- the table as JSON

double rounded_to_milliseconds(double seconds) { return std::round(seconds * 1e3) / 1e3; }

Json json_of(const Line& line) {
  Json json = {{"name", line.check.name()},
               {"device", line.check.device},
               {"what", line.check.what},
               {"precision", line.check.precision},
               {"how", line.check.how}};
  json.update(line.found);
  return json;
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
    all["seconds"] = rounded_to_milliseconds(seconds);
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

/// The process that runs the checks, and the next one where it has ended.
class Child {
 public:
  explicit Child(const std::vector<std::string>& words)
      : worker_(start_bench_worker(words)), devices_(devices_in(*worker_, start_seconds)) {}

  /// `verdict`, `reason`, `seconds` and what else the child found.
  Json ask(const std::string& name, double limit_seconds) {
    const Instant start = std::chrono::steady_clock::now();
    Json answer;
    try {
      answer = worker_->ask({{"do", "check"}, {"name", name}}, limit_seconds);
    } catch (const WorkerEnded& end) {
      answer = {{"verdict", end.hung ? "hung" : "crashed"},
                {"reason", end.what()},
                {"device_failed", true}};
    }
    answer["seconds"] = rounded_to_milliseconds(seconds_since(start));
    if (answer.erase("device_failed") > 0) {
      worker_->replace({});
      const Devices again = devices_in(*worker_, start_seconds);
      if (!devices_.gpus().empty() && again.gpus().empty()) {
        gpu_lost_ = again.gpu_reason;
      }
    }
    return answer;
  }

  [[nodiscard]] Devices& devices() { return devices_; }
  /// Why there is no GPU any more; empty: all is as it was.
  [[nodiscard]] const std::string& gpu_lost() const { return gpu_lost_; }

 private:
  std::unique_ptr<WorkerProcess> worker_;
  Devices devices_;
  std::string gpu_lost_;
};

/// UsageError where a flag would be without effect.
void require_flags_of_a_check(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (name != "--check" && name != "--out" && name != "--budget" && name != "--cuda" &&
        !name.starts_with("--benchmark_")) {
      throw UsageError(name +
                       " changes nothing of a check, which takes --budget, --cuda and --out");
    }
  }
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
      Json answer = failed("wrong", error.what());
      if (error.error && std::isfinite(*error.error)) {
        answer["error"] = *error.error;
      }
      if (error.tolerance) {
        answer["tolerance"] = *error.tolerance;
      }
      return answer;
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
  require_flags_of_a_check(words);
  const Instant start = std::chrono::steady_clock::now();
  const double seconds = arguments.budget_seconds.value_or(default_seconds);
  Child child(words);
  Devices& devices = child.devices();
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
  file.write(lines, seconds_since(start));
  const Widths widths = widths_of(lines);
  for (Line& line : lines) {
    if (line.check.device != devices.cpu().name() && !child.gpu_lost().empty()) {
      line.found["reason"] = child.gpu_lost();
    } else if (seconds_since(start) < seconds) {
      line.found.update(child.ask(line.check.name(), seconds * share_of_one));
    } else {
      continue;
    }
    print(line, widths);
    file.write(lines, seconds_since(start));
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
  const double all = seconds_since(start);
  file.write(lines, all);
  std::cout << "\n" << conclusion(lines, all) << std::endl;
}

}  // namespace crossover::bench
