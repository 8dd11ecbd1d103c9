// SPDX-License-Identifier: Apache-2.0
#include "rank_gpu.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crossover/backend.h"

namespace crossover::cuda {
namespace {

/// What each rank tells all others.
struct Told {
  std::size_t about = 0;        ///< a hash, which ranks compare
  std::array<char, 400> why{};  ///< not; "" where all is well

  [[nodiscard]] std::string reason() const { return why.data(); }
};

std::vector<Told> told_by_all(Ranks& ranks, std::size_t about, const std::string& why = "") {
  Told own{.about = about};
  why.copy(own.why.data(), own.why.size() - 1);
  std::vector<Told> all(static_cast<std::size_t>(ranks.size()));
  const auto bytes = std::as_writable_bytes(std::span(all));
  ranks.gather(std::as_bytes(std::span(&own, 1)), ranks.rank() == 0 ? bytes : bytes.first(0));
  ranks.broadcast(bytes);
  return all;
}

/// The first rank that says why not; none of them where it is as large as their number.
std::size_t failing(const std::vector<Told>& all) {
  const auto first =
      std::find_if(all.begin(), all.end(), [](const Told& one) { return one.why.front() != 0; });
  return static_cast<std::size_t>(first - all.begin());
}

std::size_t hash(const std::string& text) { return std::hash<std::string>()(text); }

std::string host_name() {
  std::array<char, 256> name{};
  static_cast<void>(gethostname(name.data(), name.size() - 1));
  return name.data();
}

bool may_share_a_gpu() {
  const char* value = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return value != nullptr && std::string_view(value) == "1";
}

/// Of this machine's ranks how many come before this one.
int place_on_host(Ranks& ranks) {
  const std::vector<Told> hosts = told_by_all(ranks, hash(host_name()));
  const auto own = hosts.begin() + ranks.rank();
  return static_cast<int>(std::count_if(
      hosts.begin(), own, [&](const Told& host) { return host.about == own->about; }));
}

/// Without CUDA's context, which takes a GPU's memory.
std::size_t identity(int ordinal) {
  cudaDeviceProp gpu{};
  if (cudaGetDeviceProperties(&gpu, ordinal) != cudaSuccess) {
    return 0;  // it will tell why
  }
  return hash(host_name() + " " + std::to_string(gpu.pciDomainID) + ":" +
              std::to_string(gpu.pciBusID) + ":" + std::to_string(gpu.pciDeviceID));
}

void require_a_gpu_each(Ranks& ranks, int ordinal) {
  const std::vector<Told> gpus = told_by_all(ranks, identity(ordinal));
  for (std::size_t rank = 0; rank < gpus.size() && !may_share_a_gpu(); ++rank) {
    for (std::size_t other = 0; other < rank && gpus[rank].about != 0; ++other) {
      if (gpus[other].about == gpus[rank].about) {
        throw Unsupported(
            "there are more ranks than GPUs: ranks " + std::to_string(other) + " and " +
            std::to_string(rank) + " of " + std::to_string(gpus.size()) +
            " would share one, which NCCL refuses; start as many ranks as there are GPUs, say "
            "--cuda=off, or, for a test, let NCCL 2.30 or later share one with "
            "NCCL_MULTI_RANK_GPU_ENABLE=1, NCCL_NVLS_ENABLE=0 and NCCL_MAX_CTAS=1");
      }
    }
  }
}

}  // namespace

GpuOfRank gpu_of_rank(Ranks& ranks) {
  const int place = place_on_host(ranks);
  int count = 0;
  const bool sees_any = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  const int ordinal = sees_any ? place % count : 0;
  require_a_gpu_each(ranks, ordinal);
  GpuOfRank found{.gpu = discover(ordinal), .collectives = nullptr};
  const std::vector<Told> gpus = told_by_all(ranks, 0, found.gpu.reason);
  if (const std::size_t rank = failing(gpus); rank < gpus.size()) {
    if (std::all_of(gpus.begin(), gpus.end(), [](const Told& one) { return one.why[0] != 0; })) {
      return found;
    }
    throw Unsupported("rank " + std::to_string(rank) + " has no GPU, but others do: " +
                      gpus[rank].reason() + "; start ranks where each has one");
  }
  std::string why;
  try {
    found.collectives = make_nccl(ranks);
  } catch (const std::runtime_error& error) {
    why = error.what();
  }
  const std::vector<Told> sums = told_by_all(ranks, 0, why);
  if (const std::size_t rank = failing(sums); rank < sums.size()) {
    throw Unsupported("rank " + std::to_string(rank) + ": " + sums[rank].reason());
  }
  return found;
}

}  // namespace crossover::cuda
