// SPDX-License-Identifier: Apache-2.0
// A GPU's probes. The wall clock's time of run() includes the wait; device_seconds() is between two
// events around the same work.
#include "probes.h"

#include <string>
#include <utility>

#include "../../step/overload.h"
#include "../libraries/library.h"
#include "crossover/backend.h"
#include "probe_kernels.cuh"

namespace crossover::cuda {
namespace {

/// Issues, waits, and takes the time by events.
class InStream : public Probe {
 public:
  explicit InStream(std::unique_ptr<Piece> piece) : piece_(std::move(piece)) {
    piece_->prepare(stream_.get());
    wait(stream_.get());
  }

  void run() override {
    piece_->issue(stream_.get());
    wait(stream_.get());
  }

  void check() override { piece_->check(stream_.get()); }

  double device_seconds() override {
    CROSSOVER_CUDA_CHECK(cudaEventRecord(start_.get(), stream_.get()));
    piece_->issue(stream_.get());
    CROSSOVER_CUDA_CHECK(cudaEventRecord(end_.get(), stream_.get()));
    wait(stream_.get());
    float milliseconds = 0;
    CROSSOVER_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start_.get(), end_.get()));
    return static_cast<double>(milliseconds) / 1e3;
  }

 private:
  std::unique_ptr<Piece> piece_;
  Event start_ = make_timed_event(), end_ = make_timed_event();
  Stream stream_ = make_stream();  // destroyed first: it waits for what uses the members before it
};

class EmptyLaunches : public Piece {
 public:
  explicit EmptyLaunches(const LaunchProbe& spec) : launches_(spec.launches) {}

  void issue(cudaStream_t stream) override {
    for (int launch = 0; launch < launches_; ++launch) {
      empty(stream);
    }
  }

 private:
  int launches_;
};

class GraphNodes : public Piece {
 public:
  explicit GraphNodes(const GraphNodeProbe& spec) : nodes_(spec.nodes) {}

  void prepare(cudaStream_t stream) override {
    graph_ = capture(stream, [&] {
      for (int node = 0; node < nodes_; ++node) {
        empty(stream);
      }
    });
  }
  void issue(cudaStream_t stream) override {
    CROSSOVER_CUDA_CHECK(cudaGraphLaunch(graph_.get(), stream));
  }

 private:
  int nodes_;
  GraphExec graph_;
};

class Synchronize : public Probe {
 public:
  void run() override { wait(stream_.get()); }
  void check() override {}

 private:
  Stream stream_ = make_stream();
};

std::unique_ptr<Probe> in_stream(std::unique_ptr<Piece> piece) {
  return std::make_unique<InStream>(std::move(piece));
}

}  // namespace

std::unique_ptr<Probe> make_probe(const ProbeSpec& spec, const cudaDeviceProp& device) {
  crossover::check(spec);
  return std::visit(
      Overload{[](const CopyProbe& probe) -> std::unique_ptr<Probe> {
                 if (probe.direction == Direction::host_to_host) {
                   throw Unsupported("copies within the host's memory are the CPU's");
                 }
                 return in_stream(make_piece(probe));
               },
               [](const FmaProbe& probe) -> std::unique_ptr<Probe> {
                 if (probe.precision != Precision::f32) {
                   throw Unsupported(
                       "multiply-adds outside of the matrix units are measured in "
                       "f32, not in " +
                       to_string(probe.precision));
                 }
                 return in_stream(make_piece(probe));
               },
               [&](const MatrixProbe& probe) -> std::unique_ptr<Probe> {
                 if (const std::string missing = missing_for_products(device, probe.precision);
                     !missing.empty()) {
                   throw Unsupported(missing);
                 }
                 return in_stream(make_piece(probe));
               },
               [](const TriadProbe& probe) -> std::unique_ptr<Probe> {
                 return in_stream(make_piece(probe));
               },
               [](const LaunchProbe& probe) -> std::unique_ptr<Probe> {
                 return in_stream(std::make_unique<EmptyLaunches>(probe));
               },
               [](const GraphNodeProbe& probe) -> std::unique_ptr<Probe> {
                 return in_stream(std::make_unique<GraphNodes>(probe));
               },
               [](const SynchronizeProbe& /*probe*/) -> std::unique_ptr<Probe> {
                 return std::make_unique<Synchronize>();
               },
               [](const ForkJoinProbe& /*probe*/) -> std::unique_ptr<Probe> {
                 throw Unsupported("threads of the host are the CPU's");
               }},
      spec);
}

}  // namespace crossover::cuda
