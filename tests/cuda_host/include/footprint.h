// SPDX-License-Identifier: Apache-2.0
// Stands in for src/cuda/kernels/device/footprint.h: tells the emulation which operands a launch
// declares, and which of them it only reads.
#pragma once

#include <type_traits>
#include <vector>

#include "fences.h"
#include "plan/launches/operand.h"
#include "run/bind.h"

namespace crossover::cuda {

/// In the place of an operand that holds T, in a struct of a launch.
template <class T>
struct Declared {};

class Footprint {
 public:
  /// What it finds in the Site and the workspace is its own, as far as it is given their addresses.
  template <class Launched>
  Footprint(const Launched& launch, const Binding& binding, const Position& now)
      : binding_(binding), now_(now) {
    declare(launch);
    declare_common();
    cuda_host::declare(&ranges_);
  }

  /// Of the rows of a step.
  Footprint(const StepPlan& step, const Binding& binding) : binding_(binding) {
    for (const StagedInput& input : step.inputs) {
      add({.offset = (*binding.plan)[input.source].offset, .bytes = input.source_bytes}, false);
      add({.offset = input.staged, .bytes = input.bytes}, true);
    }
    declare_common();
    cuda_host::declare(&ranges_);
  }

  /// Of a kernel that runs a plan's steps: all of its tensors that have a place, and the rows that
  /// are in the position's staging buffer.
  Footprint(const Workload& workload, const Binding& binding, const Position& now)
      : binding_(binding), now_(now) {
    const LaunchPlan& plan = *binding.plan;
    for (const StagedInput& input : plan.steps.front().inputs) {
      add({.offset = input.staged + now.buffer * plan.buffer_bytes,
           .bytes = plan.persistent->rows_at_once * input.row_bytes},
          false);
    }
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      const Tensor& tensor = workload.tensors[i];
      add({.offset = binding.plan->tensors[i].offset, .bytes = bytes(tensor)},
          tensor.role != Role::data);
    }
    declare_common();
    cuda_host::declare(&ranges_);
  }

  Footprint(const Footprint&) = delete;
  Footprint& operator=(const Footprint&) = delete;
  ~Footprint() { cuda_host::declare(nullptr); }

 private:
  /// Becomes whatever the field is.
  struct Field {
    Footprint& of;
    const Operand& operand;
    template <class T>
    // NOLINTNEXTLINE(google-explicit-constructor): that is what it is for
    operator Declared<T>() const {
      of.add(operand, !std::is_const_v<T>);
      return {};
    }
  };
  struct Fields {
    Footprint& of;

    Field operator()(const Operand& operand) const { return {of, operand}; }
    template <template <template <class> class> class Of>
    Of<Declared> operator()(const Of<Planned>& planned) const {
      return with_turned_fields<Of<Declared>>(planned, *this);
    }
    template <template <template <class> class> class Span>
    CalledSpans<Span<Declared>> operator()(const std::vector<Span<Planned>>& spans) const {
      for (const Span<Planned>& span : spans) {
        static_cast<void>((*this)(span));
      }
      return {};
    }
    template <class Value>
    Value operator()(const Value& value) const {
      return value;
    }
  };

  template <class Launched>
  void declare(const Launched& launch) {
    static_cast<void>(Fields{*this}(launch));
  }
  // Of these the form says what is written.
  void declare(const ProductLaunch& launch) {
    add(launch.a, false);
    add(launch.b, false);
    add(launch.d, true);
    add(launch.vector, writes_vector(launch.form.epilogue));
    add(launch.mask, writes_mask(launch.form.epilogue));
  }
  void declare(const ConvolutionLaunch& launch) {
    add(launch.x, launch.form.pass == ConvolutionPass::dx);
    add(launch.w, launch.form.pass == ConvolutionPass::dw);
    add(launch.y, launch.form.pass == ConvolutionPass::forward);
    add(launch.bias, false);
  }
  void declare(const SdpaLaunch& launch) {
    add(launch.qkv, false);
    add(launch.y, !launch.form.gradient);
    add(launch.log_sums, !launch.form.gradient);
    add(launch.dy, false);
    add(launch.dqkv, true);
  }
  void declare(const SumLaunch& launch) {
    for (const SumLaunch::Span& span : launch.spans) {
      add(span.first, true);
    }
  }

  void declare_common() {
    const LaunchPlan& plan = *binding_.plan;
    const auto add_placed = [this](std::int64_t offset, std::int64_t bytes, bool written) {
      if (offset > 0) {  // in front of everything else are parameters
        add({.offset = offset, .bytes = bytes}, written);
      }
    };
    add_placed(plan.row_losses, plan.factors - plan.row_losses, true);
    add_placed(plan.factors, factors_bytes, true);
    add_placed(plan.run, sizeof(std::int64_t), true);
    add_placed(plan.order, plan.runs * std::int64_t{sizeof(OrderedRun)}, false);
    const auto workspace = static_cast<std::size_t>(plan.workspace_bytes);
    if (workspace > 0) {  // of all networks
      ranges_.push_back({"", binding_.address(binding_.workspace), workspace, true});
    }
    if (plan.persistent) {
      add_placed(plan.persistent->workspace, plan.persistent->bytes, true);
    }
  }

  void add(const Operand& operand, bool written) {
    if (operand.exists() && operand.bytes > 0) {
      const Networks& networks = binding_.plan->networks;
      ranges_.push_back(
          {"", binding_.address(operand, now_).at, static_cast<std::size_t>(operand.bytes), written,
           static_cast<std::size_t>(networks.count), static_cast<std::size_t>(networks.stride)});
    }
  }

  const Binding& binding_;
  const Position now_;
  std::vector<cuda_host::Range> ranges_;
};

}  // namespace crossover::cuda
