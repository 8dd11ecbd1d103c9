// SPDX-License-Identifier: Apache-2.0
// What shapes alone tell: how far a window slides, which blocks join and turn tensors, how they
// lie, and what a gate is.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "crossover/operations/elementwise.h"
#include "crossover/operations/movement.h"
#include "crossover/tensor.h"

namespace crossover {

std::string to_string(const Pair& pair) {
  const std::string rows = std::to_string(pair.down);
  return pair.is_square() ? rows : rows + "x" + std::to_string(pair.across);
}

std::int64_t positions(const Slide& slide, std::int64_t extent) {
  const std::int64_t room = extent + 2 * slide.padding - crossover::extent(slide);
  if (room < 0) {
    return 0;
  }
  if (!slide.ceil) {
    return room / slide.stride + 1;
  }
  const std::int64_t count = (room + slide.stride - 1) / slide.stride + 1;
  const bool last_begins_outside = (count - 1) * slide.stride >= extent + slide.padding;
  return last_begins_outside ? count - 1 : count;
}

Shape windowed(const Window& window, const Shape& images, std::int64_t channels) {
  return {images[0], channels, positions(window.down(), images[2]),
          positions(window.across(), images[3])};
}

std::int64_t CopiedBlock::count() const {
  return std::accumulate(
      extents.begin(), extents.end(), std::int64_t{1},
      [](std::int64_t product, const BlockExtent& extent) { return product * extent.count; });
}

CopiedBlock part_of(const Shape& whole, std::size_t axis, std::int64_t from, std::int64_t to) {
  const auto product = [](auto begin, auto end) {
    return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
  };
  const auto at = whole.begin() + static_cast<std::ptrdiff_t>(axis);
  const std::int64_t outer = product(whole.begin(), at);
  const std::int64_t inner = product(at + 1, whole.end());
  const std::int64_t own = to - from;
  return {.from_first = from * inner,
          .extents = {{outer, *at * inner, own * inner}, {own, inner, inner}, {inner, 1, 1}}};
}

std::vector<CopiedBlock> joined(const std::vector<Shape>& parts, std::size_t axis) {
  Shape whole = parts.front();
  whole[axis] = 0;
  for (const Shape& part : parts) {
    whole[axis] += part[axis];
  }
  std::vector<CopiedBlock> blocks;
  std::int64_t before = 0;
  for (const Shape& part : parts) {
    blocks.push_back(part_of(whole, axis, before, before + part[axis]));
    blocks.back().to = static_cast<std::int64_t>(blocks.size()) - 1;
    before += part[axis];
  }
  return reversed(std::move(blocks));
}

CopiedBlock within(const Shape& from, const Shape& to, const Shape& before) {
  CopiedBlock block;
  std::int64_t from_step = 1;
  std::int64_t to_step = 1;
  for (std::size_t axis = from.size(); axis-- > 0;) {
    const std::int64_t skipped = std::max<std::int64_t>(-before[axis], 0);
    const std::int64_t free = std::max<std::int64_t>(before[axis], 0);
    const std::int64_t count = std::min(from[axis] - skipped, to[axis] - free);
    block.extents.insert(block.extents.begin(), {count, from_step, to_step});
    block.from_first += skipped * from_step;
    block.to_first += free * to_step;
    from_step *= from[axis];
    to_step *= to[axis];
  }
  return block;
}

std::vector<CopiedBlock> as_sequence(const Shape& image) {
  const std::int64_t channels = image[1];
  const std::int64_t pixels = image[2] * image[3];
  return {{.extents = {{image[0], channels * pixels, channels},
                       {channels, pixels, 1},
                       {pixels, 1, image[0] * channels}}}};
}

std::vector<CopiedBlock> reversed(std::vector<CopiedBlock> blocks) {
  for (CopiedBlock& block : blocks) {
    std::swap(block.from, block.to);
    std::swap(block.from_first, block.to_first);
    for (BlockExtent& extent : block.extents) {
      std::swap(extent.from_step, extent.to_step);
    }
  }
  return blocks;
}

namespace {

bool steps_through_channels(std::int64_t step, const ChannelsLie& lie) {
  return step % lie.pixels == 0 && step % (lie.channels * lie.pixels) != 0;
}

bool has_blocks(const ChannelsLie& lie) { return lie.width > 1 && lie.width < lie.channels; }

/// Whether each extent that steps through channels holds whole blocks of them.
bool holds_blocks(const CopiedBlock& block, std::int64_t first, std::int64_t BlockExtent::*step,
                  const ChannelsLie& lie) {
  return !has_blocks(lie) ||
         (first / lie.pixels % lie.channels % lie.width == 0 &&
          std::all_of(block.extents.begin(), block.extents.end(), [&](const BlockExtent& extent) {
            return extent.count == 1 || !steps_through_channels(extent.*step, lie) ||
                   (extent.*step == lie.pixels && extent.count % lie.width == 0);
          }));
}

/// Extents that step through channels become two: of blocks, and within one.
void split_channels(CopiedBlock& block, std::int64_t BlockExtent::*step, const ChannelsLie& lie) {
  if (!has_blocks(lie)) {
    return;
  }
  for (std::size_t i = 0; i < block.extents.size(); ++i) {
    const BlockExtent extent = block.extents[i];
    if (extent.count > lie.width && extent.*step == lie.pixels &&
        steps_through_channels(extent.*step, lie)) {
      block.extents[i] = {extent.count / lie.width, extent.from_step * lie.width,
                          extent.to_step * lie.width};
      block.extents.push_back({lie.width, extent.from_step, extent.to_step});
    }
  }
}

std::int64_t lying_step(std::int64_t step, const ChannelsLie& lie) {
  if (step % (lie.channels * lie.pixels) == 0) {
    return step;
  }
  const std::int64_t channels = step / lie.pixels;
  if (step % lie.pixels == 0) {
    return channels % lie.width == 0 ? step : channels;
  }
  return step * lie.width;
}

std::int64_t lying_place(std::int64_t place, const ChannelsLie& lie) {
  const std::int64_t pixel = place % lie.pixels;
  const std::int64_t channel = place / lie.pixels % lie.channels;
  return place - pixel - channel % lie.width * lie.pixels + pixel * lie.width + channel % lie.width;
}

/// What runs on in both is one extent.
std::vector<BlockExtent> merged(std::vector<BlockExtent> extents) {
  std::erase_if(extents, [](const BlockExtent& extent) { return extent.count == 1; });
  std::stable_sort(extents.begin(), extents.end(), [](const BlockExtent& a, const BlockExtent& b) {
    return a.to_step > b.to_step;
  });
  std::vector<BlockExtent> all;
  for (const BlockExtent& inner : extents) {
    if (!all.empty() && all.back().from_step == inner.count * inner.from_step &&
        all.back().to_step == inner.count * inner.to_step) {
      all.back() = {all.back().count * inner.count, inner.from_step, inner.to_step};
    } else {
      all.push_back(inner);
    }
  }
  if (all.empty()) {
    all.push_back({1, 1, 1});
  }
  return all;
}

}  // namespace

std::optional<CopiedBlock> lying(CopiedBlock block, const ChannelsLie& from,
                                 const ChannelsLie& to) {
  if (!holds_blocks(block, block.from_first, &BlockExtent::from_step, from) ||
      !holds_blocks(block, block.to_first, &BlockExtent::to_step, to)) {
    return std::nullopt;
  }
  split_channels(block, &BlockExtent::from_step, from);
  split_channels(block, &BlockExtent::to_step, to);
  for (BlockExtent& extent : block.extents) {
    extent.from_step = lying_step(extent.from_step, from);
    extent.to_step = lying_step(extent.to_step, to);
  }
  block.from_first = lying_place(block.from_first, from);
  block.to_first = lying_place(block.to_first, to);
  block.extents = merged(std::move(block.extents));
  return block;
}

bool is_gate_of(const Shape& a, const Shape& b) {
  const bool has_places = a.size() == 3 || a.size() == 4;
  if (!has_places || a == b) {
    return false;
  }
  Shape gate = without_places(a);
  if (b.size() == 4 && a.size() == 4) {
    gate.insert(gate.end(), {1, 1});
  }
  return b == gate;
}

}  // namespace crossover
