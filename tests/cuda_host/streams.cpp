// SPDX-License-Identifier: Apache-2.0
#include "streams.h"

#include <algorithm>

#include "fences.h"

namespace cuda_host {
namespace {

struct Streams {
  Registry<CUstream_st> streams;
  Registry<CUevent_st> events;
  CUstream_st legacy;
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

std::vector<Pending> before_next(const CUstream_st& stream) {
  std::vector<Pending> after{stream.last};
  if (&stream == &all_streams().legacy) {
    for (const auto& [handle, other] : all_streams().streams.all()) {
      if (other->blocking) {
        after.push_back(other->last);
      }
    }
  } else if (stream.blocking) {
    after.push_back(all_streams().legacy.last);
  }
  return after;
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
  if (&stream == &all_streams().legacy) {
    event.capture->valid = false;
    return cudaErrorStreamCaptureImplicit;
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

cudaError_t make_stream(const char* function, cudaStream_t* stream, bool blocking) {
  if (const cudaError_t error = enter(function)) {
    return result(error);
  }
  *stream = all_streams().streams.make(&Live::streams);
  (*stream)->blocking = blocking;
  (*stream)->number = ++all_streams().made;
  return cudaSuccess;
}

cudaError_t make_event(const char* function, cudaEvent_t* event, bool timed) {
  if (const cudaError_t error = enter(function)) {
    return result(error);
  }
  *event = all_streams().events.make(&Live::events);
  (*event)->timed = timed;
  return cudaSuccess;
}

}  // namespace

Registry<CUstream_st>& streams() { return all_streams().streams; }

CUstream_st* find_stream(cudaStream_t handle) {
  if (handle == nullptr) {
    return &all_streams().legacy;
  }
  return all_streams().streams.has(handle) ? handle : nullptr;
}

cudaError_t invalidate(CUstream_st& stream, cudaError_t error) {
  if (stream.capture) {
    stream.capture->valid = false;
  }
  return error;
}

cudaError_t unsafe_in_capture(bool legacy) {
  cudaError_t error = cudaSuccess;
  for (const auto& [handle, stream] : all_streams().streams.all()) {
    if (!stream->capture) {
      continue;
    }
    if (stream->capture->mode != cudaStreamCaptureModeRelaxed) {
      error = invalidate(*stream, cudaErrorStreamCaptureUnsupported);
    } else if (legacy && stream->blocking) {
      error = invalidate(*stream, cudaErrorStreamCaptureImplicit);
    }
  }
  return error;
}

cudaError_t enqueue(CUstream_st& stream, Work work) {
  if (&stream == &all_streams().legacy) {
    if (const cudaError_t error = unsafe_in_capture(true)) {
      return error;
    }
  }
  if (declared() != nullptr && work.run && !work.declared) {
    work.declared = *declared();
  }
  auto shared = std::make_shared<Work>(std::move(work));
  if (!stream.capture) {
    stream.last = submit(std::move(shared), before_next(stream), stream.number);
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

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return make_stream("cudaStreamCreate", stream, true);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return make_stream("cudaStreamCreateWithFlags", stream, (flags & cudaStreamNonBlocking) == 0);
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
  if (const cudaError_t error = enter("cudaStreamSynchronize")) {
    return result(error);
  }
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) {
    return result(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture) {
    return result(invalidate(*stream, cudaErrorStreamCaptureUnsupported));
  }
  run_until(stream->last);
  return result(state().sticky);
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  if (const cudaError_t error = enter("cudaStreamQuery")) {
    return result(error);
  }
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) {
    return result(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture) {
    return result(invalidate(*stream, cudaErrorStreamCaptureUnsupported));
  }
  return is_done(stream->last) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = enter("cudaDeviceSynchronize")) {
    return result(error);
  }
  if (const cudaError_t error = unsafe_in_capture(true)) {
    return result(error);
  }
  run_everything();
  return result(state().sticky);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned /*flags*/) {
  if (const cudaError_t error = enter("cudaStreamWaitEvent")) {
    return result(error);
  }
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr || find_event(event) == nullptr) {
    return result(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture || event->capture) {
    return result(wait_in_capture(*stream, *event));
  }
  if (event->node) {
    std::vector<Pending> after = before_next(*stream);
    after.push_back(event->node);
    mark(*stream, after, "wait for an event");
  }
  return cudaSuccess;
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
  if (const cudaError_t error = enter("cudaEventRecord")) {
    return result(error);
  }
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr || find_event(event) == nullptr) {
    return result(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture && !stream->capture->valid) {
    return result(cudaErrorStreamCaptureInvalidated);
  }
  event->capture = stream->capture;
  event->tails = stream->tails;
  event->node = stream->capture ? nullptr : mark(*stream, before_next(*stream), "event");
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned flags) {
  CUstream_st* stream = find_stream(handle);
  if (flags != cudaEventRecordExternal || stream == nullptr || !stream->capture) {
    return flags > cudaEventRecordExternal ? result(cudaErrorInvalidValue)
                                           : cudaEventRecord(event, handle);
  }
  if (const cudaError_t error = enter("cudaEventRecordWithFlags")) {
    return result(error);
  }
  if (find_event(event) == nullptr) {
    return result(cudaErrorInvalidResourceHandle);
  }
  // An operation of the graph: it records whenever the graph runs.
  return result(enqueue(*stream, {.what = "event",
                                  .run =
                                      [event] {
                                        if (find_event(event) == nullptr) {
                                          violation("a graph records an event that is destroyed");
                                          return;
                                        }
                                        event->capture = nullptr;
                                        event->node = done_now();
                                      },
                                  .blocks = {},
                                  .loops = false}));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = enter("cudaEventSynchronize")) {
    return result(error);
  }
  if (find_event(event) == nullptr) {
    return result(cudaErrorInvalidResourceHandle);
  }
  if (event->capture) {
    event->capture->valid = false;
    return result(cudaErrorCapturedEvent);
  }
  run_until(event->node);
  return result(state().sticky);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = enter("cudaEventQuery")) {
    return result(error);
  }
  if (find_event(event) == nullptr) {
    return result(cudaErrorInvalidResourceHandle);
  }
  if (event->capture) {
    event->capture->valid = false;
    return result(cudaErrorCapturedEvent);
  }
  return is_done(event->node) ? cudaSuccess : cudaErrorNotReady;
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
