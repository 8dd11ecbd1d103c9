// SPDX-License-Identifier: Apache-2.0
#include "run/session.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>

#include "axes/axes.h"
#include "axes/flag.h"
#include "base/say.h"
#include "file/earlier_run.h"
#include "file/reporter.h"
#include "file/result_file.h"
#include "rows/watches.h"
#include "run/refine/contest.h"
#include "run/refine/refine.h"
#include "run/sampler.h"
#include "run/schedule.h"
#include "run/turns.h"

namespace crossover::bench {
namespace {

const WrittenRow* find(const EarlierRun& earlier, const std::string& name) {
  const auto at = std::ranges::find(earlier.rows, name, &WrittenRow::name);
  return at == earlier.rows.end() ? nullptr : &*at;
}

/// Takes the rows out of the plan that the earlier run has measured, and gives the others what it
/// has of them. Returns how many it took.
std::size_t take_kept(std::vector<PlannedRow>& plan, const EarlierRun& earlier, int repetitions,
                      Rows& rows) {
  return std::erase_if(plan, [&](const PlannedRow& planned) {
    const WrittenRow* const written = find(earlier, planned.name);
    if (written == nullptr) {
      return false;
    }
    Row& row = rows[planned.name];
    Record record = record_in(*written, row.warnings);
    if (record.repetitions.empty() ||
        std::ssize(record.repetitions) >= repetitions_of(row, repetitions)) {
      row.record.facts = std::move(record.facts);  // for rows of others beside it
      return true;
    }
    row.turns.kept = static_cast<int>(record.repetitions.size());
    row.record = std::move(record);
    return false;
  });
}

/// Rows take turns with their lead: unless the earlier run has all of a group, none counts.
std::set<std::string> parts_of_groups(const std::vector<PlannedRow>& plan, Rows& rows,
                                      const EarlierRun& earlier) {
  std::map<std::string, std::set<std::string>> groups;  // by lead
  for (const PlannedRow& planned : plan) {
    if (const std::string& lead = rows[planned.name].lead; !lead.empty()) {
      groups[lead].insert({lead, planned.name});
    }
  }
  std::set<std::string> found;
  for (const auto& [lead, names] : groups) {
    if (std::ranges::any_of(
            names, [&](const std::string& name) { return find(earlier, name) == nullptr; })) {
      found.insert(names.begin(), names.end());
    }
  }
  return found;
}

/// Where others have a share of the time, rows of ours that an earlier run has measured count,
/// though those beside them come only now.
void doubt_apart_from_leads(const std::vector<PlannedRow>& plan, const EarlierRun& earlier,
                            Rows& rows) {
  const std::vector<std::string> names = names_of(plan);
  for (const std::string& name : names) {
    Row& row = rows[name];
    if (find(earlier, row.lead) != nullptr && !contains(names, row.lead)) {
      row.warnings.emplace_back("not measured in turn with bench's row, which an earlier run has");
    }
  }
}

/// "12 of 132 Gemm, 3 of 48 Layer": how many rows of each family are open.
std::string words_of_open(const std::vector<std::string>& open, Rows& rows) {
  std::map<std::string, int> families;
  for (const std::string& name : open) {
    ++families[family_of(rows[name].spec).name];
  }
  std::vector<std::string> parts;
  parts.reserve(families.size());
  for (const auto& [family, count] : families) {
    parts.push_back(std::to_string(count) + " " + family);
  }
  return join(parts);
}

std::string percent(double part, double whole) {
  std::ostringstream text;
  text << std::lround(100 * part / whole) << " %";
  return text.str();
}

/// Where the wall time went.
std::string shares(const Spent& spent) {
  const double all = spent.all() - spent.lent;
  std::ostringstream text;
  text.precision(3);
  if (spent.lent > 0) {
    text << spent.lent << " s lent to another program, ";
  }
  text << all << " s: " << percent(spent.timed, all) << " timed, " << percent(spent.warm_up, all)
       << " warm-up and trials, " << percent(spent.verification, all) << " verification, "
       << percent(spent.making, all) << " making rows ready, " << percent(spent.profile, all)
       << " profile, " << percent(all - spent.measuring() - spent.making - spent.profile, all)
       << " other; " << percent(spent.measuring(), all) << " measures or verifies";
  return text.str();
}

/// Whether the processors are as good as unused, now that nothing is measured.
bool is_quiet() {
  constexpr double a_while = 0.5;  // seconds
  constexpr double unused = 0.1;
  return busy_share(a_while) < unused;
}

/// Says that other programs have the processors now, before anything is measured. What has just
/// ended, as a compiler, is in the load average alone.
void tell_of_load() {
  constexpr double a_moment = 0.1;  // seconds
  constexpr double high = 0.25;
  double load = 0;
  if (getloadavg(&load, 1) != 1 || load < high * usable_cores()) {
    return;
  }
  if (const double busy = busy_share(a_moment); busy >= high) {
    std::ostringstream text;
    text.precision(2);
    text << "this machine is busy: other programs have " << percent(busy, 1)
         << " of its processors, and its load average is " << load << " on " << usable_cores()
         << (usable_cores() == 1 ? " core" : " cores")
         << "; end them, or measure later, as rows will be slower and spread";
    say(text.str());
  }
}

/// This process does not touch it: the worker that has it is asked.
std::optional<double> joules_of_gpu(const Session& session) {
  if (session.options.in_process) {
    return session.devices.joules_of_gpu();
  }
  try {
    const nlohmann::json told =
        session.worker.ask({{"do", "joules"}}, session.options.patience_seconds);
    return told.contains("joules") ? std::optional(told["joules"].get<double>()) : std::nullopt;
  } catch (const WorkerEnded&) {
    return {};
  }
}

/// Empty where the plan has no rows on a GPU.
EnergyWatch::GpuJoules gpu_joules(const Session& session, const std::vector<PlannedRow>& plan) {
  if (std::ranges::none_of(plan, [&](const PlannedRow& planned) {
        return session.rows[planned.name].device->has_own_memory();
      })) {
    return {};
  }
  return [&session] { return joules_of_gpu(session); };
}

/// Whether --refine, or the sweep where it says nothing, asks for a look between the sizes.
bool looks_closer(const RunOptions& options, const EarlierSizes& earlier) {
  return options.refine == Refine::automatic ? options.looks_between_sizes && !earlier.is_refined()
                                             : options.refine != Refine::off;
}

/// The most seconds that it takes; 0 where the rows have no two sides of several sizes, whatever
/// their times will be.
double closer_seconds(const Session& session, const std::vector<PlannedRow>& plan,
                      const EarlierSizes& earlier) {
  std::set<std::string> timed;
  for (const PlannedRow& planned : plan) {
    timed.insert(planned.name);
  }
  const SecondsOf will_be = [&](const std::string& name) {
    const bool is_timed = timed.contains(name) || earlier.seconds.contains(name);
    return is_timed ? std::vector{1.0} : std::vector<double>();
  };
  const bool has_work =
      looks_closer(session.options, earlier) &&
      !find_contests(session.options.refine, session.rows, will_be, usable_cores(), session.ladders)
           .empty();
  return has_work ? RefineLimits().seconds : 0;
}

/// Looks between the sizes of the sweep, for `seconds` at most.
void look_closer(const Session& session, Sampler& sampler, const EarlierSizes& earlier,
                 ResultFile* file, double seconds) {
  const RunOptions& options = session.options;
  if (!looks_closer(options, earlier)) {
    return;
  }
  RefineLimits limits;
  limits.min_time_seconds = std::min(limits.min_time_seconds, options.effort.min_time_seconds);
  const auto seconds_taken = [&](const std::string& name) {
    const std::vector<double> own = session.rows[name].record.seconds();  // what was kept is in it
    const auto kept = earlier.seconds.find(name);
    return own.empty() && kept != earlier.seconds.end() ? kept->second : own;
  };
  if (options.refine == Refine::command) {  // how long a pair takes, only its commands know
    constexpr double times_the_ladder = 3;
    double taken = 0;
    for (const std::string& name : session.rows.names()) {
      const std::vector<double> own = seconds_taken(name);
      taken = std::accumulate(own.begin(), own.end(), taken);
    }
    limits.seconds = std::max(limits.seconds, times_the_ladder * taken);
  }
  limits.seconds = std::min(limits.seconds, seconds);
  std::set<const Peer*> wrong;
  // A wrong answer costs that peer's further rows here: what was measured is worth more.
  const auto ask_peers = [&](const std::function<void(Peer&)>& ask) {
    for (const std::unique_ptr<Peer>& peer : session.peers) {
      try {
        if (!wrong.contains(peer.get())) {
          ask(*peer);
        }
      } catch (const UsageError& error) {
        wrong.insert(peer.get());
        say(std::string(error.what()) + "; the refinement has no further rows of it");
      }
    }
  };
  refine(options.refine, session.rows,
         {.repeat = [&](const std::string& name) { return sampler.repeat(name); },
          .finish = [&](const std::string& name) { sampler.finish(name); },
          .renew = [&] { sampler.renew_workers(); },
          .seconds = seconds_taken,
          .bring =
              [&](const std::string& size) {
                if (options.refine != Refine::command) {
                  session.add_size(size);
                  return;
                }
                RowSpec work{.family = RowFamily::command};
                axis_of(&RowSpec::size).write(work, size);
                ask_peers([&](Peer& peer) {
                  peer.bring(work, session.networks, session.devices, session.rows);
                });
              },
          .ladders = session.ladders,
          .join =
              [&](const std::string& name) {
                if (options.peers_share) {
                  return;  // that is for the sizes of the sweep
                }
                std::vector<PlannedRow> joined;  // here nobody asks for it
                ask_peers([&](Peer& peer) {
                  peer.add_rows({.name = name}, joined, session.networks, session.devices,
                                session.rows);
                });
              },
          .models = earlier.models},
         limits, [&](const nlohmann::ordered_json& refinements) {
           if (file != nullptr) {
             nlohmann::ordered_json all = earlier.refinements;
             all.insert(all.end(), refinements.begin(), refinements.end());
             file->note("refinements", all);
           }
         });
}

/// What answers is told within a minute, with the time that a page of it takes; none where nobody
/// waits for it.
std::optional<double> seconds_of_answer(const RunOptions& options) {
  constexpr double most = 45;
  constexpr double of_budget = 1.0 / 3;
  if (options.when_answered.empty()) {
    return {};
  }
  return std::min(
      most, of_budget * options.budget_seconds.value_or(std::numeric_limits<double>::infinity()));
}

/// Runs that command, while nothing is measured. Its time is not the run's.
void tell_answer(const std::string& command, ResultFile* file, Spent& spent) {
  if (file != nullptr) {
    file->write();
  }
  const Instant start = std::chrono::steady_clock::now();
  std::cout.flush();
  std::FILE* const pipe = popen(command.c_str(), "we");  // NOLINT(cert-env33-c): the user's
  if (pipe == nullptr || pclose(pipe) != 0) {
    say("--when-answered=" + command + " failed; measuring goes on");
  }
  spent.leave_out(seconds_since(start));
}

}  // namespace

bool measure(Session& session, std::vector<PlannedRow> plan) {
  const RunOptions& options = session.options;
  Rows& rows = session.rows;
  Spent& spent = session.spent;
  const std::unique_ptr<EnergyWatch> energy = energy_watch_of(options.energy, options.meter);
  if (energy) {
    if (const std::string why = energy->describe().value("reason", ""); !why.empty()) {
      if (!options.meter.empty()) {
        throw UsageError(why);
      }
      say("no energy of the processors: " + why);
    }
  }
  std::optional<ResultFile> file;
  // Before those of an earlier run are taken out.
  const bool with_networks = options.budget_seconds && !options.by_worth && has_networks(plan);
  std::size_t kept = 0;
  std::size_t unmeasured = 0;
  EarlierSizes sizes;
  if (options.out) {
    const std::filesystem::path out = resolved(*options.out);
    ResultLocks locks = lock_results(out, options.resume);
    nlohmann::ordered_json context = session.context();
    for (const std::unique_ptr<Peer>& peer : session.peers) {
      peer->describe_in(context);
    }
    std::optional<EarlierRun> earlier;
    if (options.resume) {
      earlier = read_earlier(out, context);
      if (earlier->is_done) {
        say(earlier->path.string() + " is complete: no row is left to measure");
        return true;
      }
      if (!options.peers_share) {
        leave_out(*earlier, parts_of_groups(plan, rows, *earlier));
      }
      kept = take_kept(plan, *earlier, options.effort.repetitions, rows);
      if (options.peers_share) {
        doubt_apart_from_leads(plan, *earlier, rows);
      }
      sizes = earlier_sizes(
          *earlier, [&](const std::string& row) { return is_on_a_ladder(row, session.ladders); });
      unmeasured =
          static_cast<std::size_t>(std::ranges::count_if(earlier->rows, &WrittenRow::is_skipped));
      say("goes on with " + earlier->path.string() + ": " + std::to_string(kept) +
          " rows are kept, " + std::to_string(plan.size()) + " are to be measured");
    }
    file.emplace(out, std::move(locks), std::move(context), spent, std::move(earlier));
  }
  std::ranges::for_each(session.remarks, say);
  if (!plan.empty()) {
    tell_of_load();
  }
  constexpr double a_while = 5;  // seconds
  const EnergyWatch::GpuJoules of_gpu = energy ? gpu_joules(session, plan) : nullptr;
  nlohmann::ordered_json idle = nlohmann::ordered_json::object();
  const auto note_idle = [&](const std::string& when) {
    if (!energy) {
      return;
    }
    if (!plan.empty()) {
      const EnergyWatch::Watts watts = energy->idle_watts(a_while, of_gpu);
      if (watts.of_meters) {
        idle["idle_watts_" + when] = *watts.of_meters;
      }
      if (watts.of_gpu) {
        idle["gpu_idle_watts_" + when] = *watts.of_gpu;
      }
    }
    if (file) {
      nlohmann::ordered_json of_energy = energy->describe();
      of_energy.update(idle);
      file->note("energy", of_energy);
    }
  };
  if (energy && !plan.empty()) {
    energy->watch_updates(a_while, of_gpu);  // which takes processors: not while they are idle
  }
  note_idle("before");
  const std::vector<std::string> names = names_of(plan);
  Reporter reporter(rows, names.size(),
                    {.file = file ? &*file : nullptr,
                     .kept = kept,
                     .may_leave = options.budget_seconds || options.peers_share});
  Sampler sampler(rows, reporter, spent, session.worker,
                  {.min_time_seconds = options.effort.min_time_seconds,
                   .patience_seconds = options.patience_seconds,
                   .energy = energy.get()});
  const bool as_asked = options.repetitions.has_value();
  const bool all_together = !session.peers.empty() && !options.peers_share;
  Schedule schedule(
      {.limits = {.repetitions = options.effort.repetitions,
                  .budget_seconds = options.budget_seconds,
                  .most_passes = options.in_process ? 1 : options.most_passes,
                  .peers_share = options.peers_share},
       .together = options.shuffles || all_together ? Together::all : Together::devices,
       .answer_seconds = seconds_of_answer(options),
       .closer_seconds = closer_seconds(session, plan, sizes),
       .shuffled = options.shuffles,
       .is_quiet = [as_asked] { return !as_asked && is_quiet(); }},
      spent, rows, plan, with_networks);
  reporter.tell_time_left([&schedule] { return schedule.seconds_left(); });
  ResultFile* const written = file ? &*file : nullptr;
  measure(schedule, spent, rows, sampler,
          {.tell_answer =
               [&session, written] {
                 tell_answer(session.options.when_answered, written, session.spent);
               },
           .look_closer =
               [&](double seconds) { look_closer(session, sampler, sizes, written, seconds); }});
  const std::vector<std::string> open = schedule.left_open();
  const auto left_out = std::ranges::count_if(names, [&session](const std::string& name) {
    const Row& row = session.rows[name];
    return row.turns.is_left_out && !row.record.has_had_a_turn();
  });
  reporter.finish();
  note_idle("after");
  benchmark::Shutdown();
  unmeasured += reporter.unmeasured();
  if (unmeasured > 0) {
    say(std::to_string(unmeasured) + " of " + std::to_string(names.size() + kept) +
        " rows were not measured");
  }
  if (!open.empty()) {
    say("left open by the budget: " + words_of_open(open, rows) + " of " +
        std::to_string(names.size() + kept) + " rows; --resume with a larger one adds them");
  }
  if (left_out > 0) {
    say(std::to_string(left_out) + (left_out == 1 ? " row" : " rows") +
        " of other programs had no turn, as those have " + percent(*options.peers_share, 1) +
        " of the time; --peers-share gives them more");
  }
  say(shares(spent));
  if (file) {
    if (options.budget_seconds) {
      file->note("budget", {{"seconds", *options.budget_seconds},
                            {"used_seconds", std::round(spent.all() * 1e3) / 1e3},
                            {"left_open", open}});
    }
    const bool complete = open.empty();
    const std::filesystem::path place = file->finish(complete, complete && unmeasured == 0);
    say("results in " + place.string());
  }
  return unmeasured == 0;
}

}  // namespace crossover::bench
