// SPDX-License-Identifier: Apache-2.0
#include "worker/local_worker.h"

#include <benchmark/benchmark.h>

#include <sstream>
#include <utility>

#include "axes/flag.h"
#include "build_info.h"

namespace crossover::bench {
namespace {

/// Google Benchmark 1.7 refuses the unit that 1.8 and later ask for.
const char* min_time_suffix() {
  int major = 0;
  int minor = 0;
  std::istringstream version(build::benchmark_version);
  char dot = 0;
  version >> major >> dot >> minor;
  return major > 1 || minor >= 8 ? "s" : "";
}

}  // namespace

void initialize_benchmark(const Effort& effort, const std::vector<std::string>& passed_on) {
  static std::vector<std::string> words;  // Google Benchmark keeps pointers into them
  words = {"bench", "--benchmark_repetitions=" + std::to_string(effort.repetitions),
           "--benchmark_min_time=" + std::to_string(effort.min_time_seconds) + min_time_suffix()};
  words.insert(words.end(), passed_on.begin(), passed_on.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  int count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  benchmark::Initialize(&count, pointers.data());
  if (count > 1) {
    throw UsageError("Google Benchmark does not accept " + std::string(pointers[1]));
  }
}

std::unique_ptr<Worker> local_worker(RowServer::Find find, std::unique_ptr<EnergyWatch> energy) {
  const auto server = std::make_shared<RowServer>(
      std::move(find), [](const std::string& /*doing*/) {}, std::move(energy));
  return std::make_unique<LocalWorker>(
      [server](const Json& request) { return server->answer(request); });
}

}  // namespace crossover::bench
