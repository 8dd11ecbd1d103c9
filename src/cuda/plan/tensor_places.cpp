// SPDX-License-Identifier: Apache-2.0
#include "tensor_places.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

#include "crossover/backend.h"
#include "crossover/memory.h"
#include "crossover/training.h"

namespace crossover::cuda {

// ---- Layouts

namespace {

constexpr std::size_t image_dimensions = 4;

template <class Op>
bool works_on_images(const Op& op) {
  if constexpr (is_one_of<Op, Norm, NormGrad>) {
    return op.kind != NormKind::layer;
  } else {
    return is_one_of<Op, Convolution, ConvolutionGrad, ChannelBiasGrad, Pool, PoolGrad, Resample>;
  }
}

/// Element i of one tensor meets element i of the others: all of a shape lie alike.
template <class Op>
constexpr bool is_elementwise = is_one_of<Op, Add, Activate, ActivateGrad, Cast, Dropout,
                                          DropoutGrad, Multiply, MultiplyGrad, Map, MapGrad>;

template <class Op>
constexpr bool takes_any_layout =
    is_one_of<Op, Reshape, Rearrange, Zero, AllReduce>;  // the last one: alike on all ranks

std::vector<Id> all_operands(const Op& op) {
  Operands both = operands(op);
  both.reads.insert(both.reads.end(), both.writes.begin(), both.writes.end());
  return std::move(both.reads);
}

class Choice {
 public:
  explicit Choice(const Workload& workload)
      : workload_(workload), layouts_(workload.tensors.size(), Layout::plain) {}

  std::vector<Layout> made() && {
    for_each_op([this](const auto& op) { start(op); });
    do {
      changed_ = false;
      for_each_op([this](const auto& op) { spread(op); });
      for (std::size_t i = 0; i < layouts_.size(); ++i) {
        if (workload_.tensors[i].role == Role::input) {
          tie({static_cast<Id>(i), workload_.tensors[i].source});
        }
      }
    } while (changed_);
    for_each_op([this](const auto& op) { refuse(op); });
    return std::move(layouts_);
  }

 private:
  template <class Visit>
  void for_each_op(const Visit& visit) {
    for (const Step& step : workload_.steps) {
      for (const Op& op : step.ops) {
        std::visit(visit, op);
      }
    }
  }

  [[nodiscard]] Layout& at(Id id) { return layouts_[static_cast<std::size_t>(id)]; }

  template <class T>
  void start(const T& op) {
    if (works_on_images(op)) {
      for (const Id id : all_operands(op)) {
        if (workload_[id].shape.size() == image_dimensions) {
          at(id) = Layout::channels_last;
        }
      }
    }
  }

  /// All of them lie channels-last where one does.
  void tie(const std::vector<Id>& ids) {
    const bool any = std::any_of(ids.begin(), ids.end(),
                                 [this](Id id) { return at(id) == Layout::channels_last; });
    for (const Id id : ids) {
      if (any && at(id) != Layout::channels_last &&
          workload_[id].shape.size() == image_dimensions) {
        at(id) = Layout::channels_last;
        changed_ = true;
      }
    }
  }

  template <class T>
  void spread(const T& op) {
    if constexpr (is_elementwise<T>) {
      tie(all_operands(op));
    } else if constexpr (std::is_same_v<T, Update>) {
      for (std::size_t p = 0; p < op.parameters.size(); ++p) {
        std::vector<Id> ids{op.parameters[p], op.gradients[p]};
        for (const std::vector<Id>& states : op.states) {
          ids.push_back(states[p]);
        }
        tie(ids);
      }
    }
  }

  template <class T>
  void refuse(const T& op) {
    if constexpr (!is_elementwise<T> && !takes_any_layout<T> && !std::is_same_v<T, Update>) {
      if (works_on_images(op)) {
        return;
      }
      for (const Id id : all_operands(op)) {
        if (at(id) == Layout::channels_last) {
          throw Unsupported(std::string("the GPU backend has no ") + name_of(op) + " on images: '" +
                            workload_[id].name + "' needs a Reshape");
        }
      }
    }
  }

  const Workload& workload_;
  std::vector<Layout> layouts_;
  bool changed_ = false;
};

/// to[swapped(i)] = from[i] or the other way round, for elements of one type.
template <class T>
void copy_elements(const std::byte* from, std::byte* to, std::int64_t count,
                   const Arrangement& arrangement, bool arranging) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t plain = plain_index(i, arrangement);
    const std::int64_t at = arranging ? plain : i;
    std::memcpy(to + (arranging ? i : plain) * static_cast<std::int64_t>(sizeof(T)),
                from + at * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  }
}

void copy_arranged(const std::byte* from, std::byte* to, std::size_t bytes,
                   const Arrangement& arrangement, std::int64_t element_bytes, bool arranging) {
  if (arrangement.is_plain()) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::int64_t count = static_cast<std::int64_t>(bytes) / element_bytes;
  switch (element_bytes) {
    case 1:
      return copy_elements<std::uint8_t>(from, to, count, arrangement, arranging);
    case 2:
      return copy_elements<std::uint16_t>(from, to, count, arrangement, arranging);
    default:
      return copy_elements<std::uint32_t>(from, to, count, arrangement, arranging);
  }
}

}  // namespace

std::vector<Layout> choose_layouts(const Workload& workload, Precision precision) {
  std::vector<Layout> layouts = Choice(workload).made();
  if (image_layout(precision) == Layout::plain) {
    std::fill(layouts.begin(), layouts.end(), Layout::plain);
  }
  return layouts;
}

Arrangement arrangement_of(Layout layout, const Shape& shape) {
  if (layout == Layout::plain) {
    return {};
  }
  return {.channels = shape[1], .pixels = shape[2] * shape[3]};
}

void arrange(std::span<const std::byte> plain, std::byte* arranged, const Arrangement& arrangement,
             std::int64_t element_bytes) {
  copy_arranged(plain.data(), arranged, plain.size(), arrangement, element_bytes, true);
}

void restore(const std::byte* arranged, std::span<std::byte> plain, const Arrangement& arrangement,
             std::int64_t element_bytes) {
  copy_arranged(arranged, plain.data(), plain.size(), arrangement, element_bytes, false);
}

// ---- Places

namespace {

constexpr std::int64_t block_alignment = 256;  ///< of what comes after the tensors

std::int64_t row_bytes(const Tensor& view) { return bytes(view) / view.shape[0]; }

/// Of each tensor with its padding. Kept activations are all there to be read after a step, as its
/// Casts would have made them; else a copy, which lies apart, takes nothing.
std::vector<std::int64_t> padded_bytes(const Workload& workload,
                                       const std::vector<CopiedParameter>& copied,
                                       std::int64_t of_parameters, Activations activations) {
  std::vector<std::int64_t> sizes;
  for (const Tensor& tensor : workload.tensors) {
    const bool is_updated = tensor.role == Role::parameter || tensor.role == Role::gradient ||
                            tensor.role == Role::state;
    // Of gradients of 16 bits an element lies half as far from the first as of the parameter.
    const std::int64_t multiple = of_parameters * bytes(tensor.type) / bytes(Type::f32);
    sizes.push_back(is_updated ? round_up(bytes(tensor), multiple) : bytes(tensor));
  }
  if (activations != Activations::kept) {
    for (const CopiedParameter& one : copied) {
      sizes[static_cast<std::size_t>(one.copy)] = 0;
    }
  }
  return sizes;
}

/// Parameters whose gradients are of 16 bits, and what goes with them.
std::set<Id> updated_by_16_bits(const Workload& workload) {
  std::set<Id> all;
  for (const Step& step : workload.steps) {
    for (const Op& op : step.ops) {
      const auto* update = std::get_if<Update>(&op);
      for (std::size_t p = 0; update != nullptr && p < update->parameters.size(); ++p) {
        if (workload[update->gradients[p]].type != Type::f32) {
          all.insert({update->parameters[p], update->gradients[p]});
          for (const std::vector<Id>& states : update->states) {
            all.insert(states[p]);
          }
        }
      }
    }
  }
  return all;
}

/// Moves those of each role to the front of it: so they are one span of an optimizer, and all
/// others are one.
void put_first(const std::set<Id>& ids, const Workload& workload,
               const std::vector<std::int64_t>& sizes, std::vector<std::int64_t>& offset) {
  for (const Role role : {Role::parameter, Role::gradient, Role::state}) {
    std::vector<Id> all = tensors_of(workload, role);
    if (ids.empty() || all.empty()) {
      continue;
    }
    std::int64_t end = offset[static_cast<std::size_t>(all.front())];
    std::stable_partition(all.begin(), all.end(), [&](Id id) { return ids.contains(id); });
    for (const Id id : all) {
      offset[static_cast<std::size_t>(id)] = end;
      end += MemoryPlan::aligned(sizes[static_cast<std::size_t>(id)]);
    }
  }
}

}  // namespace

TensorPlaces::TensorPlaces(const Workload& workload, Precision precision, LaunchPlan& plan)
    : workload_(workload),
      plan_(plan),
      staged_(workload.tensors.size(), -1),
      row_gcd_(workload.steps.size(), 0) {
  const bool resident = plan.mode.is_resident();
  const std::vector<CopiedParameter> copied = choose_parameter_copies(workload);
  if (!copied.empty()) {  // of half the bytes, they are as aligned as everything else
    parameter_alignment_ = 2 * MemoryPlan::alignment;
  }
  const std::vector<std::int64_t> sizes =
      padded_bytes(workload, copied, parameter_alignment_, plan.mode.activations);
  const StreamedMemoryPlan streamed =
      plan_streamed_memory(workload, plan.mode.buffers, plan.mode.activations, sizes);
  MemoryPlan memory =
      resident ? plan_memory(workload, sizes, plan.mode.activations) : streamed.plan;
  put_first(updated_by_16_bits(workload), workload, sizes, memory.offset);
  plan.bytes = memory.bytes;
  plan.buffer_bytes = streamed.input_bytes;
  // A streamed data set's plan has the staging buffers among the tensors.
  const std::int64_t inputs = resident ? reserve(plan.mode.buffers * streamed.input_bytes) : 0;
  plan.tensors.resize(workload.tensors.size());
  const std::vector<Layout> layouts = choose_layouts(workload, precision);
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const Tensor& tensor = workload.tensors[i];
    TensorPlace& place = plan.tensors[i];
    place.layout = layouts[i];
    if (tensor.role == Role::input) {
      if (plan.mode.buffers > 0) {
        staged_[i] = inputs + streamed.plan.offset[i];
      }
      continue;
    }
    place.offset = memory.offset[i];
    if (tensor.role == Role::data && !resident) {
      place.host_offset = plan.host_bytes;
      plan.host_bytes += round_up(bytes(tensor), MemoryPlan::alignment);
    } else if (tensor.role == Role::loss && plan.loss == none) {
      plan.loss = static_cast<Id>(i);
    }
  }
  place_copies(copied);
  for (const Run& run : workload.order) {
    std::int64_t& gcd = row_gcd_[static_cast<std::size_t>(run.step)];
    gcd = std::gcd(gcd, run.first_row);
  }
}

/// Side by side as the parameters are, so that what is a span of them is one of copies: those that
/// lie between are written without being read.
void TensorPlaces::place_copies(const std::vector<CopiedParameter>& copied) {
  if (copied.empty()) {
    return;
  }
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  for (std::size_t i = 0; i < workload_.tensors.size(); ++i) {
    if (workload_.tensors[i].role == Role::parameter) {
      begin = std::min(begin, plan_.tensors[i].offset);
      end = std::max(end, plan_.tensors[i].offset + bytes(workload_.tensors[i]));
    }
  }
  parameters_ = begin;
  copies_ = {.offset = reserve((end - begin) / 2),
             .bytes = (end - begin) / 2,
             .type = workload_[copied.front().copy].type};
  for (const CopiedParameter& one : copied) {
    const std::int64_t offset = copy_of(one.parameter).offset;
    plan_.copies.push_back({one.parameter, one.copy, offset});
    if (plan_.mode.activations != Activations::kept) {
      plan_.tensors[static_cast<std::size_t>(one.copy)].offset = offset;
    }
  }
}

Operand TensorPlaces::copy_of(Id parameter) const {
  if (!copies_.exists() || workload_[parameter].role != Role::parameter) {
    return {};
  }
  Operand copy = part_of(copies_, (plan_[parameter].offset - parameters_) / 2);
  copy.bytes = bytes(workload_[parameter]) / 2;
  return copy;
}

Operand TensorPlaces::kept(Id cast) const {
  const auto at = std::find_if(plan_.copies.begin(), plan_.copies.end(),
                               [cast](const ParameterCopy& copy) { return copy.copy == cast; });
  return at != plan_.copies.end() ? copy_of(at->parameter) : Operand{};
}

std::int64_t TensorPlaces::end() const { return round_up(plan_.bytes, block_alignment); }

void TensorPlaces::extend(std::int64_t end) { plan_.bytes = std::max(plan_.bytes, end); }

std::int64_t TensorPlaces::reserve(std::int64_t bytes) {
  const std::int64_t at = end();
  plan_.bytes = at + bytes;
  return at;
}

Operand TensorPlaces::operand(Id id) const {
  if (id == none) {
    return {};
  }
  const Tensor& tensor = workload_[id];
  if (tensor.role != Role::input) {
    return {.offset = plan_[id].offset, .bytes = bytes(tensor), .type = tensor.type};
  }
  Operand view{.staged = staged_[static_cast<std::size_t>(id)],
               .buffer_bytes = plan_.buffer_bytes,
               .bytes = bytes(tensor),
               .type = tensor.type};
  if (plan_.mode.is_resident()) {
    view.offset = plan_[tensor.source].offset;
    view.row_bytes = row_bytes(tensor);
  }
  return view;
}

std::int64_t TensorPlaces::alignment(const Operand& operand, int step) const {
  std::int64_t divided = MemoryPlan::alignment;
  if (operand.staged >= 0) {
    divided |= operand.staged | operand.buffer_bytes;
  }
  if (!operand.is_view()) {
    divided |= operand.offset;
  } else if (plan_.mode.in_place) {
    divided |= operand.offset | (operand.row_bytes * row_gcd_[static_cast<std::size_t>(step)]);
  }
  return divided & -divided;
}

StagedInput TensorPlaces::staged_input(Id view, int step) const {
  const Tensor& tensor = workload_[view];
  StagedInput input{.source = tensor.source,
                    .row_bytes = row_bytes(tensor),
                    .source_bytes = bytes(workload_[tensor.source]),
                    .bytes = bytes(tensor),
                    .staged = staged_[static_cast<std::size_t>(view)]};
  if (gathers()) {
    constexpr std::int64_t largest = 16;
    const std::int64_t divided = largest | plan_[tensor.source].offset | input.staged |
                                 input.bytes |
                                 (input.row_bytes * row_gcd_[static_cast<std::size_t>(step)]);
    input.unit = divided & -divided;
  }
  return input;
}

}  // namespace crossover::cuda
