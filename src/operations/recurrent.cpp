// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/recurrent.h"

#include <algorithm>
#include <array>
#include <utility>

#include "../reference/products.h"
#include "../reference/run.h"
#include "crossover/functions.h"
#include "fit.h"

namespace crossover {

namespace {

RecurrentSizes sizes_of(const Workload& workload, Id x, Id w_hh) {
  return {workload[x].shape, workload[w_hh].shape};
}

/// Of what forward and backward pass have alike, checked.
template <class Op>
RecurrentSizes checked_sizes(const Fit& fit, const Op& op) {
  fit.require(fit.at(op.x).shape.size() == 3, "'" + fit.at(op.x).name + "' " +
                                                  to_string(fit.at(op.x).shape) +
                                                  " is not [time, batch, features]");
  fit.require(fit.at(op.w_hh).shape.size() == 2, "'" + fit.at(op.w_hh).name + "' is not a matrix");
  RecurrentSizes sizes = sizes_of(fit.workload(), op.x, op.w_hh);
  sizes.wide = sizes.hidden * facts_of(op.cell).gates;
  const Type type = fit.number(op.x);
  fit.expect(op.w_ih, {sizes.wide, sizes.in}, type);
  fit.expect(op.w_hh, {sizes.wide, sizes.hidden}, type);
  fit.expect(op.h, {sizes.time, sizes.batch, sizes.hidden}, type);
  fit.expect(op.gates, {sizes.time, sizes.batch, sizes.wide}, type);
  fit.expect(op.kept, {sizes.time, sizes.batch, sizes.hidden});
  return sizes;
}

double flops_of_inputs(const RecurrentSizes& of) {
  return 2.0 * static_cast<double>(of.rows() * of.wide * of.in);
}
/// h is 0 at first, and needs no product.
double flops_of_states(const RecurrentSizes& of) {
  return 2.0 * static_cast<double>((of.time - 1) * of.gates() * of.hidden);
}

}  // namespace

void Recurrent::check(const Fit& fit) const {
  const RecurrentSizes sizes = checked_sizes(fit, *this);
  for (const Id bias : {b_ih, b_hh}) {
    fit.expect(bias, {sizes.wide});
  }
}

Cost Recurrent::cost(const Workload& workload) const {
  const RecurrentSizes of = sizes_of(workload, x, w_hh);
  const double in_units = std::visit(
      [&](auto unit) {
        return unit.gate_flops * count(workload, gates) + unit.unit_flops * count(workload, h);
      },
      cell);
  return {.flops = flops_of_inputs(of) + flops_of_states(of) + in_units, .launches = 2 * of.time};
}

std::vector<OpProduct> Recurrent::products(const Workload& workload) const {
  const RecurrentSizes of = sizes_of(workload, x, w_hh);
  const Type type = workload[x].type;
  std::vector<OpProduct> all{
      {{.m = of.rows(), .n = of.wide, .k = of.in, .transpose_b = true, .type = type}, "forward"}};
  for (std::int64_t t = 1; t < of.time; ++t) {
    all.push_back({{.m = of.batch, .n = of.wide, .k = of.hidden, .transpose_b = true, .type = type},
                   "forward"});
  }
  return all;
}

void Recurrent::execute(ReferenceRun& run) const {
  const RecurrentSizes of(run.shape(x), run.shape(w_hh));
  const double* const bias_i = run.at(b_ih);
  const double* const bias_k = run.at(b_hh);
  std::vector<double> of_h(static_cast<std::size_t>(of.gates()));
  multiply(of.rows(), of.wide, of.in, {run.at(x), of.in, 1}, {run.at(w_ih), 1, of.in},
           run.at(gates), false);
  const auto step = [&](auto unit, std::int64_t t) {
    double* const gate = run.at(gates) + t * of.gates();
    double* const state = run.at(h) + t * of.states();
    double* const keep = run.at(kept) + t * of.states();
    const double* const before = (unit.keeps_state ? keep : state) - of.states();
    for (std::int64_t at = 0; at < of.states(); ++at) {
      const std::int64_t first = at / of.hidden * of.wide + at % of.hidden;
      std::array<double, unit.gates> i{};
      std::array<double, unit.gates> k{};
      std::array<double, unit.gates> made{};
      for (std::size_t part = 0; part < made.size(); ++part) {
        const std::int64_t offset = static_cast<std::int64_t>(part) * of.hidden;
        i[part] = gate[first + offset] + bias_i[offset + at % of.hidden];
        k[part] = of_h[static_cast<std::size_t>(first + offset)] + bias_k[offset + at % of.hidden];
      }
      double result = 0;
      unit.template forward<ScalarMaths<double>>(i.data(), k.data(), t > 0 ? before[at] : 0,
                                                 made.data(), keep[at], result);
      for (std::size_t part = 0; part < made.size(); ++part) {
        gate[first + static_cast<std::int64_t>(part) * of.hidden] = made[part];
      }
      state[at] = run.stored(h, result);
    }
  };
  for (std::int64_t t = 0; t < of.time; ++t) {
    if (t > 0) {
      multiply(of.batch, of.wide, of.hidden, {run.at(h) + (t - 1) * of.states(), of.hidden, 1},
               {run.at(w_hh), 1, of.hidden}, of_h.data(), false);
    }
    std::visit([&](auto unit) { step(unit, t); }, cell);
  }
}

void RecurrentGrad::check(const Fit& fit) const {
  const RecurrentSizes sizes = checked_sizes(fit, *this);
  const Type type = fit.number(x);
  fit.expect(dh, fit.at(h).shape, type);
  fit.expect(di, fit.at(gates).shape, type);
  fit.expect(of_states(), fit.at(gates).shape, type);
  const bool keeps_state = facts_of(cell).keeps_state;
  fit.expect(carry,
             keeps_state ? Shape{2, sizes.batch, sizes.hidden} : Shape{sizes.batch, sizes.hidden});
  fit.expect(dw_ih, fit.at(w_ih).shape);
  fit.expect(dw_hh, fit.at(w_hh).shape);
  for (const Id bias : {db_ih, db_hh}) {
    fit.expect(bias, {sizes.wide});
  }
  fit.expect_if_any(dx, fit.at(x).shape, type);
}

Cost RecurrentGrad::cost(const Workload& workload) const {
  const RecurrentSizes of = sizes_of(workload, x, w_hh);
  const double in_units = std::visit(
      [&](auto unit) {
        return unit.grad_gate_flops * count(workload, gates) +
               unit.grad_unit_flops * count(workload, h);
      },
      cell);
  return {.flops = (dx != none ? 2 : 1) * flops_of_inputs(of) + 2 * flops_of_states(of) + in_units,
          .launches = 2 * of.time + 3 + (is_apart() ? 1 : 0) + (dx != none ? 1 : 0)};
}

std::vector<OpProduct> RecurrentGrad::products(const Workload& workload) const {
  const RecurrentSizes of = sizes_of(workload, x, w_hh);
  const Type type = workload[x].type;
  std::vector<OpProduct> all;
  for (std::int64_t t = 1; t < of.time; ++t) {
    all.push_back({{.m = of.batch, .n = of.hidden, .k = of.wide, .type = type}, "dx"});
  }
  if (dx != none) {
    all.push_back({{.m = of.rows(), .n = of.in, .k = of.wide, .type = type}, "dx"});
  }
  const auto weights = [&](std::int64_t n, std::int64_t rows) {
    all.push_back({{.m = of.wide, .n = n, .k = rows, .transpose_a = true, .type = type}, "dw"});
  };
  weights(of.in, of.rows());
  if (of.time > 1) {
    weights(of.hidden, of.rows() - of.batch);
  }
  return all;
}

void RecurrentGrad::execute(ReferenceRun& run) const {
  const RecurrentSizes of(run.shape(x), run.shape(w_hh));
  double* const to_h = run.at(carry);
  std::fill_n(to_h, run.size(carry), 0.0);
  const auto step = [&](auto unit, std::int64_t t) {
    const double* const gate = run.at(gates) + t * of.gates();
    const double* const keep = run.at(kept) + t * of.states();
    const double* const before =
        (unit.keeps_state ? keep : run.at(h) + t * of.states()) - of.states();
    double* const to_before = unit.keeps_state ? to_h + of.states() : to_h;
    for (std::int64_t at = 0; at < of.states(); ++at) {
      const std::int64_t first = at / of.hidden * of.wide + at % of.hidden;
      std::array<double, unit.gates> made{};
      std::array<double, unit.gates> of_i{};
      std::array<double, unit.gates> of_k{};
      for (std::size_t part = 0; part < made.size(); ++part) {
        made[part] = gate[first + static_cast<std::int64_t>(part) * of.hidden];
      }
      const double of_h = run.at(dh)[t * of.states() + at] + to_h[at];
      unit.template backward<ScalarMaths<double>>(made.data(), keep[at], t > 0 ? before[at] : 0,
                                                  of_h, to_before[at], of_i.data(), of_k.data());
      const auto store = [&](Id id, const auto& values) {
        double* const to = run.at(id) + t * of.gates() + first;
        for (std::size_t part = 0; part < values.size(); ++part) {
          to[static_cast<std::int64_t>(part) * of.hidden] = run.stored(id, values[part]);
        }
      };
      store(di, of_i);
      if (unit.is_apart) {
        store(dk, of_k);
      }
    }
    if (t > 0) {
      multiply(of.batch, of.hidden, of.wide, {run.at(of_states()) + t * of.gates(), of.wide, 1},
               {run.at(w_hh), of.hidden, 1}, to_h, !unit.keeps_state);
    }
  };
  for (std::int64_t t = of.time - 1; t >= 0; --t) {
    std::visit([&](auto unit) { step(unit, t); }, cell);
  }

  const double* const of_i = run.at(di);
  if (dx != none) {
    multiply(of.rows(), of.in, of.wide, {of_i, of.wide, 1}, {run.at(w_ih), of.in, 1}, run.at(dx),
             false);
  }
  multiply(of.wide, of.in, of.rows(), {of_i, 1, of.wide}, {run.at(x), of.in, 1}, run.at(dw_ih),
           false);
  multiply(of.wide, of.hidden, of.rows() - of.batch, {run.at(of_states()) + of.gates(), 1, of.wide},
           {run.at(h), of.hidden, 1}, run.at(dw_hh), false);
  for (const auto& [from, sums] : {std::pair{di, db_ih}, std::pair{of_states(), db_hh}}) {
    double* const to = run.at(sums);
    std::fill_n(to, of.wide, 0.0);
    const double* const added = run.at(from);
    for_each_index(of.rows() * of.wide, [&](std::int64_t i) { to[i % of.wide] += added[i]; });
  }
}

}  // namespace crossover
