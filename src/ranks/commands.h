// SPDX-License-Identifier: Apache-2.0
// What rank 0 tells the ranks that follow, and in which form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "crossover/backend.h"
#include "crossover/model.h"
#include "crossover/ranks.h"
#include "crossover/training.h"

namespace crossover {

/// What it is about follows in messages of its own.
enum class What : std::int64_t {
  make,
  make_sum,
  drop,
  upload,
  download,
  enqueue,
  profile,
  passes,
  end
};

struct Command {
  What what = What::end;
  std::int64_t program = 0;  ///< its number
  std::int64_t a = 0, b = 0;
};

/// What the others are asked to compile: of the network that the row names whose name follows, so
/// that none must be sent.
struct ShareRequest {
  std::int64_t rows = 0, batch = 0;  ///< of all ranks
  Execution execution = Execution::eager;
  int threads = 1;
  std::int64_t network = 0;  ///< tells it apart from another one of that name
};

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

void tell(Ranks& ranks, Command command);

/// On rank 0, and what the others make of it: a row's name, by which they find their own things and
/// whose length they know.
void send(Ranks& ranks, std::string row);
std::string received(Ranks& ranks, std::int64_t length);

std::uint64_t hash_of(std::span<const std::byte> bytes);

/// Tells networks apart that have one name: that of a step of one rank.
std::int64_t network_of(const Model& model, TrainingOptions whole);

/// All go on at once.
void meet(Ranks& ranks);

}  // namespace crossover
