// SPDX-License-Identifier: Apache-2.0
// Recurrent layers over all their time steps, and their gradients: backpropagation through time.
#pragma once

#include <variant>
#include <vector>

#include "crossover/cells.h"
#include "crossover/operation.h"

namespace crossover {

/// Of x [time, batch, in] and w_hh [wide, hidden], where `wide` is hidden for each gate.
struct RecurrentSizes {
  RecurrentSizes(const Shape& x, const Shape& w_hh)
      : time(x[0]), batch(x[1]), in(x[2]), hidden(w_hh[1]), wide(w_hh[0]) {}

  [[nodiscard]] std::int64_t rows() const { return time * batch; }
  /// Elements of a time step.
  [[nodiscard]] std::int64_t states() const { return batch * hidden; }
  [[nodiscard]] std::int64_t gates() const { return batch * wide; }

  std::int64_t time, batch, in, hidden, wide;
};

/// For each t what the cell makes of x, and of h and `kept` of t - 1, which are 0 before the first.
/// x [time, batch, in], w_ih [wide, in], w_hh [wide, hidden], b_ih and b_hh [wide], h [time, batch,
/// hidden]; gates [time, batch, wide], behind their activation, and `kept` [time, batch, hidden]
/// are for the gradient. x, weights, h and gates are T; biases and `kept` f32. The recurrence reads
/// h as it is stored.
struct Recurrent {
  Cell cell;
  Id x = none, w_ih = none, w_hh = none, b_ih = none, b_hh = none;
  Id h = none, gates = none, kept = none;

  [[nodiscard]] const char* name() const { return facts_of(cell).name; }
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
    see.writes(facts_of(cell).kept, kept);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  [[nodiscard]] std::vector<OpProduct> products(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Gradients from dh, like h. di and dk [time, batch, wide] T hold those of the gates' sums;
/// products read them as they are stored. There is no dk where the cell's is di. carry f32 [batch,
/// hidden] ends as what reaches h before the first time step without a product. Of a cell that
/// keeps its state it is [2, batch, hidden]: what reaches h of the first time step from the second,
/// 0 where there is none, and what reaches `kept` before the first. dx like x or none; dw_ih,
/// dw_hh, db_ih and db_hh like what they are gradients of, in f32.
struct RecurrentGrad {
  Cell cell;
  Id x = none, w_ih = none, w_hh = none, h = none, gates = none, kept = none, dh = none;
  Id di = none, dk = none, carry = none;
  Id dx = none, dw_ih = none, dw_hh = none, db_ih = none, db_hh = none;

  [[nodiscard]] bool is_apart() const { return facts_of(cell).is_apart; }
  [[nodiscard]] Id of_states() const { return is_apart() ? dk : di; }

  [[nodiscard]] const char* name() const { return facts_of(cell).grad_name; }
  static constexpr OpCategory category = OpCategory::product;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("w_ih", w_ih);
    see.reads("w_hh", w_hh);
    see.reads("h", h);
    see.reads("gates", gates);
    see.reads(facts_of(cell).kept, kept);
    see.reads("dh", dh);
    see.writes(facts_of(cell).di_name, di);
    if (is_apart()) {
      see.writes("dk", dk);
    }
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
