// SPDX-License-Identifier: Apache-2.0
#include "rows/counters.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "crossover/names.h"

namespace crossover::bench {

namespace {

constexpr std::initializer_list<std::pair<const char*, CounterKind>> named_kinds{
    {"fact", CounterKind::fact},
    {"once", CounterKind::once},
    {"repetition", CounterKind::repetition}};

}  // namespace

const std::vector<Counter>& counters() {
  using enum CounterKind;
  static const std::vector<Counter> all{
      {"params", "parameters", fact, "trainable parameters of the network"},
      {"batch", "samples", fact, "samples in one batch; of a language model, sequences"},
      {"rows", "samples", fact, "samples in the data"},
      {"steps", "steps", fact, "batches in one epoch; the last may be short"},
      {"width", "features", fact, "inputs and outputs of a layer"},
      {"cpu_threads", "threads", fact,
       "threads of the computation; at most so many with execution auto"},
      {"ranks", "ranks", fact, "processes that share each batch, each with cpu_threads of its own"},
      {"threads_used", "threads", fact,
       "threads of the CPU that have any work; fewer than cpu_threads where no operation is worth "
       "more"},
      {"count", "–", fact, "operations, launches or copies in one iteration, one behind the other"},
      {"flops", "operations", fact,
       "additions and multiplications, counted over the list of operations before any fusion"},
      {"bytes", "B", fact,
       "bytes read and written, as if nothing stayed in a cache; of a copy, the bytes copied"},
      {"items", "items", fact, "of a function, items that a call works on"},
      {"products", "products", fact, "matrix products in the list of operations"},
      {"logits", "numbers", fact, "numbers that the loss reads: samples, or places, times classes"},
      {"launches", "launches", fact,
       "kernels, library calls and copies that the compiled Program starts one by one"},
      {"bytes_to_device", "B", fact,
       "bytes of batches copied to a GPU, where its data is not resident"},
      {"graph_loops", "loops", fact,
       "with execution graph-epoch, loops in the one graph of the epoch; 0: it holds each step by "
       "itself"},
      {"graph_streams", "streams", fact,
       "with graphs, 2 where gradients of a layer run side by side in them, else 1"},
      {"reorders", "copies", fact,
       "copies of a tensor into another layout of memory, where the backend counts them"},
      {"reorder_bytes", "B", fact, "bytes that these copies read and write"},
      {"peak_bytes", "B", fact,
       "memory of the compiled Program: data, parameters, gradients, activations and scratch "
       "space"},
      {"operand_sets", "sets", fact, "sets of operands that a product uses in turn"},
      {"verified_entries", "entries", fact, "entries compared with the reference, over all sets"},
      {"loss_first_epoch", "nat", fact,
       "mean of the step losses of the first epoch, from the deterministic start"},
      {"loss_first_step", "nat", fact, "loss of the first step, from the deterministic start"},
      {"first_call_seconds", "s", once,
       "from the start of compilation to the end of the first iteration, without verification; on "
       "a GPU with machine.gpu.start_seconds"},
      {"cached_graphs", "graphs", once,
       "with torch.compile: graphs that its cache on disk had already, which makes "
       "first_call_seconds shorter"},
      {"verification_seconds", "s", once,
       "time that the verification took, with what it shares with later rows of the same network"},
      {"call_seconds", "s", once,
       "of a function, until it returned; on a device it may not be done by then"},
      {"wait_seconds", "s", once, "the wait for the device behind that call"},
      {"back_to_back_seconds", "s", once,
       "of a function on a device, one of several calls waited for together"},
      {"copy_in_seconds", "s", once, "of a function on a device, the copy of its input there"},
      {"copy_out_seconds", "s", once, "the copy of its result back"},
      {"device_seconds", "s", once,
       "like seconds, but by the GPU's own clock, without launch and wait"},
      {"latency_p50_seconds", "s", repetition,
       "of forward passes that were timed one by one, half took no longer"},
      {"latency_p90_seconds", "s", repetition, "the same of 90 % of the passes"},
      {"latency_p99_seconds", "s", repetition, "the same of 99 % of the passes, of 100 at least"},
      {"latency_p999_seconds", "s", repetition,
       "the same of 99.9 % of the passes, of 1000 at least"},
      {"latency_max_seconds", "s", repetition, "the longest of these passes"},
      {"latency_passes", "passes", repetition,
       "forward passes that were timed one by one, 10,000 at most"},
      {"clock_seconds", "s", repetition,
       "what one reading of the clock takes; it is in each of these times, once"},
      {"seconds_product", "s", repetition,
       "profile: matrix products, recurrent layers and attention"},
      {"seconds_convolution", "s", repetition, "profile: convolutions"},
      {"seconds_normalization", "s", repetition, "profile: batch and layer normalization"},
      {"seconds_pooling", "s", repetition, "profile: pooling"},
      {"seconds_elementwise", "s", repetition,
       "profile: bias gradients, activations and their derivatives, dropout, embeddings"},
      {"seconds_reorder", "s", repetition, "profile: copies into another layout of memory"},
      {"seconds_loss", "s", repetition, "profile: the loss and its gradient"},
      {"seconds_update", "s", repetition, "profile: the optimizer"},
      {"seconds_copy_to_device", "s", repetition, "profile: copies to the GPU"},
      {"seconds_copy_from_device", "s", repetition, "profile: copies from the GPU"},
      {"seconds_launch", "s", repetition,
       "profile: time by which the CPU is slower to launch than the GPU to compute"},
      {"seconds_synchronization", "s", repetition, "profile: waits for the GPU"},
      {"seconds_communication", "s", repetition,
       "profile: sums of gradients over the ranks, as far as the first rank waits for them"},
      {"rank_spread", "share", repetition,
       "by how much the slowest rank took longer than the fastest, over the slowest's time"},
      {"cpu_wait", "share", repetition,
       "time that threads of the program were ready to run and waited for a processor, over the "
       "time of the timed loop, summed over the threads; a repetition is disturbed by the mean "
       "over the row's threads"},
      {"cpu_steal", "share", repetition,
       "time that the hypervisor took from the processors, over the time of the timed loop, summed "
       "over the processors; a repetition is disturbed by the mean over all of them"},
      {"sm_clock_mhz_before", "MHz", repetition,
       "the GPU's SM clock before the timed loop, if the driver tells"},
      {"sm_clock_mhz_after", "MHz", repetition,
       "the GPU's SM clock after the timed loop, if the driver tells"},
      {"temperature_celsius_before", "°C", repetition,
       "the GPU's temperature before the timed loop, if the driver tells"},
      {"temperature_celsius_after", "°C", repetition,
       "the GPU's temperature after the timed loop, if the driver tells"},
      {"joules", "J", repetition,
       "with --energy, what one iteration took on all that computed: joules_cpu and joules_gpu, or "
       "joules_machine"},
      {"joules_cpu", "J", repetition,
       "with --energy, what the processors and their memory took during one iteration, by their "
       "own meters, idle power included"},
      {"joules_gpu", "J", repetition,
       "with --energy, what the GPU took during one iteration, by its driver, idle power included"},
      {"joules_machine", "J", repetition,
       "with --meter, what the machine took during one iteration"},
      {"joules_error", "share", repetition,
       "by how much joules, joules_cpu, joules_gpu and joules_machine may be off because meters "
       "move now and then: two updates of the slowest one, over the time of the timed loop"},
  };
  return all;
}

CounterKind kind_of_counter(const std::string& key) {
  const auto at = std::ranges::find(counters(), key, &Counter::key);
  return at == counters().end() ? CounterKind::repetition : at->kind;
}

nlohmann::ordered_json counters_json() {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Counter& counter : counters()) {
    json[counter.key] = {{"unit", counter.unit},
                         {"kind", name_in(named_kinds, counter.kind)},
                         {"description", counter.description}};
  }
  return json;
}

// ---- profile counters

namespace {

constexpr std::initializer_list<std::pair<const char*, OpCategory>> named_categories{
    {"product", OpCategory::product},
    {"convolution", OpCategory::convolution},
    {"normalization", OpCategory::normalization},
    {"pooling", OpCategory::pooling},
    {"elementwise", OpCategory::elementwise},
    {"loss", OpCategory::loss},
    {"update", OpCategory::update},
    {"reorder", OpCategory::reorder},
    {"copy_to_device", OpCategory::copy_to_device},
    {"copy_from_device", OpCategory::copy_from_device},
    {"launch", OpCategory::launch},
    {"synchronization", OpCategory::synchronization},
    {"communication", OpCategory::communication}};

std::string counter_of(OpCategory category) { return "seconds_" + to_string(category); }

double total(const Profile& profile) {
  return std::accumulate(profile.begin(), profile.end(), 0.0,
                         [](double sum, const auto& part) { return sum + part.second; });
}

}  // namespace

std::string to_string(OpCategory category) { return name_in(named_categories, category); }

void count_profile(Program& program, double seconds, std::map<std::string, double>& counters) {
  constexpr std::size_t most = 21;
  const std::chrono::duration<double> enough(seconds);
  std::vector<Profile> profiles;
  const auto start = std::chrono::steady_clock::now();
  do {
    profiles.push_back(program.profile());
  } while (profiles.size() < most && std::chrono::steady_clock::now() - start < enough);
  std::ranges::sort(profiles,
                    [](const Profile& a, const Profile& b) { return total(a) < total(b); });
  for (const auto& [category, spent] : profiles[profiles.size() / 2]) {
    counters[counter_of(category)] = spent;
  }
}

bool is_profile(const std::string& counter) {
  return std::ranges::any_of(named_categories,
                             [&](const auto& one) { return counter_of(one.second) == counter; });
}

}  // namespace crossover::bench
