// SPDX-License-Identifier: Apache-2.0
#include "file/earlier_run.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "axes/flag.h"
#include "base/bounded_json.h"
#include "base/times.h"
#include "crossover/fingerprint.h"
#include "rows/row.h"

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& why) {
  throw UsageError(why + "; without --resume the rows are measured anew");
}

Json parsed(const std::string& text) {
  constexpr int deepest = 32;  // no file of ours is nested deeper
  Json document = bounded_json(text, deepest);
  if (!document.is_object()) {
    refuse("is no result file");
  }
  return document;
}

/// Null where there is none.
Json member(const Json& object, const std::string& field) {
  const auto at = object.find(field);
  return at == object.end() ? Json() : *at;
}

std::string text_in(const Json& object, const std::string& field) {
  const auto at = object.is_object() ? object.find(field) : object.end();
  return object.is_object() && at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

const Json& list_in(const Json& object, const std::string& field) {
  const auto at = object.find(field);
  if (at == object.end() || !at->is_array()) {
    refuse("has no list of " + field);
  }
  return *at;
}

/// A row that had no turn because of another one's failure has not been tried either.
bool is_finished(const Json& facts) {
  return text_in(facts, "outcome") != "failed" &&
         !text_in(facts, "error_message").starts_with(after_failed_gpu);
}

/// All rows of the document; the names of those that are to be tried again are put into `failed`.
std::vector<WrittenRow> written_rows(const Json& document, std::set<std::string>& failed) {
  std::vector<WrittenRow> rows;
  std::map<std::string, std::size_t> places;
  std::map<std::string, std::uint64_t> lacking;  // repetitions, of rows that have times
  for (const Json& facts : list_in(document, "rows")) {
    const std::string name = text_in(facts, "name");
    if (name.empty() || !places.emplace(name, rows.size()).second) {
      refuse("has a row without a name of its own");
    }
    const bool is_measured = !facts.contains("outcome");
    const auto counted = facts.find("repetitions");
    if (is_measured && (counted == facts.end() || !counted->is_number_unsigned())) {
      refuse("does not say how many repetitions " + name + " has");
    }
    if (is_measured) {
      lacking[name] = counted->get<std::uint64_t>();
    }
    if (!is_finished(facts)) {
      failed.insert(name);
    }
    rows.push_back(
        {.name = name, .facts = line_of(facts), .entries = {}, .is_skipped = !is_measured});
  }
  for (const Json& entry : list_in(document, "benchmarks")) {
    const bool is_repetition = text_in(entry, "run_type") == "iteration";
    const auto place = places.find(text_in(entry, is_repetition ? "name" : "run_name"));
    if (place == places.end()) {
      refuse("has a repetition of none of its rows");
    }
    rows[place->second].entries.push_back(line_of(entry));
    if (const auto own = lacking.find(place->first); is_repetition && own != lacking.end()) {
      --own->second;  // too many wrap around
    }
  }
  for (const auto& [name, repetitions] : lacking) {
    if (repetitions != 0) {
      refuse("has not all repetitions of " + name);
    }
  }
  return rows;
}

/// Each part says how many rows it has measured, in the order of the file.
void require_parts(const Json& parts, std::size_t rows) {
  const auto is_count = [&](const Json& part) {
    const Json own = part.is_object() ? member(part, "rows") : Json();
    const bool fits = own.is_number_unsigned() && own.get<std::size_t>() <= rows;
    rows -= fits ? own.get<std::size_t>() : 0;  // a sum could wrap
    return fits;
  };
  if (!parts.is_array() || !std::all_of(parts.begin(), parts.end(), is_count) || rows != 0) {
    refuse("does not say which part of the run measured what");
  }
}

// ---- whether the two runs are of one kind -------------------------------------------------------

/// Of the command line those words that are not only about where, how long or how it is shown.
std::vector<std::string> words_of(const Json& context) {
  constexpr std::array neutral{"--out",          "--benchmark_out",  "--benchmark_out_format",
                               "--resume",       "--budget",         "--in-process",
                               "--memory-limit", "--planned-memory", "--v"};
  std::vector<std::string> words;
  const Json::json_pointer at("/crossover/configuration/command");
  if (!context.contains(at) || !context[at].is_array()) {
    return words;
  }
  for (std::size_t i = 1; i < context[at].size(); ++i) {
    const Json& word = context[at][i];
    const std::string text = word.is_string() ? word.get<std::string>() : "";
    const std::string name = text.substr(0, text.find('='));
    if (!contains(neutral, name)) {
      words.push_back(text);
    }
  }
  std::ranges::sort(words);
  return words;
}

/// What another moment shows differently, on the same machine.
constexpr std::array of_a_moment{"/machine/memory_bytes", "/machine/gpu/start_seconds",
                                 "/machine/gpu/sm_clock_mhz", "/machine/gpu/memory_clock_mhz",
                                 "/configuration/command"};

/// By place what results depend on.
std::map<std::string, Json> conditions(const Json& context) {
  std::map<std::string, Json> found;
  const auto ours = context.find("crossover");
  if (ours == context.end() || !ours->is_object()) {
    return found;
  }
  for (const char* part : {"machine", "software", "configuration", "peers"}) {
    const auto of_part = ours->find(part);
    if (of_part == ours->end() || !of_part->is_structured()) {
      continue;
    }
    const Json flat = of_part->flatten();
    for (const auto& [place, value] : flat.items()) {
      const std::string whole = std::string("/").append(part).append(place);
      if (std::ranges::none_of(
              of_a_moment, [&](const std::string& moment) { return whole.starts_with(moment); })) {
        found[whole] = value;
      }
    }
  }
  return found;
}

/// "/machine/cpu/model" -> "machine.cpu.model".
std::string dotted(std::string place) {
  std::ranges::replace(place, '/', '.');
  return place.substr(1);
}

/// An empty list or object is null once it is flattened: as if it were not there.
std::string shown(const std::map<std::string, Json>& values, const std::string& place) {
  const auto at = values.find(place);
  return at == values.end() || at->second.is_null() ? "nothing" : line_of(at->second);
}

void require_same(const Json& earlier, const Json& now) {
  const std::map<std::string, Json> before = conditions(earlier);
  const std::map<std::string, Json> after = conditions(now);
  std::map<std::string, Json> all = before;
  all.insert(after.begin(), after.end());
  for (const auto& [place, ignored] : all) {
    const std::string was = shown(before, place);
    const std::string is = shown(after, place);
    if (was != is) {
      refuse("was measured under other conditions: " + dotted(place) + " was " + was + " and is " +
             is);
    }
  }
  const std::vector<std::string> was = words_of(earlier);
  const std::vector<std::string> is = words_of(now);
  const auto only_in = [](const auto& words, const auto& others) {
    std::vector<std::string> rest;
    std::set_difference(words.begin(), words.end(), others.begin(), others.end(),
                        std::back_inserter(rest));
    return rest;
  };
  const std::vector<std::string> lacking = only_in(was, is);
  const std::vector<std::string> added = only_in(is, was);
  if (!lacking.empty() || !added.empty()) {
    refuse("was measured " + (lacking.empty() ? "" : "with " + join(lacking, " ")) +
           (lacking.empty() || added.empty() ? "" : " and ") +
           (added.empty() ? "" : "without " + join(added, " ")));
  }
}

/// By name, of all that the file says of them.
std::map<std::string, std::string> networks_in(const Json& context) {
  std::map<std::string, std::string> found;
  const Json::json_pointer at("/crossover/networks");
  if (context.contains(at) && context[at].is_array()) {
    for (const Json& network : context[at]) {
      found[text_in(network, "name")] = hexadecimal(fingerprint(line_of(network)));
    }
  }
  return found;
}

void require_same_networks(const Json& earlier, const Json& now) {
  const std::map<std::string, std::string> before = networks_in(earlier);
  for (const auto& [name, own] : networks_in(now)) {
    if (const auto known = before.find(name); known != before.end() && known->second != own) {
      refuse("has rows of another network '" + name + "' than is asked for now");
    }
  }
}

/// Whose rows say that they are of a network that is none of the file's.
void require_own_networks(const Json& document) {
  const std::map<std::string, std::string> known_networks = networks_in(document["context"]);
  for (const Json& row : document["rows"]) {
    const auto known = known_networks.find(text_in(member(row, "configuration"), "model"));
    const std::string own = text_in(row, "network");
    if (known != known_networks.end() && !own.empty() && own != known->second) {
      refuse("has rows of another network '" + known->first + "' than its own");
    }
  }
}

/// None: it can't be read.
std::optional<std::string> text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? std::optional(text.str()) : std::nullopt;
}

}  // namespace

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::filesystem::path unfinished(const std::filesystem::path& asked) {
  std::error_code ignored;
  std::filesystem::path partial = asked;
  partial += ".partial";
  for (const std::filesystem::path& path : {partial, asked}) {
    if (std::filesystem::is_regular_file(path, ignored)) {
      return path;
    }
  }
  throw UsageError("--resume: there is no file " + asked.string() +
                   " to go on with; --out=FILE names it");
}

EarlierRun parse_earlier(const std::string& text) {
  const Json document = parsed(text);
  const Json::json_pointer ours("/context/crossover");
  if (!document.contains(ours) || !document[ours].is_object()) {
    refuse("is no result file");
  }
  const Json& crossover = document[ours];
  if (member(crossover, "schema_version") != 2) {
    refuse("has another schema version");
  }
  const Json complete = member(crossover, "complete");
  if (!complete.is_boolean()) {
    refuse("does not say whether it is complete");
  }
  std::set<std::string> failed;
  EarlierRun earlier{.path = {}, .context = document["context"], .rows = {}, .is_done = false};
  earlier.rows = written_rows(document, failed);
  earlier.is_done = complete.get<bool>() && failed.empty();
  require_own_networks(document);
  require_parts(member(crossover, "parts"), earlier.rows.size());
  leave_out(earlier, failed);
  return earlier;
}

EarlierRun read_earlier(const std::filesystem::path& asked, const Json& now) {
  const std::filesystem::path path = unfinished(asked);
  const std::optional<std::string> text = text_of(path);
  if (!text) {
    throw UsageError("--resume: " + path.string() + " can't be read; check its permissions");
  }
  try {
    EarlierRun earlier = parse_earlier(*text);
    require_same(earlier.context, now);
    require_same_networks(earlier.context, now);
    earlier.path = path;
    return earlier;
  } catch (const UsageError& error) {
    throw UsageError("--resume: " + path.string() + " " + error.what());
  }
}

void leave_out(EarlierRun& earlier, const std::set<std::string>& names) {
  std::vector<WrittenRow> kept;
  Json parts = Json::array();
  auto row = earlier.rows.begin();
  for (Json& part : earlier.context["crossover"]["parts"]) {
    const std::size_t before = kept.size();
    for (std::size_t left = part["rows"]; left > 0; --left, ++row) {
      if (!names.contains(row->name)) {
        kept.push_back(std::move(*row));
      }
    }
    if (kept.size() > before) {
      part["rows"] = kept.size() - before;
      parts.push_back(std::move(part));
    }
  }
  earlier.rows = std::move(kept);
  earlier.context["crossover"]["parts"] = std::move(parts);
}

bool has_interrupted_rows(const std::filesystem::path& path) {
  const std::optional<std::string> text = text_of(path);
  try {
    const std::optional<EarlierRun> run = text ? std::optional(parse_earlier(*text)) : std::nullopt;
    return run && !run->is_done && !run->rows.empty();
  } catch (const UsageError&) {
    return false;
  }
}

bool is_result_file(const std::filesystem::path& path) {
  const std::optional<std::string> text = text_of(path);
  try {
    const Json document = text ? parsed(*text) : Json();
    return document.contains("context") && document.contains("benchmarks");
  } catch (const UsageError&) {
    return false;
  }
}

// ---- What it says to a refinement

bool EarlierSizes::is_refined() const {
  return std::ranges::any_of(refinements,
                             [](const Json& one) { return one.value("complete", false); });
}

EarlierSizes earlier_sizes(const EarlierRun& run,
                           const std::function<bool(const std::string& row)>& counts) {
  EarlierSizes found;
  std::string place = "refinements";
  try {
    if (const Json::json_pointer at("/crossover/refinements"); run.context.contains(at)) {
      found.refinements = run.context[at].get<Json::array_t>();
      static_cast<void>(found.is_refined());  // they are objects
    }
    for (const WrittenRow& row : run.rows) {
      if (counts(row.name)) {
        place = row.name;
        const Json configuration = Json::parse(row.facts).at("configuration");
        const std::string model =
            configuration.at(configuration.contains("size") ? "size" : "model");
        if (!contains(found.models, model)) {
          found.models.push_back(model);
        }
        for (const std::string& line : row.entries) {
          if (const Json entry = Json::parse(line); entry.at("run_type") == "iteration") {
            found.seconds[row.name].push_back(seconds_in(entry.at("real_time")));
          }
        }
      }
    }
  } catch (const Json::exception&) {
    throw UsageError("--resume: " + run.path.string() + " has " + place +
                     " that can't be read; without --resume the rows are measured anew");
  }
  return found;
}

}  // namespace crossover::bench
