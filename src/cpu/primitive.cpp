// SPDX-License-Identifier: Apache-2.0
#include "primitive.h"

#include <utility>

namespace crossover::cpu {

std::int64_t scratchpad_bytes(const dnnl::primitive_desc_base& description) {
  return static_cast<std::int64_t>(
      description.query_md(dnnl::query::exec_arg_md, DNNL_ARG_SCRATCHPAD).get_size());
}

BoundPrimitive::BoundPrimitive(const dnnl::primitive_desc_base& description,
                               const dnnl::engine& engine, dnnl::stream stream,
                               std::span<const int> arguments, std::span<const Operand> operands,
                               void* scratchpad)
    : stream_(std::move(stream)), primitive_(description.get()) {
  const auto add = [&](int argument, void* data) {
    memories_.emplace_back(description.query_md(dnnl::query::exec_arg_md, argument), engine, data);
    arguments_.push_back({argument, memories_.back().get()});
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    add(arguments[i], operands[i].at({}));
    if (operands[i].moves()) {
      moving_.push_back({memories_.back().get(), operands[i]});
    }
  }
  add(DNNL_ARG_SCRATCHPAD, scratchpad);
}

void BoundPrimitive::execute(const Position& now) {
  for (const Moving& moving : moving_) {
    dnnl::error::wrap_c_api(dnnl_memory_set_data_handle(moving.memory, moving.operand.at(now)),
                            "oneDNN could not move an operand");
  }
  // The C function, because the C++ one collects its arguments in a vector on every call.
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()),
                             arguments_.data()),
      "oneDNN could not execute a primitive");
}

}  // namespace crossover::cpu
