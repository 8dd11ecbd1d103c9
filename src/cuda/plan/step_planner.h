// SPDX-License-Identifier: Apache-2.0
// One step in the making: what an operation's rule may ask, and where it puts what it decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crossover/step.h"
#include "forms.h"
#include "launches/launch.h"
#include "plan.h"
#include "tensor_places.h"

namespace crossover::cuda {

// ---- A layer's products, and which epilogues of theirs take over what other operations of the
// step would do: ReLU masks and sums for biases.

class StepPlanner;

/// What the products of one operation do besides.
struct LinearFusion {
  bool writes_mask = false;            ///< Linear
  Operand mask;                        ///< where it writes it
  std::optional<std::size_t> mask_of;  ///< LinearGrad: the Linear whose mask dx's product applies
  std::optional<std::size_t>
      bias_sum_for;                 ///< LinearGrad: the one whose bias gradient dx's product sums
  bool bias_sum_elsewhere = false;  ///< LinearGrad: another product sums its bias gradient
};

/// For each operation of the step.
std::vector<LinearFusion> choose_linear_fusions(const StepPlanner& step);

// ---- The step

/// What the libraries have.
struct Offers {
  Supports products;
  SupportsConvolution convolutions;
  SupportsSdpa sdpas;
};

class StepPlanner {
 public:
  /// The step's scratch memory begins at `scratch`. Everything else must outlive this.
  StepPlanner(const Workload& workload, int step, const TensorPlaces& places, Offers offers,
              std::int64_t scratch);

  /// Once: the rules of all operations, in order.
  StepPlan plan();
  [[nodiscard]] std::int64_t scratch_end() const { return scratch_end_; }

  // ---- the step

  [[nodiscard]] const std::vector<Op>& operations() const { return ops_; }
  /// The number of the operation whose rule is asked.
  [[nodiscard]] std::size_t at() const { return at_; }
  /// Whether no later operation of the step is of the same kind.
  [[nodiscard]] bool is_last_of_its_kind() const;
  [[nodiscard]] LinearFusion& fusion(std::size_t operation) { return fusions_[operation]; }

  // ---- its tensors

  [[nodiscard]] const Shape& shape(Id id) const { return workload_[id].shape; }
  [[nodiscard]] Type type(Id id) const { return workload_[id].type; }
  [[nodiscard]] std::int64_t count(Id id) const { return elements(shape(id)); }
  [[nodiscard]] std::int64_t rows(Id id) const { return leading(shape(id)); }
  [[nodiscard]] Operand operand(Id id) const { return places_.operand(id); }
  [[nodiscard]] std::int64_t parameter_alignment() const { return places_.parameter_alignment(); }
  [[nodiscard]] Operand copy_of(Id parameter) const { return places_.copy_of(parameter); }
  [[nodiscard]] Operand kept(Id cast) const { return places_.kept(cast); }
  [[nodiscard]] std::int64_t alignment(const Operand& operand) const {
    return places_.alignment(operand, step_);
  }
  [[nodiscard]] std::int64_t alignment(Id id) const { return alignment(operand(id)); }
  /// Whether there is one, at the same address in every run. A view's address moves.
  [[nodiscard]] bool stays(Id id) const { return id != none && !operand(id).is_view(); }

  [[nodiscard]] Layout layout(Id id) const { return places_.layout(id); }
  [[nodiscard]] Arrangement arrangement(Id id) const {
    return arrangement_of(layout(id), shape(id));
  }
  [[nodiscard]] ChannelView by_channel(Id image) const;

  // ---- sums over ranks

  /// Whether they go on beside the launches behind them.
  [[nodiscard]] bool overlaps_sums() const { return places_.overlaps_sums(); }

  // ---- the libraries

  [[nodiscard]] bool supports(const ProductForm& form) const { return offers_.products(form); }
  [[nodiscard]] bool supports(const ConvolutionForm& form) const {
    return offers_.convolutions(form);
  }
  [[nodiscard]] bool supports(const SdpaForm& form) const { return offers_.sdpas(form); }
  /// The form itself. Throws Unsupported where the library has no algorithm for it.
  template <class Form>
  [[nodiscard]] const Form& require(const Form& form) const {
    if (!supports(form)) {
      throw Unsupported(std::string(Form::library) + " has no algorithm for " + to_string(form));
    }
    return form;
  }

  // ---- decisions

  void emit(Launch launch) { planned_.launches.push_back(std::move(launch)); }
  void emit_product(const ProductForm& form, Id a, Id b, Id d, Operand vector = {},
                    Operand mask = {}) {
    emit(ProductLaunch{form, operand(a), operand(b), operand(d), vector, mask});
  }
  /// The sums of a matrix over its rows: of a tall one in two launches, so that few columns occupy
  /// a whole GPU.
  void emit_column_sums(const Operand& matrix, const Operand& sums, std::int64_t rows,
                        std::int64_t columns, bool accumulate = false);
  /// sums [channels] of what each channel of the images holds.
  void emit_channel_sums(Id images, const Operand& sums);
  /// Two parts of the operation, of which neither needs or overwrites what the other makes.
  void emit_side_by_side(const std::function<void()>& first, const std::function<void()>& second);
  /// What was emitted last, which a rule may still change; null at first, and where that belongs to
  /// another part of those that run side by side.
  [[nodiscard]] Launch* last_launch() {
    return planned_.launches.size() == border_ ? nullptr : &planned_.launches.back();
  }
  /// Memory that the step alone uses: steps run one after another and share theirs.
  Operand scratch(std::int64_t bytes);

 private:
  void collect_inputs();
  void end_sums_before(const Op& op);

  const Workload& workload_;
  int step_;
  const std::vector<Op>& ops_;
  const TensorPlaces& places_;
  Offers offers_;
  std::int64_t scratch_end_;
  std::size_t at_ = 0;
  std::size_t border_ = 0;             ///< launches that nothing later may change
  std::vector<LinearFusion> fusions_;  ///< by operation
  std::set<Id> under_way_;             ///< sums over ranks that nothing has waited for yet
  StepPlan planned_;
};

}  // namespace crossover::cuda
