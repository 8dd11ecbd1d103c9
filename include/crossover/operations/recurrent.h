// SPDX-License-Identifier: Apache-2.0
// Recurrent layers over all their time steps, and their gradients: backpropagation through time.
#pragma once

#include <type_traits>
#include <variant>
#include <vector>

#include "crossover/activation.h"
#include "crossover/host_device.h"
#include "crossover/operation.h"

namespace crossover {

// ---- The units of recurrent layers: what tells one kind from another, and its arithmetic, written
// once: for vectors of the CPU, for CUDA kernels, and in double for the reference. A new kind is a
// struct like these in Cell. Formulas and order of the gates are PyTorch's.

// Formulas are written in Maths, as in functions.h. In a time step each gate has two sums, i = w_ih
// x + b_ih and k = w_hh h + b_hh. forward() takes them and what goes on from the step before:
// `before`, which is c or h, and 0 at first. It makes the gates, h, and `kept`, which the gradient
// reads too. backward() takes of_h, what reaches h, and `carried`, what reaches `before` of the
// next step without a product, which becomes that of its own; it makes di and dk, the gradients of
// i and k.

/// Long short-term memory (Hochreiter & Schmidhuber 1997), with gates i, f, g, o: i, f and o
/// through the sigmoid, g through tanh; c = f c + i g; h = o tanh(c).
struct LstmCell {
  static constexpr const char* name = "Lstm";
  static constexpr const char* grad_name = "LstmGrad";
  static constexpr const char* layer = "lstm";
  static constexpr const char* kept = "c";
  static constexpr const char* di_name = "dgates";
  static constexpr int gates = 4;
  /// `kept` is the state that goes on, besides what h does by the products; else h is.
  static constexpr bool keeps_state = true;
  /// i and k count apart; else their sum does, and dk is di.
  static constexpr bool is_apart = false;
  // Besides the products: of a gate two biases, a sum and 4 for its activation, and of a unit 3 for
  // c and 5 for h; backward 4 and a sum for the bias, and 10.
  static constexpr double gate_flops = 7, unit_flops = 8;
  static constexpr double grad_gate_flops = 5, grad_unit_flops = 10;

  template <class Maths, class V = typename Maths::Number>
  CROSSOVER_HOST_DEVICE static void forward(const V* i, const V* k, V before, V* gate, V& c, V& h) {
    gate[0] = sigmoid_of(Maths(), i[0] + k[0]);
    gate[1] = sigmoid_of(Maths(), i[1] + k[1]);
    gate[2] = Maths::hyperbolic_tangent(i[2] + k[2]);
    gate[3] = sigmoid_of(Maths(), i[3] + k[3]);
    c = gate[1] * before + gate[0] * gate[2];
    h = gate[3] * Maths::hyperbolic_tangent(c);
  }

  template <class Maths, class V = typename Maths::Number>
  CROSSOVER_HOST_DEVICE static void backward(const V* gate, V c, V before, V of_h, V& carried,
                                             V* di, V* /*dk*/) {
    const V bent = Maths::hyperbolic_tangent(c);
    const V of_c = carried + of_h * gate[3] * (1.0F - bent * bent);
    di[0] = of_c * gate[2] * (gate[0] * (1.0F - gate[0]));
    di[1] = of_c * before * (gate[1] * (1.0F - gate[1]));
    di[2] = of_c * gate[0] * (1.0F - gate[2] * gate[2]);
    di[3] = of_h * bent * (gate[3] * (1.0F - gate[3]));
    carried = of_c * gate[1];
  }
};

/// Gated recurrent units (Cho et al. 2014), with gates r, z, n, whose reset gate stands behind the
/// product: r = sigmoid(i_r + k_r), z = sigmoid(i_z + k_z), n = tanh(i_n + r k_n),
/// h = (1 - z) n + z h. It keeps k_n.
struct GruCell {
  static constexpr const char* name = "Gru";
  static constexpr const char* grad_name = "GruGrad";
  static constexpr const char* layer = "gru";
  static constexpr const char* kept = "recurrent";
  static constexpr const char* di_name = "di";
  static constexpr int gates = 3;
  static constexpr bool keeps_state = false;
  static constexpr bool is_apart = true;
  // Of a unit 1 for the reset and 4 for h; backward there are two sums for biases.
  static constexpr double gate_flops = 7, unit_flops = 5;
  static constexpr double grad_gate_flops = 6, grad_unit_flops = 8;

  template <class Maths, class V = typename Maths::Number>
  CROSSOVER_HOST_DEVICE static void forward(const V* i, const V* k, V before, V* gate, V& recurrent,
                                            V& h) {
    gate[0] = sigmoid_of(Maths(), i[0] + k[0]);
    gate[1] = sigmoid_of(Maths(), i[1] + k[1]);
    gate[2] = Maths::hyperbolic_tangent(i[2] + gate[0] * k[2]);
    recurrent = k[2];
    h = (1.0F - gate[1]) * gate[2] + gate[1] * before;
  }

  template <class Maths, class V = typename Maths::Number>
  CROSSOVER_HOST_DEVICE static void backward(const V* gate, V recurrent, V before, V of_h,
                                             V& carried, V* di, V* dk) {
    const V r = gate[0];
    const V z = gate[1];
    const V n = gate[2];
    di[2] = of_h * (1.0F - z) * (1.0F - n * n);
    di[1] = of_h * (before - n) * (z * (1.0F - z));
    di[0] = di[2] * recurrent * (r * (1.0F - r));
    dk[0] = di[0];
    dk[1] = di[1];
    dk[2] = di[2] * r;
    carried = of_h * z;
  }
};

using Cell = std::variant<LstmCell, GruCell>;

/// What is known of a cell where its kind is not known to the compiler.
struct CellFacts {
  const char *name, *grad_name;
  const char *kept, *di_name;
  int gates;
  bool keeps_state, is_apart;
};

inline CellFacts facts_of(const Cell& cell) {
  return std::visit(
      [](auto unit) -> CellFacts {
        return {.name = unit.name,
                .grad_name = unit.grad_name,
                .kept = unit.kept,
                .di_name = unit.di_name,
                .gates = unit.gates,
                .keeps_state = unit.keeps_state,
                .is_apart = unit.is_apart};
      },
      cell);
}

/// The type of what goes on from step to step, in a layer that stores T.
template <class Unit, class T>
using Before = std::conditional_t<Unit::keeps_state, float, T>;

// ---- The operations

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
