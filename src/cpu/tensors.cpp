// SPDX-License-Identifier: Apache-2.0
#include "tensors.h"

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace crossover::cpu {
namespace {

void convert(const Reorder& reorder, const std::byte* from, std::byte* to) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  // oneDNN does not write through its inputs.
  dnnl::memory before(reorder.from, engine, const_cast<std::byte*>(from));
  dnnl::memory after(reorder.to, engine, to);
  dnnl::reorder(before, after).execute(stream, before, after);
  stream.wait();
}

}  // namespace

std::vector<std::int64_t> physical_bytes(const std::vector<Tensor>& tensors,
                                         const std::vector<Layout>& layouts) {
  std::vector<std::int64_t> bytes;
  bytes.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    bytes.push_back(layouts[i].bytes(tensors[i]));
  }
  return bytes;
}

Tensors::Tensors(std::vector<Tensor> tensors, std::vector<Layout> layouts, MemoryPlan plan,
                 int threads)
    : tensors_(std::move(tensors)),
      layouts_(std::move(layouts)),
      plan_(std::move(plan)),
      memory_(allocate(plan_.bytes, threads)) {}

void Tensors::upload(Id id, std::span<const std::byte> from) {
  std::byte* to = place(id, from.size());
  if (layout(id).is_plain()) {
    std::memcpy(to, from.data(), from.size());
  } else {
    convert(Reorder(tensor(id), {}, layout(id)), from.data(), to);
  }
}

void Tensors::download(Id id, std::span<std::byte> to) const {
  const std::byte* from = place(id, to.size());
  if (layout(id).is_plain()) {
    std::memcpy(to.data(), from, to.size());
  } else {
    convert(Reorder(tensor(id), layout(id), {}), from, to.data());
  }
}

std::byte* Tensors::place(Id id, std::size_t size) const {
  const std::int64_t offset = plan_.offset.at(static_cast<std::size_t>(id));
  if (offset < 0 || static_cast<std::int64_t>(size) != bytes(tensor(id))) {
    throw std::invalid_argument("tensor '" + tensor(id).name + "' can't be copied in " +
                                std::to_string(size) + " bytes");
  }
  return memory_.get() + offset;
}

/// Data lies as it is.
void Tensors::upload_row(Id id, std::int64_t row, std::span<const std::byte> from) {
  std::byte* all = memory_.get() + plan_.offset[static_cast<std::size_t>(id)];
  std::memcpy(all + row * std::ssize(from), from.data(), from.size());
}

Operand Tensors::operand(Id id) const {
  if (id == none) {
    return {};
  }
  const Tensor& of = tensor(id);
  const bool view = of.role == Role::input;
  const std::int64_t offset = plan_.offset[static_cast<std::size_t>(view ? of.source : id)];
  return Operand(memory_.get() + offset, view ? bytes(of) / of.shape[0] : 0);
}

}  // namespace crossover::cpu
