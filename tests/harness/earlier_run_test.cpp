// SPDX-License-Identifier: Apache-2.0
#include "file/earlier_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "axes/flag.h"
#include "crossover/fingerprint.h"
#include "file/result_file.h"

namespace crossover::bench {
namespace {

/// Of one row, "a", measured in two repetitions where `facts` do not say otherwise.
std::string file(const std::string& parts, const std::string& facts = R"("repetitions":2)") {
  const std::string repetition = R"({"name":"a","run_type":"iteration"})";
  return R"({"context":{"crossover":{"schema_version":2,"complete":false,"parts":)" + parts +
         R"(}},"rows":[{"name":"a",)" + facts + R"(}],"benchmarks":[)" + repetition + "," +
         repetition + "]}";
}

TEST(EarlierRun, IsReadWithItsRows) {
  const EarlierRun earlier = parse_earlier(file(R"([{"rows":1}])"));
  ASSERT_EQ(earlier.rows.size(), 1U);
  EXPECT_EQ(earlier.rows[0].name, "a");
  EXPECT_EQ(earlier.rows[0].entries.size(), 2U);
}

TEST(EarlierRun, RowsOfAnotherNetworkThanItsOwnAreRefused) {
  const std::string facts = R"("configuration":{"model":"m"},"network":")";
  const auto of = [&](const std::string& network) {
    std::string text = file(R"([{"rows":1}],"networks":[{"name":"m","layers":3}])",
                            facts + network + R"(","repetitions":2)");
    return parse_earlier(text).rows.size();
  };
  EXPECT_EQ(of(hexadecimal(fingerprint(R"({"name":"m","layers":3})"))), 1U);
  EXPECT_THROW(of("0123456789abcdef"), UsageError);
}

TEST(EarlierRun, PartsWhoseSumWrapsAreRefused) {
  EXPECT_THROW(parse_earlier(file(R"([{"rows":18446744073709551615},{"rows":2}])")), UsageError);
  EXPECT_THROW(parse_earlier(file(R"([{"rows":2}])")), UsageError);
  EXPECT_THROW(parse_earlier(file("[]")), UsageError);
}

TEST(EarlierRun, RepetitionsThatAreNoCountAreRefused) {
  for (const char* count : {"-1", "18446744073709551615", "2.0", "1", "3"}) {
    EXPECT_THROW(parse_earlier(file(R"([{"rows":1}])", std::string(R"("repetitions":)") + count)),
                 UsageError)
        << count;
  }
}

/// Both looked before either wrote.
TEST(ResultFile, OfRunsThatStartTogetherOneGoesOn) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("together-" + std::to_string(getpid()) + ".json");
  const Spent spent;
  ResultLocks locks = lock_results(path, false);
  ResultLocks others = lock_results(path, false);
  const ResultFile first(path, std::move(locks), {{"crossover", {}}}, spent);
  EXPECT_THROW(ResultFile(path, std::move(others), {{"crossover", {}}}, spent), UsageError);
  std::filesystem::remove(path);
}

TEST(EarlierRun, WhatARepetitionLacksIsNotTheFirstsWhenItIsReadAgain) {
  const std::string rare = "latency_p999_seconds", always = "latency_max_seconds";
  Row row;
  row.record.repetitions = {
      {.seconds = 1, .iterations = 1, .counters = {{rare, 5e-5}, {always, 6e-5}}},
      {.seconds = 1, .iterations = 1, .counters = {{always, 4e-5}}}};
  const Record again = record_in(written_row("a", row), {});
  ASSERT_EQ(again.repetitions.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again.repetitions[i].counters,
              (std::map<std::string, double>{{always, i == 0 ? 6e-5 : 4e-5}}));
  }
}

}  // namespace
}  // namespace crossover::bench
