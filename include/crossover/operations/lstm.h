// SPDX-License-Identifier: Apache-2.0
// A layer of long short-term memory (Hochreiter & Schmidhuber 1997) over whole sequences, and its
// gradients (backpropagation through time). Formulas and order of the gates are PyTorch's.
#pragma once

#include <vector>

#include "crossover/operation.h"

namespace crossover {

constexpr std::int64_t gate_count = 4;  ///< of a cell: i, f, g, o

/// For each t, from h and c of t - 1, which are 0 before the first:
/// gates before their activation = w_ih x + b_ih + w_hh h + b_hh, in four parts of `hidden`:
/// i, f, g, o; i, f and o through the sigmoid, g through tanh; c = f c + i g; h = o tanh(c).
/// x [time, batch, in], w_ih [4 hidden, in], w_hh [4 hidden, hidden], b_ih and b_hh [4 hidden],
/// h [time, batch, hidden]; gates [time, batch, 4 hidden], behind their activation, and
/// c [time, batch, hidden] are kept for the gradient. x, weights, h and gates are T; biases and c
/// f32. The recurrence reads h as it is stored.
struct Lstm {
  Id x = none, w_ih = none, w_hh = none, b_ih = none, b_hh = none;
  Id h = none, gates = none, c = none;

  static constexpr const char* name = "Lstm";
  static constexpr OpCategory category = OpCategory::product;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("w_ih", w_ih);
    see.reads("w_hh", w_hh);
    see.reads("b_ih", b_ih);
    see.reads("b_hh", b_hh);
    see.writes("h", h);
    see.writes("gates", gates);
    see.writes("c", c);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  [[nodiscard]] std::vector<OpProduct> products(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Gradients of an Lstm from dh, like its h. dgates [time, batch, 4 hidden] T holds the gradients
/// of the gates before their activation; products read it as it is stored. carry [2, batch, hidden]
/// f32 ends as the gradient that reaches h of the first time step from the second, 0 where there is
/// none, and the one that reaches c before the first. dx like x or none; dw_ih, dw_hh, db_ih and
/// db_hh like what they are gradients of, in f32. db_hh equals db_ih.
struct LstmGrad {
  Id x = none, w_ih = none, w_hh = none, h = none, gates = none, c = none, dh = none;
  Id dgates = none, carry = none, dx = none, dw_ih = none, dw_hh = none, db_ih = none, db_hh = none;

  static constexpr const char* name = "LstmGrad";
  static constexpr OpCategory category = OpCategory::product;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("w_ih", w_ih);
    see.reads("w_hh", w_hh);
    see.reads("h", h);
    see.reads("gates", gates);
    see.reads("c", c);
    see.reads("dh", dh);
    see.writes("dgates", dgates);
    see.writes("carry", carry);
    see.writes("dx", dx);
    see.writes("dw_ih", dw_ih);
    see.writes("dw_hh", dw_hh);
    see.writes("db_ih", db_ih);
    see.writes("db_hh", db_hh);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  [[nodiscard]] std::vector<OpProduct> products(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
