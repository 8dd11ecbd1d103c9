// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "../base/layout.h"
#include "../base/threads.h"
#include "crossover/float16.h"
#include "operations.h"

namespace crossover::cpu {

// ---- Rearrange

namespace {

constexpr std::size_t of_images = 4;  // dimensions

/// How a tensor lies, or will from now on: of images the layout that all loops share. Row-major
/// where `plain`.
struct LyingTensor {
  Layout layout;
  ChannelsLie channels;
};

LyingTensor place_of(Id id, bool plain, Lowering& to) {
  const Tensor& tensor = to[id];
  if (plain || tensor.shape.size() != of_images) {
    to.settle(id, {});
    return {};
  }
  const Layout image = image_layout(tensor);
  if (to.settle(id, image) != image) {
    return {};
  }
  const ImageRows rows(tensor, tensor.type);
  return {image, {rows.channels * rows.blocks, rows.pixels(), rows.channels}};
}

/// The blocks as the tensors lie; none where these cut them.
std::optional<std::vector<CopiedBlock>> blocks_of(const Rearrange& op,
                                                  const std::vector<LyingTensor>& x,
                                                  const std::vector<LyingTensor>& y) {
  std::vector<CopiedBlock> blocks;
  for (const CopiedBlock& block : op.blocks) {
    const std::optional<CopiedBlock> one =
        lying(block, x[static_cast<std::size_t>(block.from)].channels,
              y[static_cast<std::size_t>(block.to)].channels);
    if (!one) {
      return std::nullopt;
    }
    blocks.push_back(*one);
  }
  return blocks;
}

/// Row by row of its last extent.
template <class T>
void copy_block(int threads, const CopiedBlock& block, const T* from, T* to) {
  const BlockExtent inner = block.extents.back();
  split(
      threads, block.count() / inner.count,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const T* read = from + block.from_first;
          T* write = to + block.to_first;
          std::int64_t rest = row;
          for (std::size_t e = block.extents.size() - 1; e-- > 0;) {
            const BlockExtent& extent = block.extents[e];
            read += rest % extent.count * extent.from_step;
            write += rest % extent.count * extent.to_step;
            rest /= extent.count;
          }
          if (inner.from_step == 1 && inner.to_step == 1) {
            std::memcpy(write, read, static_cast<std::size_t>(inner.count) * sizeof(T));
          } else {
            for (std::int64_t i = 0; i < inner.count; ++i) {
              write[i * inner.to_step] = read[i * inner.from_step];
            }
          }
        }
      },
      1);
}

template <class T>
void add_kernel(const Rearrange& op, std::vector<CopiedBlock> blocks,
                const std::vector<Argument>& all, Lowering& to) {
  struct Cleared {
    std::size_t operand;
    std::int64_t count;
  };
  std::vector<Cleared> cleared;
  double bytes_written = 0;
  for (std::size_t i = 0; i < op.y.size(); ++i) {
    const std::int64_t count = to.count(op.y[i]);
    bytes_written += static_cast<double>(bytes(to[op.y[i]]));
    if (!op.fills(i, count)) {
      cleared.push_back({op.x.size() + i, count});
    }
  }
  to.add(OpCategory::elementwise, to.threads_for_bytes(bytes_written), all,
         [blocks = std::move(blocks), cleared, reads = op.x.size()](const Invocation& call) {
           for (const Cleared& one : cleared) {
             T* numbers = call.operand<T>(one.operand);
             split(call.threads, one.count, [=](std::int64_t begin, std::int64_t end) {
               std::fill(numbers + begin, numbers + end, T{});
             });
           }
           for (const CopiedBlock& block : blocks) {
             copy_block(call.threads, block,
                        call.operand<const T>(static_cast<std::size_t>(block.from)),
                        call.operand<T>(reads + static_cast<std::size_t>(block.to)));
           }
         });
}

}  // namespace

void lower(const Rearrange& op, Lowering& to) {
  std::vector<LyingTensor> x;
  std::vector<LyingTensor> y;
  std::optional<std::vector<CopiedBlock>> blocks;
  for (const bool plain : {false, true}) {
    if (blocks) {
      break;
    }
    x.clear();
    y.clear();
    for (const Id id : op.x) {
      x.push_back(place_of(id, plain, to));
    }
    for (const Id id : op.y) {
      y.push_back(place_of(id, plain, to));
    }
    blocks = blocks_of(op, x, y);
  }
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < op.x.size(); ++i) {
    arguments.push_back(reads(op.x[i], x[i].layout));
  }
  for (std::size_t i = 0; i < op.y.size(); ++i) {
    arguments.push_back(writes(op.y[i], y[i].layout));
  }
  if (bytes(to[op.x.front()].type) == sizeof(std::uint16_t)) {
    add_kernel<std::uint16_t>(op, std::move(*blocks), arguments, to);
  } else {
    add_kernel<std::uint32_t>(op, std::move(*blocks), arguments, to);
  }
}

// ---- Reshape

void lower(const Reshape& op, Lowering& to) {
  const bool is_plain = to.settle(op.x, {}).is_plain();
  if (is_plain != to.settle(op.y, {}).is_plain()) {
    to.add_reorder(OpCategory::reorder, op.x, op.y);
    return;
  }
  to.add(OpCategory::elementwise, to.threads_for(op.x), {reads(op.x), writes(op.y)},
         [n = bytes(to[op.x])](const Invocation& call) {
           const auto* from = call.operand<const std::byte>(0);
           auto* into = call.operand<std::byte>(1);
           split(
               call.threads, n,
               [=](std::int64_t begin, std::int64_t end) {
                 std::memcpy(into + begin, from + begin, static_cast<std::size_t>(end - begin));
               },
               64);
         });
}

// ---- Cast

namespace {

template <class From, class To>
void cast(int threads, const From* x, To* y, std::int64_t count) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = narrowed<To>(widened(x[i]));
    }
  });
}

}  // namespace

void lower(const Cast& op, Lowering& to) {
  const Layout from = to.settle(op.x, {});
  const Layout into = to.settle(op.y, {});
  if (!from.is_ordered_like(into)) {  // oneDNN converts both at once
    to.add_reorder(OpCategory::elementwise, op.x, op.y);
    return;
  }
  // Padding is zero in both.
  const std::int64_t stored = from.bytes(to[op.x]) / bytes(to[op.x].type);
  with_float(to[op.x].type, [&](auto from_zero) {
    with_float(to[op.y].type, [&](auto into_zero) {
      using From = decltype(from_zero);
      using To = decltype(into_zero);
      if constexpr (std::is_same_v<From, float> || std::is_same_v<To, float>) {
        to.add(OpCategory::elementwise, to.threads_for(op.x),
               {reads(op.x, from), writes(op.y, into)}, [n = stored](const Invocation& call) {
                 cast(call.threads, call.operand<const From>(0), call.operand<To>(1), n);
               });
      }
    });
  });
}

// ---- Zero

void lower(const Zero& op, Lowering& to) {
  for (const UpdateSpan& span : update_spans(to, {&op.tensors}, {})) {
    to.add(OpCategory::elementwise, span.threads(to), {writes(span.first[0], span.layout)},
           [n = span.floats](const Invocation& call) {
             auto* values = call.operand<float>(0);
             split(call.threads, n, [=](std::int64_t begin, std::int64_t end) {
               std::fill(values + begin, values + end, 0.0F);
             });
           });
  }
}

}  // namespace crossover::cpu
