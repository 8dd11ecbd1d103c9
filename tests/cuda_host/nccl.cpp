// SPDX-License-Identifier: Apache-2.0
// NCCL's sums: ranks are processes on this machine, each with an emulated GPU. A group is one
// operation, which waits for those of the other ranks.
#include <nccl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "numbers.h"
#include "ranges.h"
#include "shared_meeting.h"
#include "streams.h"

struct ncclComm {
  std::shared_ptr<cuda_host::SharedMeeting> meeting;
  std::int64_t sums = 0;  ///< that the device has made
};

namespace cuda_host {
namespace {

struct Nccl {
  Registry<ncclComm> comms;
  int depth = 0;  ///< of groups
  struct Part {
    float* at;
    std::size_t count;
  };
  std::vector<Part> parts;  ///< of the group so far
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

Nccl& nccl() {
  static Nccl only;
  return only;
}

/// At the start of every call.
ncclResult_t enter_nccl(const char* function) {
  if (enter(function) != cudaSuccess) {
    return ncclUnhandledCudaError;
  }
  return state().device.failing_nccl == function ? ncclSystemError : ncclSuccess;
}

/// What ranks must have in common before they sum.
struct Header {
  std::int64_t number;
  std::size_t count;
};

CUDA_HOST_CHECKED_BEFORE void add_up(SharedMeeting& meeting, std::int64_t number,
                                     const Nccl::Part& part) {
  constexpr std::size_t at_once = (SharedMeeting::most_bytes - sizeof(Header)) / sizeof(float);
  for (std::size_t first = 0; first < part.count; first += at_once) {
    const std::size_t count = std::min(at_once, part.count - first);
    const Header own{number, part.count};
    std::vector<std::byte> sent(sizeof own + count * sizeof(float));
    std::memcpy(sent.data(), &own, sizeof own);
    std::memcpy(sent.data() + sizeof own, part.at + first, count * sizeof(float));
    std::vector<float> sums(count, 0.0F);
    meeting.with_all(sent, [&](const std::vector<const std::byte*>& all) {
      std::vector<float> values(count);
      for (const std::byte* one : all) {
        if (std::memcmp(one, &own, sizeof own) != 0) {
          violation("ranks sum different values at once");
          return;
        }
        std::memcpy(values.data(), one + sizeof own, count * sizeof(float));
        for (std::size_t i = 0; i < count; ++i) {
          sums[i] += values[i];
        }
      }
    });
    std::memcpy(part.at + first, sums.data(), count * sizeof(float));
  }
}

ncclResult_t submit_group() {
  Nccl& all = nccl();
  const std::vector<Nccl::Part> parts = std::exchange(all.parts, {});
  if (parts.empty()) {
    return ncclSuccess;
  }
  CUstream_st* stream = find_stream(all.stream);
  if (stream->capture != nullptr && state().device.nccl_refuses_capture) {
    static_cast<void>(invalidate(*stream, cudaErrorStreamCaptureUnsupported));
    return ncclUnhandledCudaError;
  }
  std::vector<Range> ranges;
  std::vector<const void*> addresses;
  ranges.reserve(parts.size());
  addresses.reserve(parts.size());
  for (const Nccl::Part& part : parts) {
    ranges.push_back({"what is summed", part.at, part.count * sizeof(float), true});
    addresses.push_back(part.at);
  }
  if (const std::string what = fault(ranges); !what.empty()) {
    violation("over ranks, " + what);
    fail_context(cudaErrorIllegalAddress);
    return ncclSuccess;  // as on a device: a later call tells
  }
  Work work{.what = "sum over ranks", .run = {}, .blocks = blocks_of(addresses), .loops = false};
  work.run = [parts, comm = all.comm] {
    if (!nccl().comms.has(comm)) {
      violation("a sum over ranks whose communicator is destroyed");
      return;
    }
    for (const Nccl::Part& part : parts) {
      add_up(*comm->meeting, comm->sums++, part);
      if (part.count > 1) {  // one is a meeting
        *part.at += state().device.astray_sums;
      }
    }
  };
  return enqueue(*stream, std::move(work)) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t release(ncclComm_t comm) {
  return nccl().comms.destroy(comm, &Live::communicators) ? ncclSuccess : ncclInvalidArgument;
}

}  // namespace
}  // namespace cuda_host

using namespace cuda_host;

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  SharedMeeting::new_name().copy(id->internal, sizeof id->internal - 1);
  return enter_nccl("ncclGetUniqueId");
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  const ncclResult_t status = enter_nccl("ncclCommInitRank");
  auto meeting = std::make_shared<SharedMeeting>(id.internal, rank, ranks);
  if (status != ncclSuccess) {
    return status;
  }
  *comm = nccl().comms.make(&Live::communicators);
  (*comm)->meeting = std::move(meeting);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return release(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return release(comm); }

const char* ncclGetErrorString(ncclResult_t result) {
  constexpr std::array texts{"no error",       "unhandled cuda error", "unhandled system error",
                             "internal error", "invalid argument",     "invalid usage"};
  const auto number = static_cast<std::size_t>(result);
  return number < texts.size() ? texts.at(number) : "unknown result code";
}

const char* ncclGetLastError(ncclComm_t /*comm*/) {
  return state().device.failing_nccl.empty() ? "" : "made up for a test";
}

ncclResult_t ncclGroupStart() {
  ++nccl().depth;
  return enter_nccl("ncclGroupStart");
}

ncclResult_t ncclGroupEnd() {
  if (nccl().depth == 0) {
    return ncclInvalidUsage;
  }
  const ncclResult_t status = enter_nccl("ncclGroupEnd");
  if (--nccl().depth > 0 || status != ncclSuccess) {
    return status;
  }
  return submit_group();
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t /*type*/,
                           ncclRedOp_t /*op*/, ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t status = enter_nccl("ncclAllReduce")) {
    return status;
  }
  Nccl& all = nccl();
  const bool another = !all.parts.empty() && (all.comm != comm || all.stream != stream);
  if (!all.comms.has(comm) || find_stream(stream) == nullptr || from != to || another) {
    return ncclInvalidArgument;  // the last two by the emulation
  }
  all.comm = comm;
  all.stream = stream;
  all.parts.push_back({static_cast<float*>(to), count});
  return all.depth > 0 ? ncclSuccess : submit_group();
}
