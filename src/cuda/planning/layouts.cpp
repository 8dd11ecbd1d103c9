// SPDX-License-Identifier: Apache-2.0
#include "layouts.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>

#include "crossover/backend.h"

namespace crossover::cuda {
namespace {

constexpr std::size_t image_dimensions = 4;

template <class Op, class... Kinds>
constexpr bool is_one_of = (std::is_same_v<Op, Kinds> || ...);

template <class Op>
bool works_on_images(const Op& op) {
  if constexpr (is_one_of<Op, Norm, NormGrad>) {
    return op.kind != NormKind::layer;
  } else {
    return is_one_of<Op, Convolution, ConvolutionGrad, ChannelBiasGrad, Pool, PoolGrad>;
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

}  // namespace crossover::cuda
