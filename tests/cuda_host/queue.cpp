// SPDX-License-Identifier: Apache-2.0
#include "queue.h"

#include <algorithm>
#include <unordered_set>

#include "fences.h"
#include "memory.h"
#include "state.h"
#include "streams.h"

namespace cuda_host {

struct Node {
  std::shared_ptr<const Work> work;
  std::vector<Pending> after, before;
  std::size_t missing = 0;
  int stream = 0;
  bool done = false;
  double at = 0;
};

namespace {

struct Queue {
  std::unordered_set<Node*> waiting;  ///< all that are not done
  std::vector<Pending> ready;
  int favourite = 0;
  double clock = 0;
};

Queue& queue() {
  static Queue only;
  return only;
}

void carry_out(const Work& work) {
  State& now = state();
  if (!work.run || now.sticky != cudaSuccess) {
    return;
  }
  if (is_due(Fault::endless_kernel)) {
    hang();
  }
  if (is_due(Fault::illegal_access)) {
    fail_context(cudaErrorIllegalAddress);
    return;
  }
  if (++now.executed == now.failing_execution) {
    now.failed = true;
    fail_context(now.failure);
    return;
  }
  for (const void* block : work.blocks) {
    if (find_block(block) == nullptr) {
      violation("a " + work.what + " uses memory at " + hex(block) + " that has been freed");
      fail_context(cudaErrorIllegalAddress);
      return;
    }
  }
  if (!work.declared) {
    work.run();
    return;
  }
  const Fence fence(*work.declared, work.blocks);
  work.run();
  if (const std::string fault = fence.fault(); !fault.empty()) {
    violation("in a " + work.what + ", " + fault);
  }
}

void execute(const Pending& node) {
  Queue& all = queue();
  all.ready.erase(std::find(all.ready.begin(), all.ready.end(), node));
  carry_out(*node->work);
  all.clock += node->work->microseconds;
  node->at = all.clock;
  node->done = true;
  all.waiting.erase(node.get());
  for (const Pending& next : node->before) {
    if (--next->missing == 0) {
      all.ready.push_back(next);
    }
  }
  node->after.clear();
  node->before.clear();
}

/// Mostly one stream for a while, as a busy device may, and else any.
void execute_any() {
  Queue& all = queue();
  if (state().pick(16) == 0) {
    all.favourite = all.ready[state().pick(all.ready.size())]->stream;
  }
  auto chosen = all.ready.begin() + static_cast<std::ptrdiff_t>(state().pick(all.ready.size()));
  if (state().pick(4) != 0) {
    const auto favoured =
        std::find_if(all.ready.begin(), all.ready.end(),
                     [&](const Pending& node) { return node->stream == all.favourite; });
    chosen = favoured == all.ready.end() ? chosen : favoured;
  }
  execute(Pending(*chosen));
}

/// What it waits for and itself, nothing else.
void execute_needed(const Pending& last) {
  std::vector<Pending> stack{last};
  while (!stack.empty()) {
    const Pending node = stack.back();
    if (node->done) {
      stack.pop_back();
    } else if (node->missing == 0) {
      execute(node);
      stack.pop_back();
    } else {
      std::vector<Pending> left;
      std::copy_if(node->after.begin(), node->after.end(), std::back_inserter(left),
                   [](const Pending& before) { return !before->done; });
      stack.push_back(left[state().pick(left.size())]);
    }
  }
}

}  // namespace

std::vector<const void*> blocks_of(const std::vector<const void*>& addresses) {
  std::vector<const void*> blocks;
  for (const void* address : addresses) {
    const Block* block = find_block(address);
    if (block != nullptr && std::find(blocks.begin(), blocks.end(), block->begin) == blocks.end()) {
      blocks.push_back(block->begin);
    }
  }
  return blocks;
}

Pending submit(std::shared_ptr<const Work> work, const std::vector<Pending>& after, int stream) {
  auto node = std::make_shared<Node>();
  node->work = std::move(work);
  node->stream = stream;
  for (const Pending& before : after) {
    if (before && !before->done) {
      node->after.push_back(before);
      before->before.push_back(node);
      ++node->missing;
    }
  }
  queue().waiting.insert(node.get());
  if (node->missing == 0) {
    queue().ready.push_back(node);
  }
  if (state().order == Order::eager) {
    run_everything();
  } else if (state().order == Order::shuffled && state().pick(8) == 0) {
    const Opened opened;
    for (std::size_t left = state().pick(8); left > 0 && !queue().ready.empty(); --left) {
      execute_any();
    }
  }
  return node;
}

void carry_out_within(const Work& work) {
  carry_out(work);
  queue().clock += work.microseconds;
}

Pending done_now() {
  auto node = std::make_shared<Node>();
  node->done = true;
  node->at = queue().clock;
  return node;
}

bool is_done(const Pending& node) { return !node || node->done; }
double finished_at(const Pending& node) { return node->at; }

void run_until(const Pending& node) {
  if (is_done(node)) {
    return;
  }
  const Opened opened;
  if (state().order == Order::lazy || state().pick(2) == 0) {
    execute_needed(node);
    return;
  }
  while (!node->done) {
    execute_any();
  }
}

void run_everything() {
  if (queue().ready.empty()) {
    return;
  }
  const Opened opened;
  while (!queue().ready.empty()) {
    execute_any();
  }
}

std::string user_of(const void* block) {
  for (const Node* node : queue().waiting) {
    const auto& used = node->work->blocks;
    if (node->work->run && std::find(used.begin(), used.end(), block) != used.end()) {
      return node->work->what;
    }
  }
  return {};
}

void forget_queue() {
  forget_streams();
  // A long chain of operations would be released by as deep a recursion.
  for (Queue& all = queue(); !all.ready.empty();) {
    const Pending node = all.ready.back();
    all.ready.pop_back();
    for (const Pending& next : node->before) {
      if (--next->missing == 0) {
        all.ready.push_back(next);
      }
    }
    node->after.clear();
    node->before.clear();
  }
  queue() = Queue{};
}

}  // namespace cuda_host
