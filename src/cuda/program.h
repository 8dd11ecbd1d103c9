// SPDX-License-Identifier: Apache-2.0
// A Workload on the GPU: plan.h carried out on one stream for compute and one for copies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "crossover/backend.h"
#include "kernels/optimizer.cuh"
#include "plan.h"
#include "products.h"
#include "profile.h"
#include "runtime.h"

namespace crossover::cuda {

/// Puts one launch of a step into the compute stream.
using Call = std::function<void(const Position&)>;

struct BoundCall {
  OpCategory kind;
  Call call;
};

struct BoundStep {
  std::vector<BoundCall> calls;
  std::vector<GraphExec> graphs;  ///< by staging buffer; none where the step runs eagerly
};

/// The data set where it lies on the host.
class HostData {
 public:
  HostData(std::int64_t bytes, Placement placement);
  [[nodiscard]] std::byte* at(std::int64_t offset) const { return data_ + offset; }

 private:
  std::vector<std::byte> ordinary_;
  PinnedMemory pinned_;
  std::byte* data_ = nullptr;
};

class CudaProgram : public Program {
 public:
  /// Throws Unsupported, OutOfMemory. The Workload must have been check()ed.
  CudaProgram(Workload workload, const CompileOptions& options, std::shared_ptr<Products> products);

  void upload(Id id, std::span<const std::byte> from) override;
  void download(Id id, std::span<std::byte> to) override;
  void enqueue(std::int64_t first, std::int64_t count) override;
  void wait() override { finish(); }
  [[nodiscard]] Arithmetic arithmetic() const override { return arithmetic_; }
  [[nodiscard]] std::int64_t launches() const override;
  Profile profile() override;  // program_profile.cpp

 private:
  struct Buffer {
    Event full, read;  ///< behind the copy into it, and behind the step that read it
  };

  // ---- running

  [[nodiscard]] std::int64_t runs() const {
    return static_cast<std::int64_t>(workload_.order.size());
  }
  [[nodiscard]] const Run& what(std::int64_t run) const {
    return workload_.order[static_cast<std::size_t>(run)];
  }
  [[nodiscard]] bool runs_in_place() const {
    return options_.placement == Placement::resident && options_.execution == Execution::eager;
  }

  /// The next batch is copied while a step computes. A buffer is filled once the step that read it
  /// is done, and read once it is full.
  void enqueue_overlapped(std::int64_t first, std::int64_t end);
  void fill(std::int64_t run);
  /// Brings a run's rows to a staging buffer, from wherever the data set lies.
  void stage(std::int64_t run, int buffer, cudaStream_t stream) const;
  void run_step(std::int64_t run, int buffer) const;
  static void issue(const BoundStep& step, const Position& position);
  void read_loss(std::int64_t run) const;
  void copy_loss(std::int64_t run) const;
  /// Every copy of a batch is waited for by a step, so that the compute stream ends last.
  void finish() const { CROSSOVER_CUDA_CHECK(cudaStreamSynchronize(compute_.get())); }
  void capture_graphs();
  void capture_epoch();
  StepSeconds profile_step(int index, double between_events);

  // ---- memory

  [[nodiscard]] void* address(std::int64_t offset) const {
    return static_cast<std::byte*>(memory_.get()) + offset;
  }
  template <class T>
  [[nodiscard]] T* address_as(std::int64_t offset) const {
    return static_cast<T*>(address(offset));
  }
  [[nodiscard]] std::int64_t* run_counter() const { return address_as<std::int64_t>(plan_.run); }
  void clear() const;
  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const;
  void require_copyable(Id id, std::size_t size) const;

  // ---- one call for each launch of the plan: program_calls.cpp

  /// An operand's address at a position, in the type that a kernel takes.
  template <class T>
  [[nodiscard]] auto at(const Operand& operand) const {
    return [this, operand](const Position& now) { return address_as<T>(operand.at(now)); };
  }
  [[nodiscard]] ProductOperands operands(const ProductLaunch& l, const Position& now) const;
  /// Before anything is uploaded: on zeros, and it leaves zeros behind. Throws NoneRuns.
  void choose_products();
  [[nodiscard]] Arithmetic measured_arithmetic();
  Call bind(const ProductLaunch& l);
  Call bind(const BiasActivateLaunch& l);
  Call bind(const CastLaunch& l);
  Call bind(const ActivateLaunch& l);
  Call bind(const ActivateGradLaunch& l);
  Call bind(const AddLaunch& l);
  Call bind(const ColumnSumsLaunch& l);
  Call bind(const LossLaunch& l);
  Call bind(const AdvanceLaunch& /*unused*/);
  Call bind(const SgdLaunch& l);
  Call bind(const AdamWTimeLaunch& l);
  Call bind(const AdamWLaunch& l);
  [[nodiscard]] AdamWFactors<float>* factors() const;
  [[nodiscard]] UpdateSpans update_spans(const std::vector<Span>& spans,
                                         double learning_rate) const;

  const Workload workload_;
  const CompileOptions options_;
  const std::shared_ptr<Products> products_;
  const Plan plan_;
  // Streams are destroyed first: they wait for what still uses the members before them.
  const DeviceMemory memory_;
  const HostData host_;
  const PinnedMemory host_loss_;
  std::vector<BoundStep> steps_;
  GraphExec epoch_;
  std::vector<Buffer> buffers_;
  Arithmetic arithmetic_;
  int next_filled_ = 0, next_read_ = 0;  ///< staging buffers, in turn
  const Stream compute_, copies_;
};

/// Plans without what the library then fails to run, until a program can be had. Throws
/// Unsupported, OutOfMemory.
std::unique_ptr<Program> make_program(const Workload& workload, const CompileOptions& options,
                                      std::unique_ptr<ProductLibrary> library);

}  // namespace crossover::cuda
