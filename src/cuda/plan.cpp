// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "../step/overload.h"
#include "crossover/memory.h"

namespace crossover::cuda {
namespace {

constexpr std::int64_t block_alignment = 256;  ///< of what is put behind the tensors

std::int64_t rounded_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

bool contains(const std::vector<Id>& ids, Id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool touches(const Op& op, Id id) {
  const Operands used = operands(op);
  return contains(used.reads, id) || contains(used.writes, id);
}

/// What the epilogues of one step take over from other operations.
struct Fusion {
  std::optional<std::size_t> mask_of;  ///< LinearGrad: the Linear whose mask it applies
  std::optional<std::size_t>
      bias_sum_for;                 ///< LinearGrad: the one whose bias gradient dx's product sums
  bool writes_mask = false;         ///< Linear
  bool bias_sum_elsewhere = false;  ///< LinearGrad: another product sums its bias gradient
};

class Planner {
 public:
  Planner(const Workload& workload, const CompileOptions& options, const Supports& supports)
      : workload_(workload), options_(options), supports_(supports) {}

  Plan run() {
    place_tensors();
    place_scratch();
    for (std::size_t s = 0; s < workload_.steps.size(); ++s) {
      plan_step(static_cast<int>(s));
    }
    plan_.run = reserve(static_cast<std::int64_t>(sizeof(std::int64_t)));
    plan_.workspace_bytes = has_products_ ? workspace_for_products : 0;
    plan_.workspace = reserve(plan_.workspace_bytes);
    return std::move(plan_);
  }

 private:
  // ---- memory ---------------------------------------------------------------------------------

  [[nodiscard]] bool resident() const { return options_.placement == Placement::resident; }
  [[nodiscard]] bool reads_in_place() const {
    return resident() && options_.execution != Execution::graph;
  }
  [[nodiscard]] bool is_staged() const {
    return !resident() || options_.execution != Execution::eager;
  }

  std::int64_t reserve(std::int64_t bytes) {
    const std::int64_t at = rounded_up(plan_.bytes, block_alignment);
    plan_.bytes = at + bytes;
    return at;
  }

  void place_tensors() {
    plan_.buffers = !is_staged() ? 0 : options_.placement == Placement::pinned_async ? 2 : 1;
    const StreamedMemoryPlan streamed = plan_streamed_memory(workload_, plan_.buffers);
    staged_.assign(workload_.tensors.size(), -1);
    plan_.host_offset.assign(workload_.tensors.size(), -1);
    plan_.buffer_bytes = streamed.input_bytes;
    std::int64_t inputs = 0;
    if (resident()) {
      const MemoryPlan memory = plan_memory(workload_);
      plan_.offset = memory.offset;
      plan_.bytes = memory.bytes;
      inputs = reserve(plan_.buffers * streamed.input_bytes);
    } else {
      plan_.offset = streamed.plan.offset;
      plan_.bytes = streamed.plan.bytes;
    }
    for (std::size_t i = 0; i < workload_.tensors.size(); ++i) {
      const Tensor& tensor = workload_.tensors[i];
      if (tensor.role == Role::input) {
        plan_.offset[i] = -1;
        if (is_staged()) {
          staged_[i] = inputs + streamed.plan.offset[i];
        }
      } else if (tensor.role == Role::data && !resident()) {
        plan_.host_offset[i] = plan_.host_bytes;
        plan_.host_bytes += rounded_up(bytes(tensor), MemoryPlan::alignment);
      } else if (tensor.role == Role::loss && plan_.loss == none) {
        plan_.loss = static_cast<Id>(i);
      }
    }
    row_gcd_.assign(workload_.steps.size(), 0);
    for (const Run& run : workload_.order) {
      std::int64_t& gcd = row_gcd_[static_cast<std::size_t>(run.step)];
      gcd = std::gcd(gcd, run.first_row);
    }
  }

  /// Shared by all steps: they run one after another.
  void place_scratch() {
    std::int64_t rows = 0;
    for (const Step& step : workload_.steps) {
      for (const Op& op : step.ops) {
        if (const auto* loss = std::get_if<SoftmaxCrossEntropy>(&op)) {
          rows = std::max(rows, workload_[loss->logits].shape[0]);
          has_loss_ = true;
        }
      }
    }
    plan_.row_losses = reserve(rows * static_cast<std::int64_t>(sizeof(float)));
    plan_.factors = reserve(factors_bytes);
    scratch_ = rounded_up(plan_.bytes, block_alignment);
  }

  [[nodiscard]] Operand operand(Id id) const {
    if (id == none) {
      return {};
    }
    const Tensor& tensor = workload_[id];
    if (tensor.role != Role::input) {
      return {.offset = plan_.offset[static_cast<std::size_t>(id)], .type = tensor.type};
    }
    Operand view{.staged = staged_[static_cast<std::size_t>(id)],
                 .buffer_bytes = plan_.buffer_bytes,
                 .type = tensor.type};
    if (resident()) {
      view.offset = plan_.offset[static_cast<std::size_t>(tensor.source)];
      view.row_bytes = bytes(tensor) / tensor.shape[0];
    }
    return view;
  }

  /// The largest power of two that divides every address at which the operand will lie.
  [[nodiscard]] std::int64_t alignment(const Operand& operand) const {
    std::int64_t divided = MemoryPlan::alignment;
    if (operand.staged >= 0) {
      divided |= operand.staged | operand.buffer_bytes;
    }
    if (!operand.is_view()) {
      divided |= operand.offset;
    } else if (reads_in_place()) {
      divided |= operand.offset | (operand.row_bytes * row_gcd_[static_cast<std::size_t>(step_)]);
    }
    return divided & -divided;
  }

  // ---- steps ----------------------------------------------------------------------------------

  [[nodiscard]] std::int64_t count(Id id) const { return elements(workload_[id].shape); }
  [[nodiscard]] std::int64_t rows(Id id) const { return leading(workload_[id].shape); }
  [[nodiscard]] Type type(Id id) const { return workload_[id].type; }

  void plan_step(int index) {
    step_ = index;
    ops_ = &workload_.steps[static_cast<std::size_t>(index)].ops;
    plan_.steps.emplace_back();
    mask_at_.clear();
    scratch_end_ = scratch_;
    choose_fusions();
    last_loss_.reset();
    for (std::size_t i = 0; i < ops_->size(); ++i) {
      if (std::holds_alternative<SoftmaxCrossEntropy>((*ops_)[i])) {
        last_loss_ = i;
      }
    }
    for (at_ = 0; at_ < ops_->size(); ++at_) {
      std::visit([this](const auto& op) { plan_op(op); }, (*ops_)[at_]);
    }
    if (has_loss_ && !last_loss_) {
      emit(AdvanceLaunch{});
    }
    plan_.bytes = std::max(plan_.bytes, scratch_end_);
    if (is_staged()) {
      collect_inputs();
    }
  }

  void collect_inputs() {
    std::vector<Id> views;
    for (const Op& op : *ops_) {
      for (const Id id : operands(op).reads) {
        if (workload_[id].role == Role::input && !contains(views, id)) {
          views.push_back(id);
        }
      }
    }
    for (const Id id : views) {
      const Tensor& view = workload_[id];
      plan_.steps.back().inputs.push_back({.source = view.source,
                                           .row_bytes = bytes(view) / view.shape[0],
                                           .bytes = bytes(view),
                                           .staged = staged_[static_cast<std::size_t>(id)]});
    }
  }

  void emit(Launch launch) { plan_.steps.back().launches.push_back(std::move(launch)); }

  [[nodiscard]] const Op& op(std::size_t i) const { return (*ops_)[i]; }

  // ---- forms of the three products of a layer -------------------------------------------------

  /// yT [out, batch] = w [out, in] xT [in, batch].
  [[nodiscard]] ProductForm forward_form(const Linear& l, Epilogue epilogue) const {
    return {.m = workload_[l.w].shape[0],
            .n = rows(l.x),
            .k = workload_[l.w].shape[1],
            .transpose_a = true,
            .epilogue = epilogue,
            .alignment_a = alignment(operand(l.w)),
            .alignment_b = alignment(operand(l.x)),
            .alignment_d = alignment(operand(l.y)),
            .factors = type(l.x),
            .result = type(l.y)};
  }

  /// dwT [in, out] = xT [in, batch] dy [batch, out].
  [[nodiscard]] ProductForm dw_form(const LinearGrad& g, Epilogue epilogue) const {
    return {.m = workload_[g.w].shape[1],
            .n = workload_[g.w].shape[0],
            .k = rows(g.x),
            .transpose_b = true,
            .accumulate = g.accumulate,
            .epilogue = epilogue,
            .alignment_a = alignment(operand(g.x)),
            .alignment_b = alignment(operand(g.dy)),
            .alignment_d = alignment(operand(g.dw)),
            .factors = type(g.x),
            .result = type(g.dw)};
  }

  /// dxT [in, batch] = wT [in, out] dyT [out, batch].
  [[nodiscard]] ProductForm dx_form(const LinearGrad& g, Epilogue epilogue) const {
    return {.m = workload_[g.w].shape[1],
            .n = rows(g.x),
            .k = workload_[g.w].shape[0],
            .epilogue = epilogue,
            .alignment_a = alignment(operand(g.w)),
            .alignment_b = alignment(operand(g.dy)),
            .alignment_d = alignment(operand(g.dx)),
            .factors = type(g.x),
            .result = type(g.dx)};
  }

  /// A view's address moves, and an epilogue's pointer is set once.
  [[nodiscard]] bool stays(Id id) const { return id != none && !operand(id).is_view(); }

  static Epilogue masked(const Linear& l) {
    return l.bias != none ? Epilogue::relu_mask_bias : Epilogue::relu_mask;
  }

  // ---- what is fused --------------------------------------------------------------------------

  /// Operations behind `first` and before `last` leave the tensor alone.
  [[nodiscard]] bool unchanged(Id id, std::size_t first, std::size_t last) const {
    for (std::size_t i = first + 1; i < last; ++i) {
      if (contains(operands(op(i)).writes, id)) {
        return false;
      }
    }
    return true;
  }

  void choose_fusions() {
    fusions_.assign(ops_->size(), {});
    for (std::size_t i = 0; i < ops_->size(); ++i) {
      if (const auto* grad = std::get_if<LinearGrad>(&op(i))) {
        choose_mask(i, *grad);
        choose_bias_sum(i, *grad);
      }
    }
  }

  /// A mask pays only where both ends can use it.
  void choose_mask(std::size_t i, const LinearGrad& grad) {
    if (grad.dx == none || grad.x_activation != Activation::relu) {
      return;
    }
    for (std::size_t j = i; j-- > 0;) {
      const auto* linear = std::get_if<Linear>(&op(j));
      if (linear == nullptr || linear->y != grad.x) {
        continue;
      }
      if (linear->activation == Activation::relu && unchanged(grad.x, j, i) &&
          (linear->bias == none || stays(linear->bias)) &&
          supports_(forward_form(*linear, masked(*linear))) &&
          supports_(dx_form(grad, Epilogue::drelu))) {
        fusions_[i].mask_of = j;
        fusions_[j].writes_mask = true;
      }
      return;
    }
  }

  /// The product that makes dy with its mask can sum it as well, if nobody else needs the bias
  /// gradient's old value or overwrites what was summed, and the sums have the type of dy.
  void choose_bias_sum(std::size_t i, const LinearGrad& grad) {
    if (!stays(grad.dbias) || grad.accumulate || type(grad.dbias) != type(grad.dy)) {
      return;
    }
    for (std::size_t j = i; j-- > 0;) {
      const auto* maker = std::get_if<LinearGrad>(&op(j));
      if (maker != nullptr && maker->dx == grad.dy) {
        if (fusions_[j].mask_of && supports_(dx_form(*maker, Epilogue::drelu_bias_sum))) {
          fusions_[j].bias_sum_for = i;
          fusions_[i].bias_sum_elsewhere = true;
        }
        return;
      }
      if (touches(op(j), grad.dbias) || contains(operands(op(j)).writes, grad.dy)) {
        return;
      }
    }
  }

  Operand mask_for(std::size_t linear, const ProductForm& form) {
    const auto [at, is_new] = mask_at_.try_emplace(linear, scratch_end_);
    if (is_new) {
      scratch_end_ += rounded_up(mask_bytes(form.m, form.n), block_alignment);
    }
    return {.offset = at->second};
  }

  void emit_product(const ProductForm& form, Id a, Id b, Id d, Operand vector = {},
                    Operand mask = {}) {
    has_products_ = true;
    emit(ProductLaunch{form, operand(a), operand(b), operand(d), vector, mask});
  }

  // ---- operations -----------------------------------------------------------------------------

  void plan_op(const Linear& l) {
    if (fusions_[at_].writes_mask) {
      const ProductForm form = forward_form(l, masked(l));
      emit_product(form, l.w, l.x, l.y, operand(l.bias), mask_for(at_, form));
      return;
    }
    const bool relu = l.activation == Activation::relu;
    if (stays(l.bias)) {
      if (relu && supports_(forward_form(l, Epilogue::relu_bias))) {
        emit_product(forward_form(l, Epilogue::relu_bias), l.w, l.x, l.y, operand(l.bias));
        return;
      }
      if (supports_(forward_form(l, Epilogue::bias))) {
        emit_product(forward_form(l, Epilogue::bias), l.w, l.x, l.y, operand(l.bias));
        activate_in_place(l);
        return;
      }
    } else if (l.bias == none && relu && supports_(forward_form(l, Epilogue::relu))) {
      emit_product(forward_form(l, Epilogue::relu), l.w, l.x, l.y);
      return;
    }
    if (l.bias == none) {
      emit_product(require(forward_form(l, Epilogue::none)), l.w, l.x, l.y);
      activate_in_place(l);
      return;
    }
    ProductForm form = forward_form(l, Epilogue::none);
    Operand sums = operand(l.y);
    if (form.result != Type::f32) {
      sums = {.offset = scratch_end_};
      scratch_end_ += rounded_up(count(l.y) * bytes(Type::f32), block_alignment);
      form.result = Type::f32;
      form.alignment_d = alignment(sums);
    }
    has_products_ = true;
    emit(ProductLaunch{require(form), operand(l.w), operand(l.x), sums, {}, {}});
    emit(BiasActivateLaunch{sums, operand(l.bias), operand(l.y), rows(l.y), workload_[l.w].shape[0],
                            l.activation});
  }

  void activate_in_place(const Linear& l) {
    if (l.activation != Activation::identity) {
      emit(ActivateLaunch{operand(l.y), operand(l.y), count(l.y), l.activation});
    }
  }

  void plan_op(const LinearGrad& g) {
    if (g.dx != none) {
      plan_dx(g);
    }
    plan_dw(g);
  }

  void plan_dw(const LinearGrad& g) {
    const bool sums = g.dbias != none && !fusions_[at_].bias_sum_elsewhere;
    if (sums && !g.accumulate && stays(g.dbias) && supports_(dw_form(g, Epilogue::b_sum))) {
      emit_product(dw_form(g, Epilogue::b_sum), g.x, g.dy, g.dw, operand(g.dbias));
      return;
    }
    if (sums) {
      emit(ColumnSumsLaunch{operand(g.dy), operand(g.dbias), rows(g.dy), workload_[g.w].shape[0],
                            g.accumulate});
    }
    emit_product(require(dw_form(g, Epilogue::none)), g.x, g.dy, g.dw);
  }

  void plan_dx(const LinearGrad& g) {
    const Fusion& fusion = fusions_[at_];
    if (!fusion.mask_of) {
      emit_product(require(dx_form(g, Epilogue::none)), g.w, g.dy, g.dx);
      if (g.x_activation != Activation::identity) {
        emit(ActivateGradLaunch{operand(g.x), operand(g.dx), operand(g.dx), count(g.dx),
                                g.x_activation});
      }
      return;
    }
    const bool sums = fusion.bias_sum_for.has_value();
    const ProductForm form = dx_form(g, sums ? Epilogue::drelu_bias_sum : Epilogue::drelu);
    const Id vector = sums ? std::get<LinearGrad>(op(*fusion.bias_sum_for)).dbias : none;
    emit_product(form, g.w, g.dy, g.dx, operand(vector), mask_for(*fusion.mask_of, form));
  }

  /// Joins the one before it where that is a Cast as well: a step in 16 bits begins with many.
  void plan_op(const Cast& c) {
    const CastLaunch::One one{operand(c.x), operand(c.y), count(c.x)};
    auto& launches = plan_.steps.back().launches;
    auto* before = launches.empty() ? nullptr : std::get_if<CastLaunch>(&launches.back());
    if (before != nullptr && before->casts.size() < max_spans &&
        before->casts.front().x.type == one.x.type && before->casts.front().y.type == one.y.type) {
      before->casts.push_back(one);
    } else {
      emit(CastLaunch{{one}});
    }
  }

  void plan_op(const Activate& a) {
    emit(ActivateLaunch{operand(a.x), operand(a.y), count(a.x), a.activation});
  }

  void plan_op(const ActivateGrad& a) {
    emit(ActivateGradLaunch{operand(a.y), operand(a.dy), operand(a.dx), count(a.y), a.activation});
  }

  void plan_op(const Add& a) {
    emit(AddLaunch{operand(a.a), operand(a.b), operand(a.y), count(a.y)});
  }

  void plan_op(const SoftmaxCrossEntropy& s) {
    const Shape& shape = workload_[s.logits].shape;
    emit(LossLaunch{.logits = operand(s.logits),
                    .labels = operand(s.labels),
                    .loss = operand(s.loss),
                    .dlogits = operand(s.dlogits),
                    .rows = shape[0],
                    .classes = shape[1],
                    .factor = static_cast<float>(s.scale) / static_cast<float>(shape[0]),
                    .advance = last_loss_ == at_});
  }

  /// cT [n, m] = op(b)T [n, k] op(a)T [k, m]: a matrix that is not transposed here is transposed
  /// in column-major terms already.
  void plan_op(const Gemm& g) {
    const Shape& c = workload_[g.c].shape;
    const ProductForm form{.m = c[1],
                           .n = c[0],
                           .k = workload_[g.a].shape[g.transpose_a ? 0 : 1],
                           .transpose_a = g.transpose_b,
                           .transpose_b = g.transpose_a,
                           .alignment_a = alignment(operand(g.b)),
                           .alignment_b = alignment(operand(g.a)),
                           .alignment_d = alignment(operand(g.c)),
                           .factors = type(g.a),
                           .result = type(g.c)};
    emit_product(require(form), g.b, g.a, g.c);
  }

  void plan_op(const Sgd& s) {
    for (auto& spans : spans_of({&s.parameters, &s.gradients}, {})) {
      emit(SgdLaunch{std::move(spans), s.learning_rate * s.gradient_factor});
    }
  }

  void plan_op(const AdamW& a) {
    emit(AdamWTimeLaunch{operand(a.step), a.learning_rate, a.beta1, a.beta2, a.epsilon,
                         a.gradient_factor});
    for (auto& spans : spans_of({&a.parameters, &a.gradients, &a.m, &a.v}, a.weight_decay)) {
      emit(AdamWLaunch{std::move(spans), a.learning_rate});
    }
  }

  /// In groups of what one launch takes.
  [[nodiscard]] std::vector<std::vector<Span>> spans_of(
      const std::vector<const std::vector<Id>*>& lists,
      const std::vector<double>& weight_decay) const {
    std::vector<std::vector<Span>> groups;
    for (std::size_t p = 0; p < lists[0]->size(); ++p) {
      Span span{.offsets = {},
                .count = count((*lists[0])[p]),
                .weight_decay = weight_decay.empty() ? 0 : weight_decay[p]};
      for (const auto* list : lists) {
        span.offsets.push_back(operand((*list)[p]).offset);
      }
      if (!groups.empty() && extend(groups.back().back(), span)) {
        continue;
      }
      if (groups.empty() || groups.back().size() == max_spans) {
        groups.emplace_back();
      }
      groups.back().push_back(std::move(span));
    }
    return groups;
  }

  /// Joins `next` to `span` where it begins right behind it, but for padding, in every array. The
  /// padding is zero in all of them and stays so.
  static bool extend(Span& span, const Span& next) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(float));
    const std::int64_t gap = rounded_up(span.count * size, MemoryPlan::alignment);
    for (std::size_t i = 0; i < span.offsets.size(); ++i) {
      if (span.offsets[i] + gap != next.offsets[i]) {
        return false;
      }
    }
    if (span.weight_decay != next.weight_decay) {
      return false;
    }
    span.count = gap / size + next.count;
    return true;
  }

  [[nodiscard]] const ProductForm& require(const ProductForm& form) const {
    if (!supports_(form)) {
      throw Unsupported("cuBLASLt has no algorithm for " + to_string(form));
    }
    return form;
  }

  const Workload& workload_;
  const CompileOptions& options_;
  const Supports& supports_;
  Plan plan_;
  std::vector<std::int64_t> staged_;   ///< by tensor: an input's place in the first buffer, or -1
  std::vector<std::int64_t> row_gcd_;  ///< by step: divides the first row of each of its runs
  std::int64_t scratch_ = 0;           ///< where masks and sums begin
  bool has_loss_ = false;
  bool has_products_ = false;

  // The step in the making.
  int step_ = 0;
  const std::vector<Op>* ops_ = nullptr;
  std::size_t at_ = 0;
  std::vector<Fusion> fusions_;                  ///< by operation
  std::map<std::size_t, std::int64_t> mask_at_;  ///< by operation, a Linear
  std::int64_t scratch_end_ = 0;
  std::optional<std::size_t> last_loss_;
};

/// Versions of cuBLASLt differ in the epilogues of gradients where an extent is 1: some refuse k =
/// 1 for ReLU's derivative, those before 12.3.4 bias gradients. Own kernels cost such products
/// little.
bool is_gradient_of_a_line(const ProductForm& form) {
  const bool of_gradient = form.epilogue == Epilogue::drelu ||
                           form.epilogue == Epilogue::drelu_bias_sum ||
                           form.epilogue == Epilogue::b_sum;
  return of_gradient && std::min({form.m, form.n, form.k}) == 1;
}

const char* name_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return "none";
    case Epilogue::bias:
      return "bias";
    case Epilogue::relu:
      return "relu";
    case Epilogue::relu_bias:
      return "relu and bias";
    case Epilogue::relu_mask:
      return "relu and mask";
    case Epilogue::relu_mask_bias:
      return "relu, mask and bias";
    case Epilogue::drelu:
      return "relu's derivative";
    case Epilogue::drelu_bias_sum:
      return "relu's derivative and bias gradient";
    case Epilogue::b_sum:
      return "bias gradient";
  }
  return "";
}

}  // namespace

OpCategory category_of(const Launch& launch) {
  return std::visit(Overload{
                        [](const ProductLaunch&) { return OpCategory::product; },
                        [](const LossLaunch&) { return OpCategory::loss; },
                        [](const SgdLaunch&) { return OpCategory::update; },
                        [](const AdamWTimeLaunch&) { return OpCategory::update; },
                        [](const AdamWLaunch&) { return OpCategory::update; },
                        [](const auto&) { return OpCategory::elementwise; },
                    },
                    launch);
}

bool reads_vector(Epilogue epilogue) {
  return epilogue == Epilogue::bias || epilogue == Epilogue::relu_bias ||
         epilogue == Epilogue::relu_mask_bias;
}

bool writes_vector(Epilogue epilogue) {
  return epilogue == Epilogue::drelu_bias_sum || epilogue == Epilogue::b_sum;
}

bool writes_mask(Epilogue epilogue) {
  return epilogue == Epilogue::relu_mask || epilogue == Epilogue::relu_mask_bias;
}

bool uses_mask(Epilogue epilogue) {
  return writes_mask(epilogue) || epilogue == Epilogue::drelu ||
         epilogue == Epilogue::drelu_bias_sum;
}

std::string to_string(const ProductForm& form) {
  return "a product of m=" + std::to_string(form.m) + " n=" + std::to_string(form.n) +
         " k=" + std::to_string(form.k) +
         (form.factors == Type::f32
              ? ""
              : ", " + to_string(form.factors) + " to " + to_string(form.result)) +
         (form.transpose_a ? ", A transposed" : "") + (form.transpose_b ? ", B transposed" : "") +
         (form.accumulate ? ", accumulating" : "") + ", epilogue: " + name_of(form.epilogue);
}

std::int64_t mask_leading(std::int64_t m) {
  constexpr std::int64_t multiple = 128;  // bits, as cuBLASLt asks
  return rounded_up(m, multiple);
}

std::int64_t mask_bytes(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t bits = 8;
  return mask_leading(m) / bits * n;
}

Plan make_plan(const Workload& workload, const CompileOptions& options, const Supports& supports) {
  const Supports allowed = [&](const ProductForm& form) {
    return !is_gradient_of_a_line(form) && supports(form);
  };
  return Planner(workload, options, allowed).run();
}

}  // namespace crossover::cuda
