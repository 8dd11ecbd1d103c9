// SPDX-License-Identifier: Apache-2.0
#include "commands.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

#include "crossover/fingerprint.h"
#include "crossover/random.h"
#include "crossover/shared_training.h"
#include "share.h"

namespace crossover {

void tell(Ranks& ranks, Command command) { ranks.broadcast(bytes_of(command)); }

void send(Ranks& ranks, std::string row) {
  ranks.broadcast(std::as_writable_bytes(std::span(row)));
}

std::string received(Ranks& ranks, std::int64_t length) {
  std::string row(static_cast<std::size_t>(length), ' ');
  ranks.broadcast(std::as_writable_bytes(std::span(row)));
  return row;
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

// ---- The ranks that follow: each does with its share what rank 0 tells.

namespace {

double seconds_of(Share& share, std::int64_t passes) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    share.program().enqueue(0, share.steps());
    share.program().wait();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::unique_ptr<Share> made(Ranks& ranks, const ShareRequest& request, const Followed& followed) {
  TrainingOptions share = followed.whole;
  share.ranks = ranks.size();
  if (network_of(followed.model, share) != request.network) {
    throw std::runtime_error("it has another network '" + followed.model.name +
                             "' than rank 0; start all ranks with the same files");
  }
  share.rows = request.rows;
  share.batch = request.batch;
  share.rank = ranks.rank();
  CompileOptions options = followed.options;
  options.execution = request.execution;
  options.threads = request.threads;
  options.ranks = &ranks;
  auto made = std::make_unique<Share>(*followed.backend, followed.model, share, options);
  made->instantiate();
  return made;
}

/// Does the same with the share, and answers where rank 0 gathers.
void carry_out(Ranks& ranks, const Command& command, Share& share) {
  switch (command.what) {
    case What::upload: {
      std::vector<std::byte> whole(static_cast<std::size_t>(command.b));
      ranks.broadcast(whole);
      share.upload(static_cast<Id>(command.a), whole);
      break;
    }
    case What::download: {
      const std::vector<std::byte> own = share.download(static_cast<Id>(command.a));
      if (share.workload()[static_cast<Id>(command.a)].role == Role::loss) {
        ranks.gather(own, {});
      } else {
        differing_rank(ranks, hash_of(own));
      }
      break;
    }
    case What::enqueue:
      share.program().enqueue(command.a, command.b);
      break;
    case What::profile:
      share.program().profile();
      break;
    case What::passes: {
      meet(ranks);
      double seconds = seconds_of(share, command.a);
      ranks.gather(bytes_of(seconds), {});
      break;
    }
    default:
      throw std::logic_error("rank 0 asks for what no rank can do");
  }
}

}  // namespace

void follow(Ranks& ranks, const std::function<Followed(const std::string& row)>& find) {
  std::map<std::int64_t, std::unique_ptr<Share>> shares;
  for (;;) {
    Command command;
    ranks.broadcast(bytes_of(command));
    if (command.what == What::end) {
      return;
    }
    if (command.what == What::make) {
      ShareRequest request;
      ranks.broadcast(bytes_of(request));
      shares[command.program] = made(ranks, request, find(received(ranks, command.a)));
    } else if (command.what == What::make_sum) {
      const bool on_gpu = command.b > 0;
      shares[command.program] =
          sum_of(ranks, command.a, on_gpu ? find(received(ranks, command.b)).backend : nullptr);
    } else if (command.what == What::drop) {
      shares.erase(command.program);
    } else {
      carry_out(ranks, command, *shares.at(command.program));
    }
  }
}

}  // namespace crossover
