// SPDX-License-Identifier: Apache-2.0
#include "rows/counters.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace crossover::bench {
namespace {

constexpr CounterKind fact = CounterKind::fact;
constexpr CounterKind once = CounterKind::once;
constexpr CounterKind repetition = CounterKind::repetition;

}  // namespace

std::string to_string(CounterKind kind) {
  switch (kind) {
    case CounterKind::fact:
      return "fact";
    case CounterKind::once:
      return "once";
    case CounterKind::repetition:
      return "repetition";
  }
  return "";
}

const std::vector<Counter>& counters() {
  static const std::vector<Counter> all{
      // What is trained
      {"params", "parameters", fact, "trainable parameters of the network"},
      {"batch", "rows", fact, "rows of one batch"},
      {"rows", "rows", fact, "rows of the data"},
      {"steps", "steps", fact, "batches of one epoch; the last may be short"},
      {"loss_first_epoch", "1", fact, "mean of the first epoch's losses, from the fixed start"},
      {"loss_first_step", "1", fact, "loss of the first step, from the fixed start"},
      // What is computed
      {"count", "1", fact, "how often an iteration repeats what the row is about"},
      {"flops", "operations", fact, "floating-point operations; a multiply-add is two"},
      {"bytes", "B", fact, "bytes read and written, as if nothing stayed in a cache"},
      {"products", "1", fact, "matrix products"},
      {"launches", "1", fact, "what the device starts one by one"},
      {"bytes_to_device", "B", fact, "bytes of the batches that are copied to a GPU"},
      {"reorders", "1", fact, "copies of a tensor into another layout of memory"},
      {"reorder_bytes", "B", fact, "bytes read and written by reorders"},
      {"operand_sets", "1", fact, "sets of operands, more than the caches hold together"},
      {"verified_entries", "1", fact, "entries compared with the reference"},
      {"peak_bytes", "B", fact, "memory of the compiled program"},
      {"cpu_threads", "threads", fact, "threads of the computation, on the CPU"},
      {"graph_loops", "1", fact, "loops of the CUDA graph of an epoch; 0: it holds each step"},
      {"graph_streams", "1", fact, "streams of the CUDA graphs"},
      // Measured when the program is made
      {"first_call_seconds", "s", once, "the first call, with everything that it sets up"},
      {"verification_seconds", "s", once, "comparing with the reference, and computing that"},
      {"device_seconds", "s", once, "the row's `seconds`, by the GPU's own clock"},
      // Measured in each repetition: the profile
      {"seconds_product", "s", repetition, "profile: matrix products"},
      {"seconds_convolution", "s", repetition, "profile: convolutions"},
      {"seconds_normalization", "s", repetition, "profile: batch normalization"},
      {"seconds_pooling", "s", repetition, "profile: pooling"},
      {"seconds_elementwise", "s", repetition, "profile: elementwise operations"},
      {"seconds_reorder", "s", repetition, "profile: reorders"},
      {"seconds_loss", "s", repetition, "profile: the loss and its gradient"},
      {"seconds_update", "s", repetition, "profile: updates of the parameters"},
      {"seconds_copy_to_device", "s", repetition, "profile: copies to the GPU"},
      {"seconds_copy_from_device", "s", repetition, "profile: copies from the GPU"},
      {"seconds_launch", "s", repetition, "profile: launching"},
      {"seconds_synchronization", "s", repetition, "profile: waiting for the GPU"},
      {"sm_clock_mhz_before", "MHz", repetition, "SM clock right before the timed loop"},
      {"sm_clock_mhz_after", "MHz", repetition, "SM clock right after the timed loop"},
  };
  return all;
}

CounterKind kind_of_counter(const std::string& key) {
  const auto at = std::find_if(counters().begin(), counters().end(),
                               [&](const Counter& counter) { return counter.key == key; });
  return at == counters().end() ? repetition : at->kind;
}

nlohmann::ordered_json counters_json() {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Counter& counter : counters()) {
    json[counter.key] = {{"unit", counter.unit},
                         {"kind", to_string(counter.kind)},
                         {"description", counter.description}};
  }
  return json;
}

}  // namespace crossover::bench
