// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/recurrent.h"

#include <algorithm>
#include <cmath>

#include "../reference/products.h"
#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "crossover/elementwise.h"
#include "fit.h"

namespace crossover {

namespace {

struct Sizes {
  std::int64_t time, batch, in, hidden;
};

/// Of x [time, batch, in] and w_hh [4 hidden, hidden].
Sizes sizes_of(const Shape& x, const Shape& w_hh) {
  return {.time = x[0], .batch = x[1], .in = x[2], .hidden = w_hh[1]};
}

Sizes sizes_of(const Workload& workload, Id x, Id w_hh) {
  return sizes_of(workload[x].shape, workload[w_hh].shape);
}

Sizes checked_sizes(const Fit& fit, Id x, Id w_ih, Id w_hh) {
  fit.require(
      fit.at(x).shape.size() == 3,
      "'" + fit.at(x).name + "' " + to_string(fit.at(x).shape) + " is not [time, batch, features]");
  fit.require(fit.at(w_hh).shape.size() == 2, "'" + fit.at(w_hh).name + "' is not a matrix");
  const Sizes sizes = sizes_of(fit.workload(), x, w_hh);
  const Type type = fit.number(x);
  fit.expect(w_ih, {gate_count * sizes.hidden, sizes.in}, type);
  fit.expect(w_hh, {gate_count * sizes.hidden, sizes.hidden}, type);
  return sizes;
}

/// What is kept from the forward pass.
void check_kept(const Fit& fit, const Sizes& sizes, Type type, Id h, Id gates, Id c) {
  fit.expect(h, {sizes.time, sizes.batch, sizes.hidden}, type);
  fit.expect(gates, {sizes.time, sizes.batch, gate_count * sizes.hidden}, type);
  fit.expect(c, {sizes.time, sizes.batch, sizes.hidden});
}

double product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

}  // namespace

// ---- Lstm

void Lstm::check(const Fit& fit) const {
  const Sizes sizes = checked_sizes(fit, x, w_ih, w_hh);
  check_kept(fit, sizes, fit.number(x), h, gates, c);
  for (const Id bias : {b_ih, b_hh}) {
    fit.expect(bias, {gate_count * sizes.hidden});
  }
}

/// The products (h is 0 at first, and needs none); of each gate three additions and 4 for its
/// activation; for each cell 3 for c and 5 for h. tanh counts like the sigmoid.
Cost Lstm::cost(const Workload& workload) const {
  const Sizes of = sizes_of(workload, x, w_hh);
  const std::int64_t wide = gate_count * of.hidden;
  return {.flops = product(of.time * of.batch, wide, of.in) +
                   product((of.time - 1) * of.batch, wide, of.hidden) + 7 * count(workload, gates) +
                   8 * count(workload, h),
          .launches = 2 * of.time};
}

std::vector<OpProduct> Lstm::products(const Workload& workload) const {
  const Sizes of = sizes_of(workload, x, w_hh);
  const std::int64_t wide = gate_count * of.hidden;
  const Type type = workload[x].type;
  std::vector<OpProduct> all{
      {{.m = of.time * of.batch, .n = wide, .k = of.in, .transpose_b = true, .type = type},
       "forward"}};
  for (std::int64_t t = 1; t < of.time; ++t) {
    all.push_back(
        {{.m = of.batch, .n = wide, .k = of.hidden, .transpose_b = true, .type = type}, "forward"});
  }
  return all;
}

void Lstm::execute(ReferenceRun& run) const {
  const Sizes of = sizes_of(run.shape(x), run.shape(w_hh));
  const std::int64_t wide = gate_count * of.hidden;
  const std::int64_t cells = of.batch * of.hidden;  // in a time step
  const double* bias_of_x = run.at(b_ih);
  const double* bias_of_h = run.at(b_hh);
  multiply(of.time * of.batch, wide, of.in, {run.at(x), of.in, 1}, {run.at(w_ih), 1, of.in},
           run.at(gates), false);
  for (std::int64_t t = 0; t < of.time; ++t) {
    double* const gate = run.at(gates) + t * of.batch * wide;
    double* const state = run.at(h) + t * cells;
    double* const cell = run.at(c) + t * cells;
    if (t > 0) {
      multiply(of.batch, wide, of.hidden, {state - cells, of.hidden, 1},
               {run.at(w_hh), 1, of.hidden}, gate, true);
    }
    for (std::int64_t at = 0; at < cells; ++at) {
      const std::int64_t unit = at % of.hidden;
      double* const first = gate + at / of.hidden * wide + unit;
      for (std::int64_t part = 0; part < gate_count; ++part) {
        double& value = first[part * of.hidden];
        value += bias_of_x[part * of.hidden + unit] + bias_of_h[part * of.hidden + unit];
        value = part == 2 ? std::tanh(value) : activate(Activation::sigmoid, value);
      }
      const double i = first[0];
      const double f = first[of.hidden];
      const double g = first[2 * of.hidden];
      const double o = first[3 * of.hidden];
      cell[at] = (t > 0 ? f * cell[at - cells] : 0) + i * g;
      state[at] = run.stored(h, o * std::tanh(cell[at]));
    }
  }
}

// ---- LstmGrad

void LstmGrad::check(const Fit& fit) const {
  const Sizes sizes = checked_sizes(fit, x, w_ih, w_hh);
  const Type type = fit.number(x);
  check_kept(fit, sizes, type, h, gates, c);
  fit.expect(dh, {sizes.time, sizes.batch, sizes.hidden}, type);
  fit.expect(dgates, {sizes.time, sizes.batch, gate_count * sizes.hidden}, type);
  fit.expect(carry, {2, sizes.batch, sizes.hidden});
  fit.expect(dw_ih, fit.at(w_ih).shape);
  fit.expect(dw_hh, fit.at(w_hh).shape);
  for (const Id bias : {db_ih, db_hh}) {
    fit.expect(bias, {gate_count * sizes.hidden});
  }
  if (dx != none) {
    fit.expect(dx, fit.at(x).shape, type);
  }
}

/// The products, 4 for each gate and 10 for each cell, and the sums for the biases.
Cost LstmGrad::cost(const Workload& workload) const {
  const Sizes of = sizes_of(workload, x, w_hh);
  const std::int64_t wide = gate_count * of.hidden;
  const double inputs = product(of.time * of.batch, wide, of.in);
  const double states = product((of.time - 1) * of.batch, wide, of.hidden);
  return {.flops = (dx != none ? 2 : 1) * inputs + 2 * states + 5 * count(workload, gates) +
                   10 * count(workload, h),
          .launches = 2 * of.time + 3 + (dx != none ? 1 : 0)};
}

std::vector<OpProduct> LstmGrad::products(const Workload& workload) const {
  const Sizes of = sizes_of(workload, x, w_hh);
  const std::int64_t wide = gate_count * of.hidden;
  const Type type = workload[x].type;
  std::vector<OpProduct> all;
  for (std::int64_t t = 1; t < of.time; ++t) {
    all.push_back({{.m = of.batch, .n = of.hidden, .k = wide, .type = type}, "dx"});
  }
  if (dx != none) {
    all.push_back({{.m = of.time * of.batch, .n = of.in, .k = wide, .type = type}, "dx"});
  }
  all.push_back(
      {{.m = wide, .n = of.in, .k = of.time * of.batch, .transpose_a = true, .type = type}, "dw"});
  if (of.time > 1) {
    all.push_back({{.m = wide,
                    .n = of.hidden,
                    .k = (of.time - 1) * of.batch,
                    .transpose_a = true,
                    .type = type},
                   "dw"});
  }
  return all;
}

void LstmGrad::execute(ReferenceRun& run) const {
  const Sizes of = sizes_of(run.shape(x), run.shape(w_hh));
  const std::int64_t wide = gate_count * of.hidden;
  const std::int64_t cells = of.batch * of.hidden;  // in a time step
  double* const to_h = run.at(carry);
  double* const to_c = to_h + cells;
  std::fill_n(to_h, 2 * cells, 0.0);
  for (std::int64_t t = of.time - 1; t >= 0; --t) {
    const double* const gate = run.at(gates) + t * of.batch * wide;
    const double* const cell = run.at(c) + t * cells;
    double* const dgate = run.at(dgates) + t * of.batch * wide;
    for (std::int64_t at = 0; at < cells; ++at) {
      const std::int64_t first = at / of.hidden * wide + at % of.hidden;
      const double i = gate[first];
      const double f = gate[first + of.hidden];
      const double g = gate[first + 2 * of.hidden];
      const double o = gate[first + 3 * of.hidden];
      const double bent = std::tanh(cell[at]);
      const double of_h = run.at(dh)[t * cells + at] + to_h[at];
      const double of_c = to_c[at] + of_h * o * (1 - bent * bent);
      const double before = t > 0 ? cell[at - cells] : 0;
      const auto store = [&](std::int64_t part, double value) {
        dgate[first + part * of.hidden] = run.stored(dgates, value);
      };
      store(0, of_c * g * i * (1 - i));
      store(1, of_c * before * f * (1 - f));
      store(2, of_c * i * (1 - g * g));
      store(3, of_h * bent * o * (1 - o));
      to_c[at] = of_c * f;
    }
    if (t > 0) {
      multiply(of.batch, of.hidden, wide, {dgate, wide, 1}, {run.at(w_hh), of.hidden, 1}, to_h,
               false);
    }
  }

  const std::int64_t rows = of.time * of.batch;
  const double* const from = run.at(dgates);
  if (dx != none) {
    multiply(rows, of.in, wide, {from, wide, 1}, {run.at(w_ih), of.in, 1}, run.at(dx), false);
  }
  multiply(wide, of.in, rows, {from, 1, wide}, {run.at(x), of.in, 1}, run.at(dw_ih), false);
  multiply(wide, of.hidden, rows - of.batch, {from + of.batch * wide, 1, wide},
           {run.at(h), of.hidden, 1}, run.at(dw_hh), false);
  double* const sums = run.at(db_ih);
  std::fill_n(sums, wide, 0.0);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < wide; ++i) {
      sums[i] += from[row * wide + i];
    }
    alive();
  }
  std::copy_n(sums, wide, run.at(db_hh));
}

namespace {

/// Of x [time, batch, in] and w_hh [3 hidden, hidden].
struct GruSizes {
  GruSizes(const Shape& x, const Shape& w_hh)
      : time(x[0]), batch(x[1]), in(x[2]), hidden(w_hh[1]), wide(gru_gate_count * hidden) {}
  GruSizes(const Workload& workload, Id x, Id w_hh)
      : GruSizes(workload[x].shape, workload[w_hh].shape) {}

  [[nodiscard]] double inputs() const {
    return 2.0 * static_cast<double>(time * batch * wide * in);
  }
  [[nodiscard]] double states() const {
    return 2.0 * static_cast<double>((time - 1) * batch * wide * hidden);
  }

  std::int64_t time, batch, in, hidden, wide;
};

GruSizes checked_gru(const Fit& fit, Id x, Id w_ih, Id w_hh) {
  fit.require(
      fit.at(x).shape.size() == 3,
      "'" + fit.at(x).name + "' " + to_string(fit.at(x).shape) + " is not [time, batch, features]");
  fit.require(fit.at(w_hh).shape.size() == 2, "'" + fit.at(w_hh).name + "' is not a matrix");
  const GruSizes sizes(fit.workload(), x, w_hh);
  fit.expect(w_ih, {sizes.wide, sizes.in}, fit.number(x));
  fit.expect(w_hh, {sizes.wide, sizes.hidden}, fit.number(x));
  return sizes;
}

/// Tensors with a row for each place, and what the forward pass keeps.
void check_states(const Fit& fit, const GruSizes& sizes, Type type, const std::vector<Id>& wide,
                  const std::vector<Id>& states, Id recurrent) {
  for (const Id id : wide) {
    fit.expect(id, {sizes.time, sizes.batch, sizes.wide}, type);
  }
  for (const Id id : states) {
    fit.expect(id, {sizes.time, sizes.batch, sizes.hidden}, type);
  }
  fit.expect(recurrent, {sizes.time, sizes.batch, sizes.hidden});
}

}  // namespace

// ---- Gru

void Gru::check(const Fit& fit) const {
  const GruSizes sizes = checked_gru(fit, x, w_ih, w_hh);
  check_states(fit, sizes, fit.number(x), {gates}, {h}, recurrent);
  for (const Id bias : {b_ih, b_hh}) {
    fit.expect(bias, {sizes.wide});
  }
}

/// The products (h is 0 at first, and needs none); of each gate two biases, a sum and 4 for its
/// activation; for each cell 1 for the reset and 4 for h.
Cost Gru::cost(const Workload& workload) const {
  const GruSizes of(workload, x, w_hh);
  return {.flops = of.inputs() + of.states() + 7 * count(workload, gates) + 5 * count(workload, h),
          .launches = 2 * of.time};
}

std::vector<OpProduct> Gru::products(const Workload& workload) const {
  const GruSizes of(workload, x, w_hh);
  const Type type = workload[x].type;
  std::vector<OpProduct> all{
      {{.m = of.time * of.batch, .n = of.wide, .k = of.in, .transpose_b = true, .type = type},
       "forward"}};
  for (std::int64_t t = 1; t < of.time; ++t) {
    all.push_back({{.m = of.batch, .n = of.wide, .k = of.hidden, .transpose_b = true, .type = type},
                   "forward"});
  }
  return all;
}

void Gru::execute(ReferenceRun& run) const {
  const GruSizes of(run.shape(x), run.shape(w_hh));
  const std::int64_t cells = of.batch * of.hidden;  // in a time step
  const double* const bias_i = run.at(b_ih);
  const double* const bias_k = run.at(b_hh);
  std::vector<double> of_h(static_cast<std::size_t>(of.batch * of.wide));
  multiply(of.time * of.batch, of.wide, of.in, {run.at(x), of.in, 1}, {run.at(w_ih), 1, of.in},
           run.at(gates), false);
  for (std::int64_t t = 0; t < of.time; ++t) {
    double* const gate = run.at(gates) + t * of.batch * of.wide;
    double* const state = run.at(h) + t * cells;
    if (t > 0) {
      multiply(of.batch, of.wide, of.hidden, {state - cells, of.hidden, 1},
               {run.at(w_hh), 1, of.hidden}, of_h.data(), false);
    }
    for (std::int64_t at = 0; at < cells; ++at) {
      const std::int64_t unit = at % of.hidden;
      const std::int64_t first = at / of.hidden * of.wide + unit;
      const auto k = [&](std::int64_t part) {
        return of_h[static_cast<std::size_t>(first + part * of.hidden)] +
               bias_k[part * of.hidden + unit];
      };
      const auto i = [&](std::int64_t part) {
        return gate[first + part * of.hidden] + bias_i[part * of.hidden + unit];
      };
      const double r = activate(Activation::sigmoid, i(0) + k(0));
      const double z = activate(Activation::sigmoid, i(1) + k(1));
      const double n = std::tanh(i(2) + r * k(2));
      run.at(recurrent)[t * cells + at] = k(2);
      gate[first] = r;
      gate[first + of.hidden] = z;
      gate[first + 2 * of.hidden] = n;
      state[at] = run.stored(h, (1 - z) * n + z * (t > 0 ? state[at - cells] : 0));
    }
  }
}

// ---- GruGrad

void GruGrad::check(const Fit& fit) const {
  const GruSizes sizes = checked_gru(fit, x, w_ih, w_hh);
  const Type type = fit.number(x);
  check_states(fit, sizes, type, {gates, di, dk}, {h, dh}, recurrent);
  fit.expect(carry, {sizes.batch, sizes.hidden});
  fit.expect(dw_ih, fit.at(w_ih).shape);
  fit.expect(dw_hh, fit.at(w_hh).shape);
  for (const Id bias : {db_ih, db_hh}) {
    fit.expect(bias, {sizes.wide});
  }
  if (dx != none) {
    fit.expect(dx, fit.at(x).shape, type);
  }
}

/// The products, 4 for each gate and 8 for each cell, and the sums for the biases.
Cost GruGrad::cost(const Workload& workload) const {
  const GruSizes of(workload, x, w_hh);
  return {.flops = (dx != none ? 2 : 1) * of.inputs() + 2 * of.states() +
                   6 * count(workload, gates) + 8 * count(workload, h),
          .launches = 2 * of.time + 4 + (dx != none ? 1 : 0)};
}

std::vector<OpProduct> GruGrad::products(const Workload& workload) const {
  const GruSizes of(workload, x, w_hh);
  const Type type = workload[x].type;
  std::vector<OpProduct> all;
  for (std::int64_t t = 1; t < of.time; ++t) {
    all.push_back({{.m = of.batch, .n = of.hidden, .k = of.wide, .type = type}, "dx"});
  }
  if (dx != none) {
    all.push_back({{.m = of.time * of.batch, .n = of.in, .k = of.wide, .type = type}, "dx"});
  }
  const auto weights = [&](std::int64_t n, std::int64_t rows) {
    all.push_back({{.m = of.wide, .n = n, .k = rows, .transpose_a = true, .type = type}, "dw"});
  };
  weights(of.in, of.time * of.batch);
  if (of.time > 1) {
    weights(of.hidden, (of.time - 1) * of.batch);
  }
  return all;
}

void GruGrad::execute(ReferenceRun& run) const {
  const GruSizes of(run.shape(x), run.shape(w_hh));
  const std::int64_t cells = of.batch * of.hidden;  // in a time step
  double* const to_h = run.at(carry);
  std::fill_n(to_h, cells, 0.0);
  for (std::int64_t t = of.time - 1; t >= 0; --t) {
    const std::int64_t row = t * of.batch * of.wide;
    const double* const gate = run.at(gates) + row;
    for (std::int64_t at = 0; at < cells; ++at) {
      const std::int64_t first = at / of.hidden * of.wide + at % of.hidden;
      const double r = gate[first];
      const double z = gate[first + of.hidden];
      const double n = gate[first + 2 * of.hidden];
      const double before = t > 0 ? run.at(h)[(t - 1) * cells + at] : 0;
      const double of_state = run.at(dh)[t * cells + at] + to_h[at];
      const double of_n = of_state * (1 - z) * (1 - n * n);
      const double of_z = of_state * (before - n) * z * (1 - z);
      const double of_r = of_n * run.at(recurrent)[t * cells + at] * r * (1 - r);
      const auto store = [&](Id id, std::int64_t part, double value) {
        run.at(id)[row + first + part * of.hidden] = run.stored(id, value);
      };
      for (const Id id : {di, dk}) {
        store(id, 0, of_r);
        store(id, 1, of_z);
        store(id, 2, id == di ? of_n : of_n * r);
      }
      to_h[at] = of_state * z;
    }
    if (t > 0) {
      multiply(of.batch, of.hidden, of.wide, {run.at(dk) + row, of.wide, 1},
               {run.at(w_hh), of.hidden, 1}, to_h, true);
    }
  }

  const std::int64_t rows = of.time * of.batch;
  if (dx != none) {
    multiply(rows, of.in, of.wide, {run.at(di), of.wide, 1}, {run.at(w_ih), of.in, 1}, run.at(dx),
             false);
  }
  multiply(of.wide, of.in, rows, {run.at(di), 1, of.wide}, {run.at(x), of.in, 1}, run.at(dw_ih),
           false);
  multiply(of.wide, of.hidden, rows - of.batch, {run.at(dk) + of.batch * of.wide, 1, of.wide},
           {run.at(h), of.hidden, 1}, run.at(dw_hh), false);
  for (const auto& [from, sums] : {std::pair{di, db_ih}, std::pair{dk, db_hh}}) {
    double* const to = run.at(sums);
    std::fill_n(to, of.wide, 0.0);
    const double* const added = run.at(from);
    for_each_index(rows * of.wide, [&](std::int64_t i) { to[i % of.wide] += added[i]; });
  }
}

}  // namespace crossover
