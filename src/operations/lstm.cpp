// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/lstm.h"

#include <stdexcept>

#include "../reference/run.h"
#include "counting.h"
#include "fit.h"

namespace crossover {
namespace {

constexpr std::int64_t gate_count = 4;

struct Sizes {
  std::int64_t time, batch, in, hidden;
};

/// Of x [time, batch, in] and w_hh [4 hidden, hidden].
Sizes sizes_of(const Workload& workload, Id x, Id w_hh) {
  const Shape& sequence = workload[x].shape;
  return {.time = sequence[0],
          .batch = sequence[1],
          .in = sequence[2],
          .hidden = workload[w_hh].shape[1]};
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

void Lstm::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no Lstm yet");
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

void LstmGrad::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no LstmGrad yet");
}

}  // namespace crossover
