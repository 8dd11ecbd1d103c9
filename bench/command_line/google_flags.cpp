// SPDX-License-Identifier: Apache-2.0
// The table of Google Benchmark's flags, which the help text prints and tests compare with those of
// the library.
#include <algorithm>
#include <array>
#include <cctype>

#include "command_line/arguments.h"

namespace crossover::bench {
namespace {

/// As Google Benchmark reads it; a flag without a value is true.
bool truth_of(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array no{"0", "f", "n", "false", "no", "off"};
  return !contains(no, text);
}

Take truth_into(bool& to) {
  return [&to](const std::string& /*flag*/, const std::string& text) { to = truth_of(text); };
}

Take seconds_into(std::optional<double>& to) {
  return [&to](const std::string& flag, const std::string& text) {
    constexpr double most = 1e6;
    const std::size_t digits = text.find_last_not_of("sx") + 1;
    if (text.substr(digits) == "x") {
      throw UsageError(flag + "=" + text +
                       ": a repetition has as many iterations as fill its time; give seconds: " +
                       flag + "=0.5s");
    }
    const bool suffixed = text.size() > 1 && text.back() == 's';  // as later versions write it
    to = parse_number<double>(flag, text.substr(0, text.size() - (suffixed ? 1 : 0)), 0, most);
  };
}

Take pairs_into(std::map<std::string, std::string>& to) {
  return [&to](const std::string& flag, const std::string& text) {
    to.clear();
    for (const std::string& pair : split(text)) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string::npos || equals == 0) {
        throw UsageError(flag + "=" + text + " is not key=value,...");
      }
      to[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
  };
}

/// One that bench has only at the value at which it changes nothing; none: "".
Flag refused(const std::string& name, const std::string& value, const std::string& plain,
             const std::string& reason) {
  return {name, value, (plain.empty() ? "refused: " : plain + " alone: ") + reason,
          [=](const std::string& flag, const std::string& text) {
            const bool is_plain =
                value == boolean ? truth_of(text) == truth_of(plain) : text == plain;
            if (plain.empty() || !is_plain) {
              throw UsageError(flag + (text.empty() ? "" : "=" + text) + ": " + reason);
            }
          }};
}

}  // namespace

std::vector<Flag> benchmark_flags(Arguments& to) {
  constexpr int most_repetitions = 1000000;
  constexpr int most_verbosity = 1000;
  const Take pass_on = [&to](const std::string& flag, const std::string& text) {
    to.passed_on.push_back(flag + "=" + text);
  };
  const std::string one_line =
      "bench shows each row in a line of its own; --out=FILE.json writes all repetitions as JSON";
  return {
      {"--benchmark_filter", "REGEX",
       "measure only rows in whose names this is found; with - in front of it, only the others",
       into(to.filter)},
      {"--benchmark_repetitions", "N", "repetitions of each row (default: the sweep's)",
       number_into(to.repetitions, 1, most_repetitions)},
      {"--benchmark_min_time", "SECONDS", "of each repetition at least (default: the sweep's)",
       seconds_into(to.min_time_seconds)},
      {"--benchmark_enable_random_interleaving", boolean, "measure in random order",
       truth_into(to.shuffles)},
      {"--benchmark_list_tests", boolean, "print the names of the rows and exit",
       truth_into(to.lists_only)},
      {"--benchmark_out", "FILE.json", "as --out", into(to.out)},
      {"--benchmark_context", "KEY=VALUE,...", "add this to the context of the result file",
       pairs_into(to.more_context)},
      {"--benchmark_perf_counters", "NAME,...",
       "count these events of the processor in each repetition, where Google Benchmark was built "
       "with libpfm",
       pass_on},
      {"--v", "N", "Google Benchmark's own log, on standard error",
       [pass_on](const std::string& flag, const std::string& text) {
         pass_on(flag, std::to_string(parse_number(flag, text, 0, most_verbosity)));
       }},
      refused("--benchmark_out_format", "json|console|csv", "json",
              "results are written as JSON; name the file with --out=FILE.json"),
      refused("--benchmark_format", "console|json|csv", "console", one_line),
      refused("--benchmark_color", "auto|true|false", "auto", "bench prints no colors"),
      refused("--benchmark_counters_tabular", boolean, "false", one_line),
      refused("--benchmark_display_aggregates_only", boolean, "true", one_line),
      refused("--benchmark_report_aggregates_only", boolean, "false",
              "the file has all repetitions, from which readers make intervals"),
      refused("--benchmark_time_unit", "ns|us|ms|s", "",
              "each row is shown in the unit that fits it, and the file is in ms"),
      refused("--benchmark_min_warmup_time", "SECONDS", "0",
              "bench warms each repetition up by itself"),
      refused("--benchmark_dry_run", boolean, "false",
              "--plan prints the rows that would be measured, --check tries everything once"),
  };
}

}  // namespace crossover::bench
