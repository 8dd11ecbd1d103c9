// SPDX-License-Identifier: Apache-2.0
#include "worker/protocol.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <span>

#include "axes/axes.h"
#include "base/schema.h"
#include "base/times.h"
#include "rows/counters.h"

namespace crossover::bench {
namespace {

bool is_text(const Json& one) { return one.is_string(); }
bool is_seconds(const Json& one) {
  constexpr double most = 1e9;  // a file adds them up
  return one.is_number() && std::abs(one.get<double>()) <= most;
}

template <bool (*is_right)(const Json&)>
bool are_all(const Json& list) {
  return std::all_of(list.begin(), list.end(), is_right);
}

/// What a value may be.
struct Kind {
  const char* words;
  bool (*has)(const Json& value);
};

namespace kinds {

constexpr Kind object{"an object", [](const Json& value) { return value.is_object(); }};
constexpr Kind texts_by_name{"an object of texts", [](const Json& value) {
                               return value.is_object() && are_all<is_text>(value);
                             }};
constexpr Kind seconds_by_name{"an object of seconds", [](const Json& value) {
                                 return value.is_object() && are_all<is_seconds>(value);
                               }};
constexpr Kind list{"a list", [](const Json& value) { return value.is_array(); }};
constexpr Kind texts{"a list of texts",
                     [](const Json& value) { return value.is_array() && are_all<is_text>(value); }};
constexpr Kind text{"a text", is_text};
constexpr Kind number{"a number from 0 on", [](const Json& value) {
                        return value.is_number() && value.get<double>() >= 0;
                      }};
constexpr Kind boolean{"true or false", [](const Json& value) { return value.is_boolean(); }};

}  // namespace kinds

/// What an answer must or may have, beside what stands in a result file.
struct Field {
  const char* request = "";  ///< empty: in answers to all
  const char* place = "";
  Kind kind = kinds::object;
  bool is_needed = false;
};

constexpr std::array fields{
    Field{"", "/outcome", kinds::text},
    Field{"", "/error_message", kinds::text},
    Field{"", "/out_of_memory", kinds::boolean},
    Field{"", "/device_failed", kinds::boolean},
    Field{"", "/worker_ends", kinds::boolean},
    Field{"", "/spent", kinds::seconds_by_name},
    Field{"describe", "/rows", kinds::list},
    Field{"joules", "/joules", kinds::number},
    Field{"rows", "/rows", kinds::list, true},
    Field{"prepare", "/facts", kinds::object, true},
    Field{"prepare", "/once", kinds::object, true},
    Field{"prepare", "/first_steps", kinds::object},
    Field{"repeat", "/times", kinds::object, true},
    Field{"repeat", "/doubts", kinds::texts},
    Field{"check", "/verdict", kinds::text, true},
    Field{"check", "/reason", kinds::text, true},
};

constexpr std::array fields_of_rows{
    Field{"", "/configuration", kinds::texts_by_name, true},
    Field{"", "/environment", kinds::texts_by_name},
};

/// "'times.real_time' is missing".
template <class Fields>
std::string fault_among(const Fields& wanted, const std::string& request, const Json& answer,
                        bool has_ended) {
  for (const Field& field : wanted) {
    if (*field.request != 0 && request != field.request) {
      continue;
    }
    const Json::json_pointer place(field.place);
    std::string name = std::string("'").append(field.place + 1).append("'");
    std::ranges::replace(name, '/', '.');
    if (!answer.contains(place)) {
      if (field.is_needed && !has_ended) {
        return name + " is missing";
      }
    } else if (!field.kind.has(answer.at(place))) {
      return name + " is not " + field.kind.words;
    }
  }
  return "";
}

/// Of any JSON: a number that no reader takes, or a text that nobody reads.
std::string fault_of_size(const Json& json, const std::string& place) {
  constexpr double smallest = 1e-60, largest = 1e40;  // plots/crossover_bench/files/loading.py
  constexpr std::size_t longest = 1 << 16;
  const double size = json.is_number() ? std::abs(json.get<double>()) : 0;
  if (!(size < largest) || (size > 0 && size < smallest)) {
    return "'" + place + "' is neither 0 nor a number from 1e-60 to 1e40";
  }
  if (json.is_string() && json.get_ref<const std::string&>().size() > longest) {
    return "'" + place + "' is a text of more than " + std::to_string(longest) + " bytes";
  }
  if (!json.is_structured()) {
    return "";
  }
  for (const auto& [key, one] : json.items()) {
    constexpr std::size_t enough = 60;
    if (std::string fault =
            fault_of_size(one, (place.empty() ? "" : place + ".") + key.substr(0, enough));
        !fault.empty()) {
      return fault;
    }
  }
  return "";
}

// ---- What a result file has of an answer

using Words = std::span<const char* const>;

/// What bench says itself of a row, and of a repetition.
constexpr std::array of_rows{"name",     "configuration", "network",       "repetitions",
                             "warnings", "outcome",       "error_message", "not_verified"};
constexpr std::array of_repetitions{"name", "run_type", "instance", "repetitions"};
constexpr std::array of_times{"real_time", "cpu_time", "time_unit", "iterations"};

bool is_among(Words words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

std::string named(const std::string& place, const std::string& key) {
  constexpr std::size_t longest = 60;
  return "'" + place + "." + key.substr(0, longest) + "'";
}

bool is_fact(const std::string& counter) { return kind_of_counter(counter) == CounterKind::fact; }

/// Times that bench reckons from `real_time` are called seconds, seconds_per_step and the like.
bool is_reckoned(const std::string& counter) {
  return counter.starts_with("seconds") &&
         std::ranges::find(counters(), counter, &Counter::key) == counters().end();
}

/// A file leaves out what is null: a number that JSON does not have.
Json without_nulls(const Json& json) {
  if (!json.is_object()) {
    return json;
  }
  Json kept = Json::object();
  for (const auto& [key, value] : json.items()) {
    if (!value.is_null()) {
      kept[key] = without_nulls(value);
    }
  }
  return kept;
}

/// Each counter stands in the row or in its repetitions, by the table of counters.
std::string fault_of_facts(const Json& request, const Json& facts) {
  const std::string place = "facts";
  for (const auto& [key, value] : facts.items()) {
    if (is_among(of_rows, key)) {
      return named(place, key) + " is what bench says itself";
    }
  }
  Json row = {{"name", request.at("row")},
              {"configuration", request.at("configuration")},
              {"repetitions", 1}};
  if (request.contains("first_steps")) {  // made again, it comes to those; what verified them stays
    row["verification"] = {{"reference", "the first"},
                           {"tolerance", 1},
                           {"relative_error", 0},
                           {"steps", 1},
                           {"steps_of", 1},
                           {"entries", 1},
                           {"entries_of", 1}};
  }
  row.update(without_nulls(facts));
  if (std::string fault = fault_in(row, "/definitions/row", place); !fault.empty()) {
    return fault;
  }
  for (const auto& [key, value] : facts.items()) {
    if (value.is_number() && !is_fact(key)) {
      return named(place, key) + " is no fact of a row, so it belongs into 'times'";
    }
    if (!value.is_number() && is_fact(key)) {
      return named(place, key) + " is not a number";
    }
  }
  try {
    spec_in(row.value("chosen", Json::object()));
  } catch (const std::exception& error) {
    return named(place, "chosen") + ": " + error.what();
  }
  const Json verification = row.value("verification", Json::object());
  const bool is_right =
      verification.value("relative_error", 0.0) <= verification.value("tolerance", 0.0);
  return is_right ? "" : named(place, "verification.relative_error") + " is above the tolerance";
}

/// `own`: what of `given` bench says itself; `entry`: the rest of a repetition.
std::string fault_of_repetition(const Json& given, const std::string& place, Words own,
                                Json entry) {
  for (const auto& [key, value] : given.items()) {
    if (is_among(of_repetitions, key) || is_among(own, key)) {
      return named(place, key) + " is what bench says itself";
    }
    if (value.is_number() && is_fact(key)) {
      return named(place, key) + " is a fact of the row, so it belongs into 'facts'";
    }
    if (is_reckoned(key)) {
      return named(place, key) + " is no counter that bench knows, and begins like its own";
    }
  }
  entry.update(without_nulls(given));
  return fault_in(entry, "/definitions/entry", place);
}

std::string fault_of_once(const Json& request, const Json& once) {
  const Trains trains = family_of(spec_in(request.at("configuration"))).trains;
  const bool is_needed = trains == Trains::steps || trains == Trains::epochs;
  if (is_needed && !request.contains("iterations") && !once.contains("first_call_seconds")) {
    return "'once.first_call_seconds' is missing";
  }
  const Json rest = {{"name", request.at("row")},
                     {"run_type", "iteration"},
                     {"real_time", 1},
                     {"cpu_time", 1},
                     {"time_unit", "ms"}};
  return fault_of_repetition(once, "once", of_times, rest);
}

std::string fault_of_times(const Json& request, const Json& times) {
  constexpr double shortest = 1e-11;  // milliseconds; light goes 3 micrometres
  if (times.value("time_unit", Json("ms")) != "ms") {
    return "'times.time_unit' is not ms";
  }
  const Json rest = {{"name", request.at("row")}, {"run_type", "iteration"}, {"time_unit", "ms"}};
  std::string fault = fault_of_repetition(times, "times", {}, rest);
  if (fault.empty() && !times.contains("iterations")) {
    return "'times.iterations' is missing";
  }
  if (fault.empty() && times["real_time"].get<double>() < shortest) {
    return "'times.real_time' is no time that anything takes";
  }
  return fault;
}

/// By plots/crossover_bench/files/schema.json, and by what it can't say (entries.py beside it).
std::string fault_in_file(const Json& request, const Json& answer) {
  const std::string what = request.at("do");
  if (what != "prepare" && what != "repeat") {
    return "";
  }
  if (answer.contains("outcome")) {
    Json row = {{"error_message", "none was given"}};
    row.update(without_nulls(answer));
    return fault_in(row, "/definitions/failed_row", "");
  }
  if (what == "repeat") {
    return fault_of_times(request, without_nulls(answer["times"]));
  }
  const std::string fault = fault_of_facts(request, answer["facts"]);
  return fault.empty() ? fault_of_once(request, answer["once"]) : fault;
}

}  // namespace

bool write_line(int to, const std::string& text) {
  const std::string line = text + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t count = write(to, line.data() + done, line.size() - done);
    if (count < 0 && errno != EINTR) {
      return false;
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return true;
}

bool write_json(int to, const Json& json) {
  return write_line(to, json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

bool LineReader::wait(double& left) {
  constexpr double slice = 1;  // seconds: one that takes far longer was not this process's time
  constexpr double delay = 0.5;
  while (left > 0) {
    const double asked = std::min(left, slice);
    std::array files{pollfd{.fd = from_, .events = POLLIN, .revents = 0},
                     pollfd{.fd = aside_, .events = POLLIN, .revents = 0}};
    const auto begun = std::chrono::steady_clock::now();
    const int ready =
        poll(files.data(), files.size(), static_cast<int>(std::ceil(milliseconds_in(asked))));
    if (ready > 0 && files[1].revents != 0) {
      take_();
      aside_ = (files[1].revents & POLLIN) != 0 ? aside_ : -1;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    const double counted = std::min(took.count(), asked + delay);
    paused_seconds_ += took.count() - counted;
    left -= counted;
    if (ready > 0 && files[0].revents != 0) {
      return true;
    }
  }
  return false;
}

std::optional<std::string> LineReader::next(double limit_seconds) {
  for (std::size_t looked = 0;;) {
    if (const std::size_t end = read_.find('\n', looked); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    looked = read_.size();
    if (looked > longest) {
      throw TooLong();
    }
    if (!wait(limit_seconds)) {
      throw Late();
    }
    std::array<char, 4096> block{};
    const ssize_t count = read(from_, block.data(), block.size());
    if (count == 0 || (count < 0 && errno != EINTR)) {
      return std::nullopt;
    }
    read_.append(block.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  }
}

void serve(const Pipes& pipes, const std::function<Json(const Json& request)>& answer) {
  LineReader requests(pipes.from);
  while (const std::optional<std::string> line = requests.next()) {
    if (!write_json(pipes.to, answer(Json::parse(*line)))) {
      return;
    }
  }
}

std::string fault_of(const Json& request, const Json& answer) {
  const std::string what = request.at("do");
  if (std::string fault = fault_of_size(answer, ""); !fault.empty()) {
    return fault;
  }
  const bool has_ended = answer.contains("outcome");
  if (has_ended && answer["outcome"] != "failed" && answer["outcome"] != "skipped") {
    return "'outcome' is neither 'failed' nor 'skipped'";
  }
  if ((answer.value("device_failed", Json()) == true ||
       answer.value("worker_ends", Json()) == true) &&
      !answer.contains("error_message")) {
    return "'error_message' is missing";
  }
  std::string fault = fault_among(fields, what, answer, has_ended);
  if (fault.empty() && (what == "rows" || what == "describe") && answer.contains("rows")) {
    for (const Json& row : answer["rows"]) {
      fault = fault.empty() ? fault_among(fields_of_rows, what, row, false) : fault;
    }
  }
  return fault.empty() ? fault_in_file(request, answer) : fault;
}

void tell(const Pipes& pipes, const std::string& doing) {
  write_json(pipes.to, {{"doing", doing}});
}

}  // namespace crossover::bench
