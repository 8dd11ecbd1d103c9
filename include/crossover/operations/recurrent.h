// SPDX-License-Identifier: Apache-2.0
// Recurrent layers over all their time steps.
#pragma once

#include <vector>

#include "crossover/operation.h"

namespace crossover {

// ---- A layer of long short-term memory (Hochreiter & Schmidhuber 1997) over whole sequences, and
// its gradients (backpropagation through time). Formulas and order of the gates are PyTorch's.

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

// ---- A layer of gated recurrent units (Cho et al. 2014) over whole sequences, and its gradients
// (backpropagation through time). Formulas and order of the gates are PyTorch's, whose reset gate
// stands behind the product by the recurrent weights.

constexpr std::int64_t gru_gate_count = 3;  ///< r, z, n

/// For each t, from h of t - 1, which is 0 before the first: with the parts r, z and n of `hidden`
/// numbers of i = w_ih x + b_ih and of k = w_hh h + b_hh,
/// r = sigmoid(i_r + k_r), z = sigmoid(i_z + k_z), n = tanh(i_n + r k_n), h = (1 - z) n + z h.
/// x [time, batch, in], w_ih [3 hidden, in], w_hh [3 hidden, hidden], b_ih and b_hh [3 hidden],
/// h [time, batch, hidden]; gates [time, batch, 3 hidden], r, z and n, and recurrent, k_n
/// [time, batch, hidden], are kept for the gradient. x, weights, h and gates are T; biases and
/// `recurrent` f32. The recurrence reads h as it is stored.
struct Gru {
  Id x = none, w_ih = none, w_hh = none, b_ih = none, b_hh = none;
  Id h = none, gates = none, recurrent = none;

  static constexpr const char* name = "Gru";
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
    see.writes("recurrent", recurrent);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  [[nodiscard]] std::vector<OpProduct> products(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Gradients of a Gru from dh, like its h. di and dk [time, batch, 3 hidden] T hold the gradients
/// of i and k; products read them as they are stored. carry [batch, hidden] f32 ends as what
/// reaches h before the first time step without a product. dx like x or none; dw_ih, dw_hh, db_ih
/// and db_hh like what they are gradients of, in f32.
struct GruGrad {
  Id x = none, w_ih = none, w_hh = none, h = none, gates = none, recurrent = none, dh = none;
  Id di = none, dk = none, carry = none;
  Id dx = none, dw_ih = none, dw_hh = none, db_ih = none, db_hh = none;

  static constexpr const char* name = "GruGrad";
  static constexpr OpCategory category = OpCategory::product;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("w_ih", w_ih);
    see.reads("w_hh", w_hh);
    see.reads("h", h);
    see.reads("gates", gates);
    see.reads("recurrent", recurrent);
    see.reads("dh", dh);
    see.writes("di", di);
    see.writes("dk", dk);
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
