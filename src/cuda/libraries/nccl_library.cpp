// SPDX-License-Identifier: Apache-2.0
// NCCL by its C interface (NVIDIA, NCCL User Guide: "Creating a Communicator", "Group Calls",
// "Using NCCL with CUDA Graphs").
#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "../base/runtime.h"
#include "library.h"

namespace crossover::cuda {
namespace {

/// `comm`: of which NCCL may have more to say.
void check_nccl(ncclResult_t status, std::string_view call, ncclComm_t comm = nullptr) {
  if (status == ncclSuccess) {
    return;
  }
  const std::string more = ncclGetLastError(comm);
  throw std::runtime_error("NCCL: " + std::string(ncclGetErrorString(status)) + " in " +
                           std::string(call) + (more.empty() ? "" : ": " + more));
}

class Nccl final : public Collectives {
 public:
  explicit Nccl(Ranks& ranks) {
    static_cast<void>(nccl_version());  // where it is missing, no rank waits for another
    // Else the first sum of each kind connects ranks, and a captured one registers its buffers with
    // the others: both wait for ranks that may not be there yet, or in a timed loop.
    setenv("NCCL_RUNTIME_CONNECT", "0", /*overwrite=*/0);
    setenv("NCCL_GRAPH_REGISTER", "0", /*overwrite=*/0);
    struct {
      ncclUniqueId id;
      ncclResult_t status;
    } made{};
    if (ranks.rank() == 0) {
      made.status = ncclGetUniqueId(&made.id);
    }
    ranks.broadcast(std::as_writable_bytes(std::span(&made, 1)));
    check_nccl(made.status, "ncclGetUniqueId");
    check_nccl(ncclCommInitRank(&comm_, ranks.size(), made.id, ranks.rank()), "ncclCommInitRank");
    try {
      warm_up();
    } catch (...) {
      ncclCommAbort(comm_);
      throw;
    }
  }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  ~Nccl() override {
    if (const ncclResult_t status = ncclCommDestroy(comm_); status != ncclSuccess) {
      static_cast<void>(
          std::fprintf(stderr, "NCCL: %s in ncclCommDestroy\n", ncclGetErrorString(status)));
    }
  }

  void sum(std::span<const FloatSpan> spans, cudaStream_t stream) override {
    check_nccl(ncclGroupStart(), "ncclGroupStart", comm_);
    ncclResult_t status = ncclSuccess;
    for (std::size_t i = 0; i < spans.size() && status == ncclSuccess; ++i) {
      status =
          ncclAllReduce(spans[i].first, spans[i].first, static_cast<std::size_t>(spans[i].count),
                        ncclFloat32, ncclSum, comm_, stream);
    }
    const ncclResult_t ended = ncclGroupEnd();  // whatever was in it
    check_nccl(status, "ncclAllReduce", comm_);
    check_nccl(ended, "ncclGroupEnd", comm_);
  }

 private:
  /// Loads the library's code, which a capture does not allow everywhere, and shows that the ranks
  /// reach each other.
  void warm_up() {
    const DeviceMemory one = allocate_device(sizeof(float));
    const Stream stream = make_stream();
    CROSSOVER_CUDA_CHECK(cudaMemsetAsync(one.get(), 0, sizeof(float), stream.get()));
    const FloatSpan span{static_cast<float*>(one.get()), 1};
    sum({&span, 1}, stream.get());
    wait(stream.get());
  }

  ncclComm_t comm_ = nullptr;
};

}  // namespace

std::unique_ptr<Collectives> make_nccl(Ranks& ranks) { return std::make_unique<Nccl>(ranks); }

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) {
    return "";
  }
  constexpr int major = 10'000;  // of NCCL 2.9 and later
  constexpr int minor = 100;
  return std::to_string(version / major) + "." + std::to_string(version % major / minor) + "." +
         std::to_string(version % minor);
}

}  // namespace crossover::cuda
