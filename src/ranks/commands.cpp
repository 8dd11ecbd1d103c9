// SPDX-License-Identifier: Apache-2.0
#include "commands.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "crossover/fingerprint.h"
#include "crossover/random.h"
#include "crossover/shared_training.h"

namespace crossover {

void tell(Ranks& ranks, Command command) { ranks.broadcast(bytes_of(command)); }

/// A row's name, which the others find their own things by.
void send(Ranks& ranks, std::string row) {
  ranks.broadcast(std::as_writable_bytes(std::span(row)));
}

std::string received(Ranks& ranks, std::int64_t length) {
  std::string row(static_cast<std::size_t>(length), ' ');
  ranks.broadcast(std::as_writable_bytes(std::span(row)));
  return row;
}

void send(Ranks& ranks, const ShareRequest& request) {
  std::array<std::int64_t, 5> sizes{request.rows, request.batch,
                                    static_cast<std::int64_t>(request.execution), request.threads,
                                    request.network};
  ranks.broadcast(std::as_writable_bytes(std::span(sizes)));
  send(ranks, request.row);
}

ShareRequest received_request(Ranks& ranks, std::int64_t length) {
  std::array<std::int64_t, 5> sizes{};
  ranks.broadcast(std::as_writable_bytes(std::span(sizes)));
  return {.row = received(ranks, length),
          .rows = sizes[0],
          .batch = sizes[1],
          .execution = static_cast<Execution>(sizes[2]),
          .threads = static_cast<int>(sizes[3]),
          .network = sizes[4]};
}

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  std::uint64_t state = bytes.size();
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    state = finalized(state ^ word);
  }
  return state;
}

std::int64_t network_of(const Model& model, TrainingOptions whole) {
  whole.rows = whole.batch = whole.ranks;
  whole.rank = 0;
  return static_cast<std::int64_t>(fingerprint(training_epoch(model, whole)));
}

void meet(Ranks& ranks) {
  float nothing = 0;
  ranks.sum(std::span(&nothing, 1));
}

int differing_rank(Ranks& ranks, std::uint64_t own) {
  std::vector<std::uint64_t> all(ranks.rank() == 0 ? static_cast<std::size_t>(ranks.size()) : 0);
  ranks.gather(bytes_of(own), std::as_writable_bytes(std::span(all)));
  const auto other = std::find_if(all.begin(), all.end(), [&](auto one) { return one != own; });
  return other == all.end() ? 0 : static_cast<int>(other - all.begin());
}

}  // namespace crossover
