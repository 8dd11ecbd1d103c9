// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>

#include "runtime.h"

namespace crossover::cuda {
namespace {

constexpr int times = 5;
using Samples = std::array<double, times>;

double median(Samples samples) {
  std::sort(samples.begin(), samples.end());
  return samples[times / 2];
}

}  // namespace

std::vector<double> device_seconds(cudaStream_t stream,
                                   const std::vector<std::function<void()>>& pieces) {
  std::vector<Event> events;
  for (std::size_t i = 0; i <= pieces.size(); ++i) {
    events.push_back(make_timed_event());
  }
  const auto record = [stream](const Event& event) {
    CROSSOVER_CUDA_CHECK(cudaEventRecordWithFlags(event.get(), stream, cudaEventRecordExternal));
  };
  const GraphExec graph = capture(stream, [&] {
    record(events.front());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      pieces[i]();
      record(events[i + 1]);
    }
  });
  // Where something throws, events and graph may still be in use.
  const Owner<cudaStream_t, &cudaStreamSynchronize> finish(stream);
  std::vector<Samples> samples(pieces.size());
  for (int time = -1; time < times; ++time) {  // the first only warms up
    CROSSOVER_CUDA_CHECK(cudaGraphLaunch(graph.get(), stream));
    CROSSOVER_CUDA_CHECK(cudaStreamSynchronize(stream));
    for (std::size_t i = 0; i < pieces.size() && time >= 0; ++i) {
      constexpr double second_per_millisecond = 1e-3;
      float milliseconds = 0;
      CROSSOVER_CUDA_CHECK(
          cudaEventElapsedTime(&milliseconds, events[i].get(), events[i + 1].get()));
      samples[i][static_cast<std::size_t>(time)] = milliseconds * second_per_millisecond;
    }
  }
  std::vector<double> medians;
  std::transform(samples.begin(), samples.end(), std::back_inserter(medians), median);
  return medians;
}

void keep_busy(const std::function<void()>& work) {
  constexpr auto long_enough = std::chrono::milliseconds(50);
  const auto start = std::chrono::steady_clock::now();
  do {
    work();
  } while (std::chrono::steady_clock::now() - start < long_enough);
}

double host_seconds(const std::function<void()>& timed, const std::function<void()>& after) {
  Samples samples{};
  for (double& seconds : samples) {
    const auto start = std::chrono::steady_clock::now();
    timed();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    after();
  }
  return median(samples);
}

}  // namespace crossover::cuda
