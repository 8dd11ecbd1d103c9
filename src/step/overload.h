// SPDX-License-Identifier: Apache-2.0
// std::visit with one lambda for each alternative, so that a forgotten one does not compile.
#pragma once

namespace crossover {

template <class... Lambdas>
struct Overload : Lambdas... {
  using Lambdas::operator()...;
};
template <class... Lambdas>
Overload(Lambdas...) -> Overload<Lambdas...>;

}  // namespace crossover
