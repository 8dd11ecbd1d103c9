// SPDX-License-Identifier: Apache-2.0
// Who makes and who reads the tensors of a step: what decides which of its operations can be
// joined.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "crossover/step.h"

namespace crossover {

class Uses {
 public:
  explicit Uses(const std::vector<Op>& ops) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Operands used = operands(ops[i]);
      for (const Id id : used.reads) {
        readers_[id].push_back(i);
      }
      for (const Id id : used.writes) {
        writer_[id] = i;
      }
    }
  }

  /// Positions of the operations that read it, in their order.
  [[nodiscard]] const std::vector<std::size_t>& readers(Id id) const {
    static const std::vector<std::size_t> nobody;
    const auto at = readers_.find(id);
    return at != readers_.end() ? at->second : nobody;
  }

  /// The position of the operation that writes it last; `otherwise` where none does.
  [[nodiscard]] std::size_t writer(Id id, std::size_t otherwise) const {
    const auto at = writer_.find(id);
    return at != writer_.end() ? at->second : otherwise;
  }

 private:
  std::map<Id, std::vector<std::size_t>> readers_;
  std::map<Id, std::size_t> writer_;
};

}  // namespace crossover
