// SPDX-License-Identifier: Apache-2.0
#include "streams.h"

#include <algorithm>

#include "fences.h"

namespace cuda_host {
namespace {

struct Streams {
  Registry<CUstream_st> streams;
  Registry<CUevent_st> events;
  CUstream_st unnamed;
  int made = 0;
};

Streams& all_streams() {
  static Streams only;
  return only;
}

CUevent_st* find_event(cudaEvent_t handle) {
  return all_streams().events.has(handle) ? handle : nullptr;
}

/// Puts an operation without work into a stream that is not in capture.
Pending mark(CUstream_st& stream, const std::vector<Pending>& after, const char* what) {
  stream.last = submit(std::make_shared<Work>(Work{.what = what, .run = {}, .blocks = {}}), after,
                       stream.number);
  return stream.last;
}

cudaError_t wait_in_capture(CUstream_st& stream, CUevent_st& event) {
  if (stream.capture && !event.capture) {
    return event.node ? invalidate(stream, cudaErrorStreamCaptureIsolation) : cudaSuccess;
  }
  if (!event.capture->valid || !event.capture->streams.count(event.capture->origin)) {
    return cudaErrorCapturedEvent;
  }
  if (stream.capture && stream.capture != event.capture) {
    event.capture->valid = false;
    return invalidate(stream, cudaErrorStreamCaptureMerge);
  }
  stream.capture = event.capture;
  stream.capture->streams.insert(&stream);
  for (const std::size_t tail : event.tails) {
    if (std::find(stream.tails.begin(), stream.tails.end(), tail) == stream.tails.end()) {
      stream.tails.push_back(tail);
    }
  }
  return cudaSuccess;
}

cudaError_t make_event(const char* function, cudaEvent_t* event, bool timed) {
  return call(function, [&] {
    *event = all_streams().events.make(&Live::events);
    (*event)->timed = timed;
    return cudaSuccess;
  });
}

}  // namespace

Registry<CUstream_st>& streams() { return all_streams().streams; }

CUstream_st* find_stream(cudaStream_t handle) {
  if (handle == nullptr) {
    return &all_streams().unnamed;
  }
  return all_streams().streams.has(handle) ? handle : nullptr;
}

cudaError_t invalidate(CUstream_st& stream, cudaError_t error) {
  if (stream.capture) {
    stream.capture->valid = false;
  }
  return error;
}

cudaError_t unsafe_in_capture() {
  cudaError_t error = cudaSuccess;
  for (const auto& [handle, stream] : all_streams().streams.all()) {
    if (stream->capture) {
      error = invalidate(*stream, cudaErrorStreamCaptureUnsupported);
    }
  }
  return error;
}

cudaError_t enqueue(CUstream_st& stream, Work work) {
  if (declared() != nullptr && work.run && !work.declared) {
    work.declared = *declared();
  }
  auto shared = std::make_shared<Work>(std::move(work));
  if (!stream.capture) {
    stream.last = submit(std::move(shared), {stream.last}, stream.number);
    return cudaSuccess;
  }
  if (!stream.capture->valid) {
    return cudaErrorStreamCaptureInvalidated;
  }
  auto& entries = stream.capture->graph.entries;
  entries.push_back({std::move(shared), stream.tails, nullptr});
  stream.tails = {entries.size() - 1};
  return cudaSuccess;
}

void forget_graphs();    // graphs.cpp
void forget_cublaslt();  // cublaslt_objects.cpp

void forget_streams() {
  forget_graphs();
  forget_cublaslt();
  all_streams() = Streams{};
}

}  // namespace cuda_host

using namespace cuda_host;

/// One that waits for the default stream, and is waited for, is not what src/cuda wants.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&] {
    if (flags != cudaStreamNonBlocking) {
      return cudaErrorNotSupported;  // by the emulation
    }
    *stream = all_streams().streams.make(&Live::streams);
    (*stream)->number = ++all_streams().made;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaError_t error = enter("cudaStreamDestroy");
  if (streams().has(stream) && stream->capture) {
    stream->capture->valid = false;
    stream->capture->streams.erase(stream);
  }
  const bool found = streams().destroy(stream, &Live::streams);
  return result(error != cudaSuccess || found ? error : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call("cudaStreamSynchronize", [&] {
    CUstream_st* stream = find_stream(handle);
    if (stream == nullptr) {
      return cudaErrorInvalidResourceHandle;
    }
    if (stream->capture) {
      return invalidate(*stream, cudaErrorStreamCaptureUnsupported);
    }
    run_until(stream->last);
    return state().sticky;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned /*flags*/) {
  return call("cudaStreamWaitEvent", [&] {
    CUstream_st* stream = find_stream(handle);
    if (stream == nullptr || find_event(event) == nullptr) {
      return cudaErrorInvalidResourceHandle;
    }
    if (stream->capture || event->capture) {
      return wait_in_capture(*stream, *event);
    }
    if (event->node) {
      mark(*stream, {stream->last, event->node}, "wait for an event");
    }
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return make_event("cudaEventCreate", event, true);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return make_event("cudaEventCreateWithFlags", event, (flags & cudaEventDisableTiming) == 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const cudaError_t error = enter("cudaEventDestroy");
  const bool found = all_streams().events.destroy(event, &Live::events);
  return result(error != cudaSuccess || found ? error : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  return call("cudaEventRecord", [&] {
    CUstream_st* stream = find_stream(handle);
    if (stream == nullptr || find_event(event) == nullptr) {
      return cudaErrorInvalidResourceHandle;
    }
    if (stream->capture && !stream->capture->valid) {
      return cudaErrorStreamCaptureInvalidated;
    }
    event->capture = stream->capture;
    event->tails = stream->tails;
    event->node = stream->capture ? nullptr : mark(*stream, {stream->last}, "event");
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned flags) {
  return call("cudaEventRecordWithFlags", [&] {
    CUstream_st* stream = find_stream(handle);
    if (stream == nullptr || find_event(event) == nullptr) {
      return cudaErrorInvalidResourceHandle;
    }
    if (flags != cudaEventRecordExternal || !stream->capture) {
      return cudaErrorNotSupported;  // by the emulation
    }
    // An operation of the graph: it records whenever the graph runs.
    const auto record = [event] {
      if (find_event(event) == nullptr) {
        violation("a graph records an event that is destroyed");
        return;
      }
      event->capture = nullptr;
      event->node = done_now();
    };
    return enqueue(*stream, {.what = "event", .run = record, .blocks = {}, .loops = false});
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (const cudaError_t error = enter("cudaEventElapsedTime")) {
    return result(error);
  }
  if (find_event(start) == nullptr || find_event(end) == nullptr || !start->timed || !end->timed ||
      !start->node || !end->node) {
    return result(cudaErrorInvalidResourceHandle);
  }
  if (!is_done(start->node) || !is_done(end->node)) {
    return cudaErrorNotReady;
  }
  *milliseconds = static_cast<float>((finished_at(end->node) - finished_at(start->node)) / 1e3);
  return cudaSuccess;
}
