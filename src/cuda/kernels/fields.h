// SPDX-License-Identifier: Apache-2.0
// The fields of a plain struct one by one, which C++20 has no word for: how many there are, by
// trying, and their values, by structured bindings of that number.
#pragma once

#include <cstddef>

namespace crossover::cuda {

/// Takes the place of any field.
struct AnyField {
  template <class T>
  // NOLINTNEXTLINE(google-explicit-constructor): that is what it is for
  operator T() const;
};

template <class Struct, class... Fields>
constexpr std::size_t count_fields() {
  if constexpr (requires { Struct{Fields{}..., AnyField{}}; }) {
    return count_fields<Struct, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

/// A `To` whose fields are turn(field) of those of the other struct, which has as many.
template <class To, class From, class Turn>
To with_turned_fields(const From& from, const Turn& turn) {
  constexpr std::size_t count = count_fields<From>();
  static_assert(count == count_fields<To>());
  static_assert(count <= 11, "one more case below");
  const auto all = [&](const auto&... field) { return To{turn(field)...}; };
  if constexpr (count == 0) {
    return all();
  } else if constexpr (count == 1) {
    const auto& [a] = from;
    return all(a);
  } else if constexpr (count == 2) {
    const auto& [a, b] = from;
    return all(a, b);
  } else if constexpr (count == 3) {
    const auto& [a, b, c] = from;
    return all(a, b, c);
  } else if constexpr (count == 4) {
    const auto& [a, b, c, d] = from;
    return all(a, b, c, d);
  } else if constexpr (count == 5) {
    const auto& [a, b, c, d, e] = from;
    return all(a, b, c, d, e);
  } else if constexpr (count == 6) {
    const auto& [a, b, c, d, e, f] = from;
    return all(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    const auto& [a, b, c, d, e, f, g] = from;
    return all(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    const auto& [a, b, c, d, e, f, g, h] = from;
    return all(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    const auto& [a, b, c, d, e, f, g, h, i] = from;
    return all(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    const auto& [a, b, c, d, e, f, g, h, i, j] = from;
    return all(a, b, c, d, e, f, g, h, i, j);
  } else {
    const auto& [a, b, c, d, e, f, g, h, i, j, k] = from;
    return all(a, b, c, d, e, f, g, h, i, j, k);
  }
}

}  // namespace crossover::cuda
