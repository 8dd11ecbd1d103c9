// SPDX-License-Identifier: Apache-2.0
// Streams, events and what a stream in capture records.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "queue.h"
#include "state.h"

struct CUgraphNode_st {
  std::size_t entry = 0;
};

namespace cuda_host {
struct Loop;
}

/// A list of operations, each behind some before it.
struct CUgraph_st {
  struct Entry {
    std::shared_ptr<const cuda_host::Work> work;  ///< of a loop: when the graph is made ready
    std::vector<std::size_t> after;
    std::shared_ptr<cuda_host::Loop> loop;
  };
  std::vector<Entry> entries;
  std::vector<std::shared_ptr<CUgraphNode_st>> nodes;  ///< those that have a handle
  std::weak_ptr<int> ready;  ///< of a graph with loops: alive while it is made ready
};

struct CUgraphExec_st {
  CUgraph_st graph;
  std::shared_ptr<int> only;  ///< keeps the graph's `ready`
  cuda_host::Pending last;    ///< end of its last launch
};

namespace cuda_host {

struct Capture {
  CUgraph_st graph;
  cudaGraph_t into = nullptr;  ///< the graph that it becomes; null: one of its own
  cudaStream_t origin = nullptr;
  bool valid = true;
  std::set<cudaStream_t> streams;  ///< that have joined
};

}  // namespace cuda_host

struct CUstream_st {
  int number = 0;
  cuda_host::Pending last;
  std::shared_ptr<cuda_host::Capture> capture;
  std::vector<std::size_t> tails;  ///< in capture: what the next operation waits for
};

struct CUevent_st {
  bool timed = true;
  cuda_host::Pending node;                      ///< null: never recorded
  std::shared_ptr<cuda_host::Capture> capture;  ///< where it was last recorded in one
  std::vector<std::size_t> tails;
};

namespace cuda_host {

/// All that were made and not destroyed.
template <class T>
class Registry {
 public:
  T* make(std::int64_t Live::*counter) {
    auto owned = std::make_unique<T>();
    T* handle = owned.get();
    owned_[handle] = std::move(owned);
    ++(state().live.*counter);
    return handle;
  }
  [[nodiscard]] bool has(T* handle) const { return owned_.count(handle) != 0; }
  bool destroy(T* handle, std::int64_t Live::*counter) {
    if (owned_.erase(handle) == 0) {
      return false;
    }
    --(state().live.*counter);
    return true;
  }
  [[nodiscard]] const std::map<T*, std::unique_ptr<T>>& all() const { return owned_; }

 private:
  std::map<T*, std::unique_ptr<T>> owned_;
};

Registry<CUstream_st>& streams();

/// The stream behind a handle, for null one that others do not wait for; null where there is none.
CUstream_st* find_stream(cudaStream_t handle);

/// The graph behind a handle, or the body of a loop; null where there is none.
CUgraph_st* find_graph(cudaGraph_t handle);

/// Puts it into the stream, or records it where the stream is in capture.
cudaError_t enqueue(CUstream_st& stream, Work work);

/// The error of a call that must not happen during some capture: it also ends the capture.
cudaError_t unsafe_in_capture();

/// Ends the capture that the stream is in, if it is.
cudaError_t invalidate(CUstream_st& stream, cudaError_t error);

void forget_streams();

}  // namespace cuda_host
