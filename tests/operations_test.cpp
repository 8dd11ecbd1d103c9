// SPDX-License-Identifier: Apache-2.0
// What every operation says of itself: describe() leaves nothing out.
#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "crossover/step.h"

namespace crossover::test {
namespace {

/// Converts to the type of any member.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

/// How many members the aggregate has: as many as it can be initialized with.
template <class T, class... Members>
consteval std::size_t member_count() {
  if constexpr (requires { T{Members{}..., Anything{}}; }) {
    return member_count<T, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

class MemberNames {
 public:
  void reads(const std::string& name, const auto& /*operand*/) { names_.insert(name); }
  void writes(const std::string& name, const auto& /*operand*/) { names_.insert(name); }
  void value(const std::string& name, const auto& /*value*/) { names_.insert(name); }
  void newer_reads(const std::string& name, Id /*operand*/) { names_.insert(name); }
  void newer_value(const std::string& name, const auto& /*value*/, const auto& /*before*/) {
    names_.insert(name);
  }
  [[nodiscard]] std::size_t count() const { return names_.size(); }

 private:
  std::set<std::string> names_;
};

template <class Operation>
void expect_described() {
  MemberNames names;
  Operation{}.describe(names);
  EXPECT_EQ(names.count(), member_count<Operation>()) << Operation::name;
}

template <std::size_t... Alternative>
void expect_all_described(std::index_sequence<Alternative...> /*all*/) {
  (expect_described<std::variant_alternative_t<Alternative, Op>>(), ...);
}

TEST(Operations, DescribeEveryMember) {
  expect_all_described(std::make_index_sequence<std::variant_size_v<Op>>());
}

}  // namespace
}  // namespace crossover::test
