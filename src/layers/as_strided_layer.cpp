// SPDX-License-Identifier: Apache-2.0
// A sample's numbers stand in a row while they change places. A sequence has its batch between
// them, and an image may lie otherwise than row by row, so extents are cut at their places and at
// their channels; what can't be cut is first copied into a row.
#include "crossover/layers/as_strided_layer.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "contexts.h"
#include "crossover/operations/global_average_pool.h"
#include "crossover/operations/map.h"

namespace crossover {
namespace {

constexpr std::size_t of_rows = 2;  // dimensions
constexpr std::size_t of_sequences = 3;
constexpr std::size_t of_images = 4;

std::int64_t of_a_sample(const Shape& shape, std::int64_t batch) { return elements(shape) / batch; }

/// How a tensor has the numbers of its samples: so many in a row, `apart` from those of the next.
struct Rows {
  std::int64_t count = 1, apart = 1, between_samples = 1;
};

Rows rows_of(const Shape& shape) {
  if (shape.size() == of_sequences) {
    return {shape[2], shape[1] * shape[2], shape[2]};
  }
  const std::int64_t sample = of_a_sample(shape, shape[0]);
  const std::int64_t row = shape.size() == of_images ? shape[2] * shape[3] : sample;
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
  return shape.size() == of_sequences ? shape[1] : shape[0];
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
  if (read.size() != of_rows) {
    const Id row = through("read in a row", read);
    copy(step, from, row, whole_sample(of_a_sample(read, batch)), scratch);
    copy(step, row, to, block, scratch);
  } else {
    const Id row = through("written in a row", written);
    copy(step, from, row, block, scratch);
    copy(step, row, to, whole_sample(of_a_sample(written, batch)), scratch);
  }
}

}  // namespace

Shape AsStridedLayer::infer(LayerShapes& shapes) const {
  Shape sample = shapes.input();
  const bool is_sequence = sample.size() == of_sequences && sample[1] == any_batch;
  const bool is_other = sample.size() == of_rows || sample.size() == of_images;
  shapes.require(is_sequence || (is_other && sample.front() == any_batch),
                 "reads vectors, sequences or images");
  std::erase(sample, any_batch);
  shapes.require(!size.empty() && size.size() == stride.size(),
                 "has " + std::to_string(stride.size()) + " strides for " +
                     std::to_string(size.size()) + " sizes");
  std::int64_t least = storage_offset;
  std::int64_t most = storage_offset;
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // and how far each goes
  for (std::size_t i = 0; i < size.size(); ++i) {
    const std::int64_t goes = (size[i] - 1) * stride[i];
    (goes < 0 ? least : most) += goes;
    if (goes != 0) {
      steps.emplace_back(std::abs(stride[i]), std::abs(goes));
    }
  }
  shapes.require(least >= 0 && most < elements(sample),
                 "reads number " + std::to_string(least < 0 ? least : most) +
                     " of a sample that has " + std::to_string(elements(sample)));
  std::sort(steps.begin(), steps.end());
  std::int64_t reached = 0;
  for (const auto& [step, goes] : steps) {
    shapes.require(step > reached, "reads numbers twice by strides that are not 0");
    reached += goes;
  }
  shapes.require(
      elements(shape) == elements(size) && shape.size() < of_images,
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

/// What is read once gets its gradient; what is repeated, the mean of its gradients times how often
/// that is; what is not read, none.
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
  const CopiedBlock block = block_of(*this);
  std::int64_t repeats = 1;
  for (const BlockExtent& extent : block.extents) {
    repeats *= extent.from_step == 0 ? extent.count : 1;
  }
  CopiedBlock once{.to_first = storage_offset};  // from the sums, or dy, to dx
  CopiedBlock sorted;                            // from dy to what is added up
  std::int64_t repeated = 1;
  std::int64_t own = 1;
  for (const BlockExtent& extent : block.extents) {
    if (extent.from_step == 0) {
      sorted.extents.push_back({extent.count, extent.to_step, repeated});
      repeated *= extent.count;
    } else {
      sorted.extents.push_back({extent.count, extent.to_step, repeats * own});
      once.extents.push_back({extent.count, own, extent.from_step});
      own *= extent.count;
    }
  }
  if (once.extents.empty()) {
    once.extents = {{1, 1, 1}};
  }
  if (repeats == 1) {
    return copy(step, step.dy(), dx, once, scratch);
  }
  const Id all = step.scratch("gradients of what repeats", {batch, own, 1, repeats}, dy.type);
  const Id mean = step.scratch("mean of its gradients", {batch, own}, dy.type);
  const Id sum = step.scratch("sum of its gradients", {batch, own}, dy.type);
  copy(step, step.dy(), all, sorted, scratch);
  step.emit(GlobalAveragePool{.x = all, .y = mean});
  step.emit(Map{.x = mean,
                .y = sum,
                .function = functions::Affine{.scale = static_cast<double>(repeats), .shift = 0}});
  copy(step, sum, dx, once, scratch);
}

}  // namespace crossover
