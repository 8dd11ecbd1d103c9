// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

#include "contexts.h"
#include "crossover/layers.h"
#include "crossover/operations/elementwise.h"
#include "crossover/operations/image.h"

namespace crossover {

namespace {

constexpr std::size_t dimensions_of_vectors = 2;
constexpr std::size_t dimensions_of_sequences = 3;
constexpr std::size_t dimensions_of_images = 4;

void reshape_back(LayerBackward& step) {
  if (const Id dx = step.dx(); dx != none) {
    step.emit(Reshape{.x = step.dy(), .y = dx});
  }
}

/// The result is what these blocks of the one input come to.
void rearrange(LayerForward& step, std::vector<CopiedBlock> blocks) {
  step.emit(Rearrange{.x = {step.x()}, .y = {step.y()}, .blocks = std::move(blocks)});
}

/// What such blocks leave out has no gradient from here: zeros, to which those of other readers are
/// added.
void rearrange_back(LayerBackward& step, std::vector<CopiedBlock> blocks) {
  if (const Id dx = step.dx(); dx != none) {
    step.emit(Rearrange{.x = {step.dy()}, .y = {dx}, .blocks = reversed(std::move(blocks))});
  }
}

std::size_t channel_axis(const Shape& shape) {
  return shape.size() == dimensions_of_images ? 1 : shape.size() - 1;
}

/// Places one after another in time, of sequences of that shape.
std::vector<CopiedBlock> token_and_rest(const Shape& sequence) {
  return joined({{1, sequence[1], sequence[2]}, sequence}, 0);
}

}  // namespace

Shape FlattenLayer::infer(LayerShapes& shapes) const {
  const Shape& shape = shapes.input();
  shapes.require(shape.front() == any_batch, "can't flatten what lies time first");
  return {any_batch, elements({shape.begin() + 1, shape.end()})};
}

void FlattenLayer::forward(LayerForward& step) const {
  step.emit(Reshape{.x = step.x(), .y = step.y()});
}

void FlattenLayer::backward(LayerBackward& step) const { reshape_back(step); }

Shape ToSequenceLayer::infer(LayerShapes& shapes) const {
  const Shape& image = shapes.image();
  return {image[2] * image[3], any_batch, image[1]};
}

void ToSequenceLayer::forward(LayerForward& step) const {
  rearrange(step, as_sequence(step.tensor(step.x()).shape));
}

void ToSequenceLayer::backward(LayerBackward& step) const {
  rearrange_back(step, as_sequence(step.tensor(step.x()).shape));
}

Shape ToImageLayer::infer(LayerShapes& shapes) const {
  const Shape& read = shapes.input();
  const bool is_vector = channels > 0 && read.size() == dimensions_of_vectors &&
                         read.front() == any_batch && read.back() != any_batch;
  const Shape sequence = is_vector ? Shape{read.back(), any_batch, 1} : shapes.sequence();
  const std::int64_t time = sequence[0];
  const std::int64_t width = sequence[2];
  const std::int64_t own = channels == 0 ? width : channels;
  const bool fits = channels == 0 || time % channels == 0;
  const std::int64_t pixels = channels == 0 ? time : time / channels * width;
  shapes.require(fits && pixels % height == 0,
                 "makes no image of " + std::to_string(own) + " channels and height " +
                     std::to_string(height) + " of " + std::to_string(time) + " places");
  return {any_batch, own, height, pixels / height};
}

std::vector<CopiedBlock> ToImageLayer::blocks(const Shape& sequence) const {
  const std::int64_t time = sequence[0];
  const std::int64_t batch = sequence[1];
  const std::int64_t width = sequence[2];
  if (channels == 0) {
    return reversed(as_sequence({batch, width, height, time / height}));
  }
  const std::int64_t places = time / channels;
  const std::int64_t place = batch * width;
  return {{.extents = {{batch, width, time * width},
                       {channels, places * place, places * width},
                       {places, place, width},
                       {width, 1, 1}}}};
}

void ToImageLayer::forward(LayerForward& step) const {
  const Shape& read = step.tensor(step.x()).shape;
  if (read.size() == dimensions_of_vectors) {
    step.emit(Reshape{.x = step.x(), .y = step.y()});
  } else {
    rearrange(step, blocks(read));
  }
}

void ToImageLayer::backward(LayerBackward& step) const {
  const Shape& read = step.tensor(step.x()).shape;
  if (read.size() == dimensions_of_vectors) {
    reshape_back(step);
  } else {
    rearrange_back(step, blocks(read));
  }
}

Shape ConcatenateLayer::infer(LayerShapes& shapes) const {
  const std::size_t count = shapes.inputs();
  shapes.require(count > 1, "reads one value, and joins two or more");
  Shape all = shapes.input(0, count);
  const std::size_t axis = channel_axis(all);
  shapes.require(all[axis] != any_batch, "reads single numbers, not vectors");
  for (std::size_t i = 1; i < count; ++i) {
    Shape other = shapes.input(i, count);
    shapes.require(other.size() == all.size() && other[axis] != any_batch,
                   "joins values of different shapes");
    const std::int64_t own = std::exchange(other[axis], all[axis]);
    shapes.require(other == all, "joins values of different shapes");
    all[axis] += own;
  }
  return all;
}

void ConcatenateLayer::forward(LayerForward& step) const {
  Rearrange join{.x = {}, .y = {step.y()}, .blocks = {}};
  std::vector<Shape> parts;
  for (std::size_t i = 0; i < step.inputs(); ++i) {
    join.x.push_back(step.x(i));
    parts.push_back(step.tensor(step.x(i)).shape);
  }
  join.blocks = joined(parts, channel_axis(parts.front()));
  step.emit(std::move(join));
}

/// Each gets its part; those that nobody asks for are left where they are.
void ConcatenateLayer::backward(LayerBackward& step) const {
  std::vector<Shape> parts;
  for (std::size_t i = 0; i < step.inputs(); ++i) {
    parts.push_back(step.tensor(step.x(i)).shape);
  }
  Rearrange split{.x = {step.dy()}, .y = {}, .blocks = {}};
  for (CopiedBlock& block : reversed(joined(parts, channel_axis(parts.front())))) {
    const Id dx = step.dx(static_cast<std::size_t>(block.to));
    if (dx != none) {
      block.to = static_cast<std::int64_t>(split.y.size());
      split.y.push_back(dx);
      split.blocks.push_back(std::move(block));
    }
  }
  if (!split.y.empty()) {
    step.emit(std::move(split));
  }
}

CopiedBlock SliceLayer::block(const Shape& shape) const {
  return part_of(shape, over_time ? 0 : channel_axis(shape), from, to);
}

Shape SliceLayer::infer(LayerShapes& shapes) const {
  Shape shape = over_time ? shapes.sequence() : shapes.input();
  std::int64_t& extent = shape[over_time ? 0 : channel_axis(shape)];
  shapes.require(extent != any_batch, "reads single numbers, not vectors");
  shapes.require(0 <= from && from < to && to <= extent, "slices " + std::to_string(from) + " to " +
                                                             std::to_string(to) + " of " +
                                                             std::to_string(extent));
  extent = to - from;
  return shape;
}

void SliceLayer::forward(LayerForward& step) const {
  rearrange(step, {block(step.tensor(step.x()).shape)});
}

void SliceLayer::backward(LayerBackward& step) const {
  rearrange_back(step, {block(step.tensor(step.x()).shape)});
}

Shape PadLayer::infer(LayerShapes& shapes) const {
  Shape shape = shapes.image();
  const Shape behind{0, back, bottom, right};
  const Shape in_front = before();
  for (std::size_t axis = 1; axis < shape.size(); ++axis) {
    const std::int64_t cut =
        std::max<std::int64_t>(-in_front[axis], 0) + std::max<std::int64_t>(-behind[axis], 0);
    shapes.require(cut < shape[axis], "cuts off " + std::to_string(cut) + " of " +
                                          std::to_string(shape[axis]) +
                                          (axis == 1   ? " channels"
                                           : axis == 2 ? " rows"
                                                       : " columns"));
    shape[axis] += in_front[axis] + behind[axis];
  }
  return shape;
}

void PadLayer::forward(LayerForward& step) const {
  rearrange(step, {within(step.tensor(step.x()).shape, step.tensor(step.y()).shape, before())});
}

void PadLayer::backward(LayerBackward& step) const {
  rearrange_back(step,
                 {within(step.tensor(step.x()).shape, step.tensor(step.y()).shape, before())});
}

Shape ClassTokenLayer::infer(LayerShapes& shapes) const {
  const Shape& sequence = shapes.sequence();
  const std::int64_t width = sequence[2];
  shapes.parameter("token", {1, width}, {.bound = 1 / std::sqrt(static_cast<double>(width))});
  return {1 + sequence[0], any_batch, width};
}

void ClassTokenLayer::forward(LayerForward& step) const {
  const Shape& sequence = step.tensor(step.x()).shape;
  std::vector<CopiedBlock> blocks = token_and_rest(sequence);
  blocks[0].extents = {{sequence[1], 0, sequence[2]}, {sequence[2], 1, 1}};  // the same in all rows
  step.emit(
      Rearrange{.x = {step.parameter(), step.x()}, .y = {step.y()}, .blocks = std::move(blocks)});
}

void ClassTokenLayer::backward(LayerBackward& step) const {
  const Tensor x = step.tensor(step.x());
  const Id of_token = step.scratch("dtoken", {1, x.shape[1], x.shape[2]}, x.type);
  const Id dx = step.dx();
  Rearrange split{.x = {step.dy()}, .y = {of_token}, .blocks = reversed(token_and_rest(x.shape))};
  if (dx != none) {
    split.y.push_back(dx);
  } else {
    split.blocks.pop_back();
  }
  step.emit(std::move(split));
  if (step.is_trained()) {
    step.emit(PositionEmbeddingGrad{.dy = of_token, .dtable = step.gradient()});
  }
}

std::vector<CopiedBlock> OnePlaceLayer::blocks(const Shape& sequence) const {
  const std::int64_t size = sequence[1] * sequence[2];
  return {{.from_first = is_last ? (sequence[0] - 1) * size : 0, .extents = {{size, 1, 1}}}};
}

Shape OnePlaceLayer::infer(LayerShapes& shapes) const { return {any_batch, shapes.sequence()[2]}; }

void OnePlaceLayer::forward(LayerForward& step) const {
  rearrange(step, blocks(step.tensor(step.x()).shape));
}

void OnePlaceLayer::backward(LayerBackward& step) const {
  rearrange_back(step, blocks(step.tensor(step.x()).shape));
}

// ---- A sample's numbers stand in a row while they change places. A sequence has its batch between
// them, and an image may lie otherwise than row by row, so extents are cut at their places and at
// their channels; what can't be cut is first copied into a row.

namespace {

std::int64_t of_a_sample(const Shape& shape, std::int64_t batch) { return elements(shape) / batch; }

/// How a tensor has the numbers of its samples: so many in a row, `apart` from those of the next.
struct Rows {
  std::int64_t count = 1, apart = 1, between_samples = 1;
};

Rows rows_of(const Shape& shape) {
  if (shape.size() == dimensions_of_sequences) {
    return {shape[2], shape[1] * shape[2], shape[2]};
  }
  const std::int64_t sample = of_a_sample(shape, shape[0]);
  const std::int64_t row = shape.size() == dimensions_of_images ? shape[2] * shape[3] : sample;
  return {row, row, sample};
}

/// Each extent as some within a row and some from row to row. None where one goes on in another.
std::optional<std::vector<BlockExtent>> cut(std::vector<BlockExtent> extents, std::int64_t first,
                                            std::int64_t BlockExtent::*step, const Rows& rows) {
  std::int64_t least = first % rows.count;
  std::int64_t most = least;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const BlockExtent whole = extents[i];
    const std::int64_t own = whole.*step;
    if (own % rows.count == 0) {
      continue;
    }
    if (whole.count * own > rows.count && rows.count % own == 0) {
      const std::int64_t within = rows.count / own;
      if (whole.count % within != 0) {
        return std::nullopt;
      }
      extents[i] = {within, whole.from_step, whole.to_step};
      extents.push_back({whole.count / within, whole.from_step * within, whole.to_step * within});
    }
    (own < 0 ? least : most) += (extents[i].count - 1) * own;
  }
  if (least < 0 || most >= rows.count) {
    return std::nullopt;
  }
  for (BlockExtent& extent : extents) {
    if (extent.*step % rows.count == 0) {
      extent.*step = extent.*step / rows.count * rows.apart;
    }
  }
  return extents;
}

/// A block of a sample's numbers, counted in a row on both sides, as one of whole tensors.
std::optional<CopiedBlock> of_tensors(const CopiedBlock& block, const Shape& from, const Shape& to,
                                      std::int64_t batch) {
  const Rows read = rows_of(from);
  const Rows written = rows_of(to);
  std::optional<std::vector<BlockExtent>> extents =
      cut(block.extents, block.from_first, &BlockExtent::from_step, read);
  if (extents) {
    extents = cut(*std::move(extents), block.to_first, &BlockExtent::to_step, written);
  }
  if (!extents) {
    return std::nullopt;
  }
  CopiedBlock whole{.extents = *std::move(extents)};
  whole.from_first = block.from_first / read.count * read.apart + block.from_first % read.count;
  whole.to_first = block.to_first / written.count * written.apart + block.to_first % written.count;
  whole.extents.push_back({batch, read.between_samples, written.between_samples});
  return whole;
}

/// The block that writes `size` numbers row by row.
CopiedBlock block_of(const AsStridedLayer& layer) {
  CopiedBlock block{.from_first = layer.storage_offset};
  std::int64_t to_step = 1;
  for (std::size_t i = layer.size.size(); i-- > 0;) {
    block.extents.push_back({layer.size[i], layer.stride[i], to_step});
    to_step *= layer.size[i];
  }
  return block;
}

CopiedBlock whole_sample(std::int64_t count) { return {.extents = {{count, 1, 1}}}; }

std::int64_t batch_of(const Shape& shape) {
  return shape.size() == dimensions_of_sequences ? shape[1] : shape[0];
}

/// Emits copies of the block of each sample; `scratch` makes a tensor [batch, numbers of a sample].
template <class Step, class Scratch>
void copy(Step& step, Id from, Id to, const CopiedBlock& block, const Scratch& scratch) {
  const Shape read = step.tensor(from).shape;
  const Shape written = step.tensor(to).shape;
  const std::int64_t batch = batch_of(read);
  if (const std::optional<CopiedBlock> whole = of_tensors(block, read, written, batch)) {
    step.emit(Rearrange{.x = {from}, .y = {to}, .blocks = {*whole}});
    return;
  }
  const auto through = [&](const char* name, const Shape& shape) {
    return scratch(name, Shape{batch, of_a_sample(shape, batch)});
  };
  if (read.size() != dimensions_of_vectors) {
    const Id row = through("read in a row", read);
    copy(step, from, row, whole_sample(of_a_sample(read, batch)), scratch);
    copy(step, row, to, block, scratch);
  } else {
    const Id row = through("written in a row", written);
    copy(step, from, row, block, scratch);
    copy(step, row, to, whole_sample(of_a_sample(written, batch)), scratch);
  }
}

/// The places that a block reads, each of them once, and how gradients come back to them.
struct ReadPlaces {
  std::int64_t count = 1, repeats = 1;
  CopiedBlock sorted;  // from what is written to `repeats` numbers of each place
  CopiedBlock back;    // from the places to what is read
};

/// Whether each combination of steps leads to a place of its own.
bool are_apart(std::vector<BlockExtent> extents) {
  std::sort(extents.begin(), extents.end(), [](const BlockExtent& a, const BlockExtent& b) {
    return std::abs(a.from_step) < std::abs(b.from_step);
  });
  std::int64_t reached = 0;
  return std::all_of(extents.begin(), extents.end(), [&](const BlockExtent& extent) {
    const std::int64_t step = std::abs(extent.from_step);
    const bool is_beyond = step > reached;
    reached += (extent.count - 1) * step;
    return is_beyond;
  });
}

/// Which extents read what others read as well. The longest are kept apart.
std::vector<bool> repeating(const std::vector<BlockExtent>& extents) {
  std::vector<std::size_t> longest(extents.size());
  std::iota(longest.begin(), longest.end(), std::size_t{0});
  std::stable_sort(longest.begin(), longest.end(), [&](std::size_t a, std::size_t b) {
    return extents[a].count > extents[b].count;
  });
  std::vector<bool> repeats(extents.size(), false);
  std::vector<BlockExtent> apart;
  for (const std::size_t i : longest) {
    apart.push_back(extents[i]);
    if (!are_apart(apart)) {
      apart.pop_back();
      repeats[i] = true;
    }
  }
  return repeats;
}

/// Where repeating extents have steps, everything between the first and the last number that is
/// read is a place.
ReadPlaces places_of(const CopiedBlock& block) {
  const std::vector<bool> repeats = repeating(block.extents);
  ReadPlaces read{.back = {.to_first = block.from_first}};
  std::int64_t least = 0;
  std::int64_t most = 0;
  bool meet = false;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const BlockExtent& extent = block.extents[i];
    const std::int64_t goes = (extent.count - 1) * extent.from_step;
    (goes < 0 ? least : most) += goes;
    meet = meet || (repeats[i] && goes != 0);
    read.repeats *= repeats[i] ? extent.count : 1;
  }
  std::int64_t repeated = 1;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const BlockExtent& extent = block.extents[i];
    std::int64_t place = meet ? extent.from_step : 0;
    std::int64_t repeat = 0;
    if (repeats[i]) {
      repeat = std::exchange(repeated, repeated * extent.count);
    } else if (!meet) {
      place = std::exchange(read.count, read.count * extent.count);
      read.back.extents.push_back({extent.count, place, extent.from_step});
    }
    read.sorted.extents.push_back({extent.count, extent.to_step, place * read.repeats + repeat});
  }
  if (meet) {
    read.count = most - least + 1;
    read.sorted.to_first = -least * read.repeats;
    read.back.to_first += least;
    read.back.extents = {{read.count, 1, 1}};
  } else if (read.back.extents.empty()) {
    read.back.extents = {{1, 1, 1}};
  }
  return read;
}

}  // namespace

Shape AsStridedLayer::infer(LayerShapes& shapes) const {
  Shape sample = shapes.input();
  const bool is_sequence = sample.size() == dimensions_of_sequences && sample[1] == any_batch;
  const bool is_other =
      sample.size() == dimensions_of_vectors || sample.size() == dimensions_of_images;
  shapes.require(is_sequence || (is_other && sample.front() == any_batch),
                 "reads vectors, sequences or images");
  std::erase(sample, any_batch);
  shapes.require(!size.empty() && size.size() == stride.size(),
                 "has " + std::to_string(stride.size()) + " strides for " +
                     std::to_string(size.size()) + " sizes");
  std::int64_t least = storage_offset;
  std::int64_t most = storage_offset;
  for (std::size_t i = 0; i < size.size(); ++i) {
    const std::int64_t goes = (size[i] - 1) * stride[i];
    (goes < 0 ? least : most) += goes;
  }
  shapes.require(least >= 0 && most < elements(sample),
                 "reads number " + std::to_string(least < 0 ? least : most) +
                     " of a sample that has " + std::to_string(elements(sample)));
  shapes.require(
      elements(shape) == elements(size) && shape.size() < dimensions_of_images,
      "can't give " + std::to_string(elements(size)) + " numbers as " + to_string(shape));
  if (shape.size() == 2) {
    return {shape[0], any_batch, shape[1]};
  }
  Shape whole{any_batch};
  whole.insert(whole.end(), shape.begin(), shape.end());
  return whole;
}

void AsStridedLayer::forward(LayerForward& step) const {
  int made = 0;
  copy(step, step.x(), step.y(), block_of(*this), [&](const char* name, const Shape& row) {
    std::string own(name);
    own.append(" ").append(std::to_string(made++));
    return step.save(own, row, step.tensor(step.y()).type);
  });
}

/// What is read once gets its gradient; what is read several times, the mean of its gradients times
/// how often that is at most; what is not read, none.
void AsStridedLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx == none) {
    return;
  }
  const Tensor dy = step.tensor(step.dy());
  const std::int64_t batch = batch_of(dy.shape);
  const auto scratch = [&](const char* name, const Shape& row) {
    return step.scratch(std::string("gradient ") + name, row, dy.type);
  };
  const ReadPlaces read = places_of(block_of(*this));
  if (read.repeats == 1) {
    return copy(step, step.dy(), dx, read.back, scratch);
  }
  const Shape row{batch, read.count};
  const Id all =
      step.scratch("gradients of what repeats", {batch, read.count, 1, read.repeats}, dy.type);
  const Id mean = step.scratch("mean of its gradients", row, dy.type);
  const Id sum = step.scratch("sum of its gradients", row, dy.type);
  copy(step, step.dy(), all, read.sorted, scratch);
  step.emit(Pool{.kind = PoolKind::global_average, .x = all, .y = mean});
  step.emit(
      Map{.x = mean,
          .y = sum,
          .function = functions::Affine{.scale = static_cast<double>(read.repeats), .shift = 0}});
  copy(step, sum, dx, read.back, scratch);
}

}  // namespace crossover
