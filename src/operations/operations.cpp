// SPDX-License-Identifier: Apache-2.0
// What can be asked of any operation.
#include "crossover/operations.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

namespace crossover {
namespace {

class OperandList {
 public:
  void reads(const char* /*name*/, Id id) { add(operands_.reads, id); }
  void writes(const char* /*name*/, Id id) { add(operands_.writes, id); }
  void reads(const char* /*name*/, const std::vector<Id>& ids) { add(operands_.reads, ids); }
  void writes(const char* /*name*/, const std::vector<Id>& ids) { add(operands_.writes, ids); }
  template <class Value>
  void value(const char* /*name*/, const Value& /*value*/) {}
  void newer_reads(const char* /*name*/, Id id) { add(operands_.reads, id); }
  template <class Value>
  void newer_value(const char* /*name*/, const Value& /*value*/, const Value& /*before*/) {}

  [[nodiscard]] Operands take() { return std::move(operands_); }

 private:
  static void add(std::vector<Id>& to, Id id) {
    if (id != none) {
      to.push_back(id);
    }
  }
  static void add(std::vector<Id>& to, const std::vector<Id>& ids) {
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(to), [](Id id) { return id != none; });
  }

  Operands operands_;
};

}  // namespace

const char* name(const Op& op) {
  return std::visit([](const auto& operation) { return name_of(operation); }, op);
}

OpCategory category(const Op& op) {
  return std::visit([](const auto& operation) { return operation.category; }, op);
}

Operands operands(const Op& op) {
  OperandList list;
  std::visit([&](const auto& operation) { operation.describe(list); }, op);
  return list.take();
}

std::vector<OpProduct> products_of(const Workload& workload, const Op& op) {
  return std::visit(
      [&](const auto& operation) -> std::vector<OpProduct> {
        if constexpr (HasProducts<std::remove_cvref_t<decltype(operation)>>) {
          return operation.products(workload);
        } else {
          return {};
        }
      },
      op);
}

}  // namespace crossover
