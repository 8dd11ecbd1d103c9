// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <utility>

#include "base/times.h"
#include "build_info.h"
#include "command_line/arguments.h"
#include "crossover/verify.h"
#include "families/device.h"
#include "file/context.h"
#include "rows/row.h"
#include "run/plan.h"
#include "worker/worker.h"

namespace crossover::bench {
namespace {

constexpr double default_seconds = 60;
constexpr double share_of_one = 1.0 / 12;  // 5 s of these
/// At least so much, if that is half of all, for what a GPU's process has not yet done in that
/// precision: the driver may have to compile our kernels, and a library of half a gigabyte is read
/// from a disk, or compiles kernels itself.
constexpr double seconds_of_first = 30;

double limit_of(double all_seconds, bool is_first) {
  const double usual = all_seconds * share_of_one;
  return is_first ? std::max(usual, std::min(seconds_of_first, all_seconds / 2)) : usual;
}
/// Of the driver, the libraries and the list of checks.
constexpr double start_seconds = 30;

constexpr const char* not_reached = "not reached";

struct Line {
  Check check;
  Json found = {{"verdict", not_reached}, {"reason", ""}, {"seconds", 0}};

  [[nodiscard]] std::string verdict() const { return found.at("verdict"); }
  [[nodiscard]] bool is_failure() const {
    return verdict() != "ok" && verdict() != "refused" && verdict() != not_reached;
  }
};

/// "Of 147 checks 145 ok, 2 refused in 4 s."
std::string conclusion(const std::vector<Line>& lines, double seconds) {
  std::vector<std::string> parts;
  for (const char* verdict : {"ok", "refused", "wrong", "failed", "crashed", "hung", not_reached}) {
    const auto count =
        std::ranges::count_if(lines, [&](const Line& line) { return line.verdict() == verdict; });
    if (count > 0) {
      parts.push_back(std::to_string(count) + " " + verdict);
    }
  }
  return "Of " + std::to_string(lines.size()) + " checks " + join(parts) + " in " +
         std::to_string(std::lround(std::ceil(seconds))) + " s.";
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

void print_summary(const Json& machine, const Json& software) {
  const Json& cpu = machine.at("cpu");
  const Json& gpu = machine.at("gpu");
  std::cout << "bench  " << build::version << ", commit " << commit_line() << ", "
            << software.at("compiler").get<std::string>() << "\n";
  std::cout << "cpu    " << cpu.at("model").get<std::string>() << ", " << cpu.at("cores")
            << " cores, " << cpu.at("simd").get<std::string>() << "\n";
  std::cout << "gpu    "
            << (gpu.is_null() ? machine.at("gpu_reason").get<std::string>()
                              : gpu.at("name").get<std::string>() + ", driver " +
                                    gpu.value("driver", "unknown"))
            << "\n";
  std::vector<std::string> libraries;
  for (const auto& [library, version] : software.at("libraries").items()) {
    libraries.push_back(library + " " + version.get<std::string>());
  }
  std::cout << "with   " << join(libraries) << "\n" << std::endl;
}

// ---- the table as JSON

double rounded_to_milliseconds(double seconds) { return std::round(seconds * 1e3) / 1e3; }

/// The whole file each time: who reads it meanwhile, or after a crash, finds all that is known.
void write_check(const std::filesystem::path& path, Json all, const std::vector<Line>& lines,
                 double seconds) {
  all["seconds"] = rounded_to_milliseconds(seconds);
  all["summary"] = conclusion(lines, seconds);
  all["checks"] = Json::array();
  for (const Line& line : lines) {
    const auto [device, what, precision, how] = line.check.columns();
    all["checks"].push_back({{"name", line.check.name()},
                             {"device", device},
                             {"what", what},
                             {"precision", precision},
                             {"how", how}});
    all["checks"].back().update(line.found);
  }
  const std::filesystem::path beside = path.string() + ".tmp";
  std::ofstream file(beside);
  file << all.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  file.close();
  std::error_code error;
  if (file) {
    std::filesystem::rename(beside, path, error);
  }
  if (!file || error) {
    throw UsageError(path.string() + " can't be written; name another file with --out");
  }
}

// ---- the child

/// The process that runs the checks, and the next one where it has ended.
class Child {
 public:
  explicit Child(const std::vector<std::string>& words)
      : worker_(start_own_worker(words)), devices_(devices_in(*worker_, start_seconds)) {}

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
      done_.clear();
      worker_->replace({});
      const Devices again = devices_in(*worker_, start_seconds);
      if (!devices_.gpus().empty() && again.gpus().empty()) {
        gpu_lost_ = again.gpu_reason();
      }
    }
    return answer;
  }

  /// Whether the process has to load or to compile something for it.
  [[nodiscard]] bool is_first(const Check& check) {
    return backend_named(check.device).has_own_memory && (check.calls_libraries || done_.empty()) &&
           done_.emplace(check.what, check.precision).second;
  }

  [[nodiscard]] Devices& devices() { return devices_; }
  /// Why there is no GPU any more; empty: all is as it was.
  [[nodiscard]] const std::string& gpu_lost() const { return gpu_lost_; }

 private:
  std::unique_ptr<WorkerProcess> worker_;
  Devices devices_;
  std::string gpu_lost_;
  std::set<std::pair<std::string, std::string>> done_;
};

/// UsageError where a flag would be without effect.
void require_flags_of_a_check(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (name != "--check" && name != "--out" && name != "--budget" && name != "--cuda" &&
        name != "--planned-memory" && !name.starts_with("--benchmark_")) {
      throw UsageError(name +
                       " changes nothing of a check, which takes --budget, --cuda and --out");
    }
  }
}

}  // namespace

OtherRequests checking() {
  const auto checks = std::make_shared<std::vector<Check>>();
  return
      [checks](const Json& request, const Arguments& arguments, Devices& devices,
               const std::function<void(const std::string& doing)>& tell) -> std::optional<Json> {
        if (request.at("do") != "check") {
          return std::nullopt;
        }
        if (checks->empty()) {
          *checks = all_checks(arguments, devices);
        }
        return run_check(*checks, request.at("name"), tell);
      };
}

Json run_check(const std::vector<Check>& checks, const std::string& name,
               const std::function<void(const std::string& doing)>& tell) {
  const auto check = std::ranges::find(checks, name, &Check::name);
  if (check == checks.end()) {  // it was planned for a GPU that this process has not
    return {{"verdict", "failed"}, {"reason", "the GPU is gone"}};
  }
  const std::size_t count = check->parts.size();
  std::size_t refused = 0;
  std::string first_refused;
  for (const Part& part : check->parts) {
    tell("checking " + part.name);
    const auto ended = [&](const char* verdict, const std::string& why) -> Json {
      return {{"verdict", verdict}, {"reason", count == 1 ? why : part.name + ": " + why}};
    };
    try {
      part.run();
    } catch (const Mismatch& error) {
      Json answer = ended("wrong", error.what());
      if (error.error && std::isfinite(*error.error)) {
        answer["error"] = *error.error;
      }
      if (error.tolerance) {
        answer["tolerance"] = *error.tolerance;
      }
      return answer;
    } catch (const std::exception&) {
      const Json how = ended_by_exception();
      const bool device_failed = how.contains("device_failed");
      if (how["outcome"] != "skipped") {
        Json answer = ended(device_failed ? "crashed" : "failed", how["error_message"]);
        if (device_failed) {
          answer["device_failed"] = true;
        }
        return answer;
      }
      if (refused++ == 0) {
        first_refused = ended("refused", how["error_message"])["reason"];
      }
    }
  }
  if (refused > 0 && refused < count) {
    first_refused =
        std::to_string(refused) + " of " + std::to_string(count) + " refused; " + first_refused;
  }
  return {{"verdict", refused > 0 ? "refused" : "ok"}, {"reason", first_refused}};
}

void check_machine(Arguments arguments, const std::vector<std::string>& words) {
  require_flags_of_a_check(words);
  const Instant start = std::chrono::steady_clock::now();
  const double seconds = arguments.budget_seconds.value_or(default_seconds);
  Child child(words);
  Devices& devices = child.devices();
  std::vector<Line> lines;
  std::vector<std::string> names;
  for (Check& check : all_checks(arguments, devices)) {
    names.push_back(check.name());
    lines.push_back({.check = std::move(check)});
  }
  const std::vector<std::string> wanted = selected(names, arguments.filter);
  std::erase_if(lines, [&](const Line& line) { return !contains(wanted, line.check.name()); });
  if (arguments.lists_only) {
    std::cout << join(wanted, "\n") << std::endl;
    return;
  }
  const Json head = {{"crossover_check", 1},
                     {"date", now_in_utc()},
                     {"machine", machine_json(devices)},
                     {"software", software_json(devices)}};
  print_summary(head.at("machine"), head.at("software"));
  const auto keep = [&](double seconds_so_far) {
    if (arguments.out) {
      write_check(*arguments.out, head, lines, seconds_so_far);
    }
  };
  keep(seconds_since(start));
  const Widths widths = widths_of(lines);
  for (Line& line : lines) {
    const bool on_gpu = backend_named(line.check.device).has_own_memory;
    if (on_gpu && !child.gpu_lost().empty()) {
      line.found["reason"] = child.gpu_lost();
      print(line, widths);  // kept with the next that was asked: there may be hundreds
    } else if (seconds_since(start) < seconds) {
      const double limit = limit_of(seconds, child.is_first(line.check));
      line.found.update(child.ask(line.check.name(), limit));
      print(line, widths);
      keep(seconds_since(start));
    }
  }
  const char* title = "\nFailed:\n";
  for (const Line& line : lines) {
    if (line.is_failure()) {
      std::cout << std::exchange(title, "");
      print(line, widths);
    }
  }
  const double all_seconds = seconds_since(start);
  keep(all_seconds);
  std::cout << "\n" << conclusion(lines, all_seconds) << std::endl;
}

}  // namespace crossover::bench
