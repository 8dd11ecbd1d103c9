// SPDX-License-Identifier: Apache-2.0
#include "two/options.h"

#include <initializer_list>
#include <utility>

#include "axes/flag.h"

namespace crossover::two {
namespace {

using bench::Flag;
using bench::Refine;

constexpr std::initializer_list<std::pair<const char*, Refine>> refinements{
    {"on", Refine::function}, {"off", Refine::off}};
constexpr std::initializer_list<std::pair<const char*, bool>> cache_uses{{"hot", false},
                                                                         {"flushed", true}};
constexpr std::initializer_list<std::pair<const char*, bool>> gpu_uses{{"auto", false},
                                                                       {"off", true}};

std::vector<Flag> flags_of(Options& to) {
  constexpr int most_repetitions = 1000000;
  constexpr double longest = 1e6;
  return {
      {"--out", "FILE.json", "write the results to this file, which is valid after every row",
       bench::into(to.out)},
      {"--resume", "", "go on with the interrupted run whose rows are in --out=FILE.json",
       bench::set(to.resume, true)},
      {"--budget", "TIME",
       "end after this time (90s, 5m); what is left of it the noisiest rows get",
       bench::duration_into(to.budget_seconds)},
      bench::choice(
          "--refine", refinements,
          "where the winner changes, measure sizes between in pairs, for a minute at most",
          to.refine),
      bench::choice("--gpu", gpu_uses,
                    "measure the sides on a GPU if there is one, or none of them", to.leaves_gpu),
      bench::choice("--caches", cache_uses,
                    "calls find their data in the caches, as those before them left it; or these "
                    "are overwritten before each call, and a repetition is one call: what all "
                    "cores share, and what the calling one has",
                    to.flushes),
      {"--patience", "TIME",
       "how long a row may make no progress before its process is killed and the row fails "
       "(default: 5m)",
       bench::duration_into(to.patience_seconds)},
      {"--in-process", "",
       "measure in this process, for debuggers and profilers, instead of in new ones",
       bench::set(to.in_process, true)},
      {"--benchmark_filter", "REGEX",
       "measure only rows in whose names this is found; with - in front of it, only the others",
       bench::into(to.filter)},
      {"--benchmark_list_tests", "", "print the names of the rows and exit",
       bench::set(to.action, Action::list)},
      {"--benchmark_repetitions", "N", "repetitions of each row (default: 9)",
       bench::number_into(to.repetitions, 1, most_repetitions)},
      {"--benchmark_min_time", "SECONDS",
       "of each repetition at least (default: 0.02; one call with --caches=flushed)",
       [&to](const std::string& flag, const std::string& text) {
         const bool has_unit = text.size() > 1 && text.back() == 's';  // as later versions write it
         to.min_time_seconds = bench::parse_number(
             flag, text.substr(0, text.size() - (has_unit ? 1 : 0)), 0.0, longest);
       }},
      {"--worker", "", "answer requests for rows on standard input: so this program calls itself",
       bench::set(to.action, Action::worker)},
      {"--help", "", "print this text and exit", bench::set(to.action, Action::help)},
  };
}

}  // namespace

Options options_in(const std::vector<std::string>& words) {
  constexpr int repetitions = 9;  // five are needed for an interval
  constexpr double seconds = 0.02;
  constexpr double one_call = 1e-9;
  constexpr double patience = 300;  // with functions that say nothing while they compute
  Options options;
  options.refine = Refine::function;
  options.shuffles = true;  // sides take turns in an order that is drawn
  options.patience_seconds = patience;
  for (const std::string& word : words) {
    bench::take(word, flags_of(options));
  }
  options.effort = {
      .repetitions = options.repetitions.value_or(repetitions),
      .min_time_seconds = options.min_time_seconds.value_or(options.flushes ? one_call : seconds)};
  if (options.resume && !options.out) {
    throw bench::UsageError("--resume needs the file to go on with: --out=FILE.json");
  }
  return options;
}

std::string help_of_program(const std::string& program) {
  Options options;
  std::string text = program +
                     " measures functions that compute the same, in turn, and compares their "
                     "results first.\n\n";
  for (const Flag& flag : flags_of(options)) {
    text += bench::help_of(flag);
  }
  return text + "\nExit code: 0 all rows measured, 1 a row failed or was skipped, 2 wrong usage.\n";
}

}  // namespace crossover::two
