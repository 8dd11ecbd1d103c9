// SPDX-License-Identifier: Apache-2.0
// parse_earlier() on any text: finished rows as they stand in it, which written as a file are read
// the same, or a UsageError. What earlier_sizes() makes of them likewise.
#include "../../bench/file/earlier_run.h"

#include <cstdint>
#include <set>

#include "../../bench/axes/flag.h"
#include "check.h"

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;
using fuzz::require;

/// Its entries are its own, and as many repetitions as it says.
void require_whole(const WrittenRow& row) {
  const Json facts = Json::parse(row.facts);
  require(facts.at("name") == row.name && !row.name.empty(), "another name");
  std::int64_t repetitions = 0;
  for (const std::string& line : row.entries) {
    const Json entry = Json::parse(line);
    const bool is_repetition = entry.value("run_type", "") == "iteration";
    require(entry.at(is_repetition ? "name" : "run_name") == row.name, "another row's entry");
    repetitions += is_repetition ? 1 : 0;
  }
  const bool is_measured = !facts.contains("outcome");
  require(!is_measured || facts.at("repetitions") == repetitions, "repetitions are missing");
  require(is_measured || facts.at("outcome") != "failed", "a row that failed is kept");
  require(is_measured != row.is_skipped,
          "skipped, though it has times, or not, though it has none");
}

void require_sound(const EarlierRun& earlier) {
  std::set<std::string> names;
  for (const WrittenRow& row : earlier.rows) {
    require(names.insert(row.name).second, "twice the row " + row.name);
    require_whole(row);
  }
  std::uint64_t measured = 0;
  for (const Json& part : earlier.context.at("crossover").at("parts")) {
    const std::uint64_t rows = part.at("rows");
    require(rows > 0 && rows <= earlier.rows.size(), "a part of no rows");
    measured += rows;
  }
  require(measured == earlier.rows.size(), "rows of no part");
}

/// By a refinement, or refused.
void require_usable(const EarlierRun& earlier) {
  try {
    const auto all = [](const std::string& /*row*/) { return true; };
    for (const auto& [name, seconds] : earlier_sizes(earlier, all).seconds) {
      require(!seconds.empty(), "no times of " + name);
    }
  } catch (const UsageError& error) {
    require(*error.what() != '\0', "an error without a message");
  }
}

std::string printed(const EarlierRun& earlier) {
  std::string rows;
  std::string entries;
  for (const WrittenRow& row : earlier.rows) {
    rows += (rows.empty() ? "" : ",") + row.facts;
    for (const std::string& entry : row.entries) {
      entries += (entries.empty() ? "" : ",") + entry;
    }
  }
  return R"({"context":)" + line_of(earlier.context) + R"(,"rows":[)" + rows +
         R"(],"benchmarks":[)" + entries + "]}";
}

void look_at(const std::string& text) {
  EarlierRun earlier;
  try {
    earlier = parse_earlier(text);
  } catch (const UsageError& error) {
    require(*error.what() != '\0', "an error without a message");
    return;
  }
  require_sound(earlier);
  require_usable(earlier);
  const EarlierRun again = parse_earlier(printed(earlier));
  require(printed(again) == printed(earlier), "printed and read again it differs");
}

}  // namespace
}  // namespace crossover::bench

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crossover::bench::look_at(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
