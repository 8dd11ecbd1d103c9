// SPDX-License-Identifier: Apache-2.0
// What the device has to do, and in which order it does it.
//
// Every operation knows those that it must wait for: the one before it in its stream, and what
// events and graphs add. The executor runs any operation whose predecessors are done, at moments of
// its own choice, so that a dependency which is missing in the program shows sooner or later.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda_host.h"
#include "ranges.h"

namespace cuda_host {

/// An operation as it is put into a stream, or recorded in a graph.
struct Work {
  std::string what;                 ///< for sentences: "kernel", "copy of 64 bytes"
  std::function<void()> run;        ///< empty: an event, or the border of a graph
  std::vector<const void*> blocks;  ///< memory that it uses: first bytes of its blocks
  double microseconds = 1;          ///< of the made-up clock
  bool loops = true;                ///< whether it may be part of a loop's body in a graph
  std::optional<std::vector<Range>> declared;  ///< all that it may touch; none: anything
};

/// The blocks that addresses lie in, without those that lie in none.
std::vector<const void*> blocks_of(const std::vector<const void*>& addresses);

struct Node;
using Pending = std::shared_ptr<Node>;

/// Puts it into the queue behind `after`; `stream` is a number for the executor's favour.
Pending submit(std::shared_ptr<const Work> work, const std::vector<Pending>& after, int stream);

/// Carries it out at once, as a part of what is being carried out.
void carry_out_within(const Work& work);

/// Something that is over: at this moment of the made-up clock.
Pending done_now();

bool is_done(const Pending& node);
/// Microseconds of a made-up clock.
double finished_at(const Pending& node);

/// Returns when it is done; null is.
void run_until(const Pending& node);
void run_everything();

/// Whether something in the queue uses that block; if so, what.
std::string user_of(const void* block);

/// Forgets streams, events and graphs as well.
void forget_queue();

}  // namespace cuda_host
