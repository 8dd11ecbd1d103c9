// SPDX-License-Identifier: Apache-2.0
#include "state.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "memory.h"
#include "queue.h"

namespace cuda_host {

State& state() {
  static State only;
  return only;
}

Device& device() { return state().device; }

void reset(std::uint64_t seed, Order order) {
  forget_queue();
  forget_memory();
  state() = State{};
  state().random.seed(seed);
  state().order = order;
}

std::int64_t calls() { return state().calls; }
std::int64_t executed() { return state().executed; }

std::int64_t calls_of(const std::string& function) {
  const auto found = state().calls_by_name.find(function);
  return found == state().calls_by_name.end() ? 0 : found->second;
}

std::int64_t products_by(std::size_t algorithm) { return state().products_by_algorithm[algorithm]; }

void fail_call(std::int64_t n, cudaError_t error) {
  state().failing_call = n;
  state().failure = error;
}

void fail_execution(std::int64_t n, cudaError_t error) {
  state().failing_execution = n;
  state().failure = error;
}

namespace {
std::atomic<Fault> next_fault = Fault::none;  // set by a thread of its own
}

void set_fault(Fault fault) { next_fault = fault; }

bool is_due(Fault kind) { return next_fault.compare_exchange_strong(kind, Fault::none); }

bool is_forgetful() {
  std::int64_t& turns = state().device.forgetful_launch;
  return turns > 0 && --turns == 0;
}

void hang() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

bool has_failed() { return state().failed; }

bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

cudaError_t enter(const char* function) {
  State& now = state();
  ++now.calls;
  ++now.calls_by_name[function];
  if (now.calls == now.failing_call) {
    now.failed = true;
    if (is_sticky(now.failure)) {
      fail_context(now.failure);
    }
    return now.failure;
  }
  return now.sticky;
}

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) {
    state().last = error;
  }
  return error;
}

void violation(const std::string& sentence) { state().violations.push_back(sentence); }

void fail_context(cudaError_t error) {
  if (state().sticky == cudaSuccess) {
    state().sticky = state().last = error;
  }
}

std::vector<std::string> take_violations() { return std::exchange(state().violations, {}); }

Live live() { return state().live; }

std::string Live::text() const {
  std::string all;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count != 0) {
      all += (all.empty() ? "" : ", ") + std::to_string(count) + " " + what;
    }
  };
  add(device_blocks, "blocks of device memory");
  add(pinned_blocks, "blocks of pinned memory");
  add(streams, "streams");
  add(events, "events");
  add(graphs, "graphs");
  add(graph_execs, "executable graphs");
  add(handles, "cuBLASLt handles");
  add(descriptors, "matmul descriptors");
  add(layouts, "matrix layouts");
  add(preferences, "preferences");
  add(communicators, "communicators");
  return all;
}

}  // namespace cuda_host
