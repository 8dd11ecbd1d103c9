// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "fit.h"

namespace crossover {
namespace {

void check_attention(const Fit& fit, Id qkv, Id log_sums, std::int64_t heads,
                     const std::vector<Id>& results) {
  const Tensor& all = fit.at(qkv);
  fit.require(
      all.shape.size() == 3 && all.shape[2] % 3 == 0,
      "tensor '" + all.name + "' " + to_string(all.shape) + " is not [time, batch, 3 width]");
  const std::int64_t width = all.shape[2] / 3;
  fit.require(heads > 0 && width % heads == 0, "a width of " + std::to_string(width) +
                                                   " can't be divided into " +
                                                   std::to_string(heads) + " heads");
  fit.expect(log_sums, {all.shape[1], heads, all.shape[0]});
  for (const Id id : results) {
    fit.expect(id, {all.shape[0], all.shape[1], width}, fit.number(qkv));
  }
}

/// Pairs of a query and a key that it sees, over all sequences and heads.
double pairs(const Workload& workload, Id qkv, std::int64_t heads, bool causal) {
  const Shape& shape = workload[qkv].shape;
  const auto time = static_cast<double>(shape[0]);
  return static_cast<double>(shape[1] * heads) * (causal ? time * (time + 1) / 2 : time * time);
}

/// Of so many products between queries and keys, or probabilities and values.
double product_flops(const Workload& workload, Id qkv, std::int64_t heads, bool causal) {
  const std::int64_t d = workload[qkv].shape[2] / (3 * heads);
  return 2 * pairs(workload, qkv, heads, causal) * static_cast<double>(d);
}

/// One head of one sequence: numbers of q, k, v and of what goes with them, by place in the
/// sequence.
struct Head {
  std::int64_t time, d;
  std::int64_t stride, first;          ///< of q; k and v follow `width` behind one another
  std::int64_t result_stride, result;  ///< of y
  std::int64_t width, log_sums;
  double scale;

  [[nodiscard]] std::int64_t q(std::int64_t t) const { return first + t * stride; }
  [[nodiscard]] std::int64_t k(std::int64_t t) const { return q(t) + width; }
  [[nodiscard]] std::int64_t v(std::int64_t t) const { return q(t) + 2 * width; }
  [[nodiscard]] std::int64_t y(std::int64_t t) const { return result + t * result_stride; }
};

template <class Body>
void for_each_head(const Shape& qkv, std::int64_t heads, const Body& body) {
  const std::int64_t time = qkv[0];
  const std::int64_t batch = qkv[1];
  const std::int64_t width = qkv[2] / 3;
  const std::int64_t d = width / heads;
#pragma omp parallel for schedule(dynamic) if (batch * heads * time * time * d > 100000)
  for (std::int64_t i = 0; i < batch * heads; ++i) {
    const std::int64_t b = i / heads;
    const std::int64_t h = i % heads;
    body(Head{.time = time,
              .d = d,
              .stride = batch * 3 * width,
              .first = b * 3 * width + h * d,
              .result_stride = batch * width,
              .result = b * width + h * d,
              .width = width,
              .log_sums = i * time,
              .scale = 1 / std::sqrt(static_cast<double>(d))});
  }
}

double dot(const double* a, const double* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

void add(double factor, const double* from, double* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] += factor * from[i];
  }
}

}  // namespace

// ---- Attention

void Attention::check(const Fit& fit) const { check_attention(fit, qkv, log_sums, heads, {y}); }

/// Two products; of each score factor, largest, difference, exponential, sum and normalization.
Cost Attention::cost(const Workload& workload) const {
  return {.flops = 2 * product_flops(workload, qkv, heads, causal) +
                   6 * pairs(workload, qkv, heads, causal),
          .launches = 3};
}

void Attention::execute(ReferenceRun& run) const {
  for_each_head(run.shape(qkv), heads, [&](const Head& head) {
    const double* from = run.at(qkv);
    std::vector<double> scores(static_cast<std::size_t>(head.time));
    for (std::int64_t i = 0; i < head.time; ++i) {
      const std::int64_t keys = causal ? i + 1 : head.time;
      double largest = -std::numeric_limits<double>::infinity();
      for (std::int64_t j = 0; j < keys; ++j) {
        double& score = scores[static_cast<std::size_t>(j)];
        score = head.scale * dot(from + head.q(i), from + head.k(j), head.d);
        largest = std::max(largest, score);
      }
      double sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        sum += std::exp(scores[static_cast<std::size_t>(j)] - largest);
      }
      const double log_sum = largest + std::log(sum);
      run.at(log_sums)[head.log_sums + i] = log_sum;
      double* to = run.at(y) + head.y(i);
      std::fill_n(to, head.d, 0.0);
      for (std::int64_t j = 0; j < keys; ++j) {
        add(std::exp(scores[static_cast<std::size_t>(j)] - log_sum), from + head.v(j), to, head.d);
      }
      alive();
    }
  });
}

// ---- AttentionGrad

void AttentionGrad::check(const Fit& fit) const {
  check_attention(fit, qkv, log_sums, heads, {y, dy});
  fit.expect(dqkv, fit.at(qkv).shape, fit.number(qkv));
}

/// Five products; of each score factor, difference and exponential, and of ds difference, product
/// and factor; and dy y.
Cost AttentionGrad::cost(const Workload& workload) const {
  return {.flops = 5 * product_flops(workload, qkv, heads, causal) +
                   6 * pairs(workload, qkv, heads, causal) + 2 * count(workload, y),
          .launches = 6};
}

void AttentionGrad::execute(ReferenceRun& run) const {
  std::fill_n(run.at(dqkv), run.size(dqkv), 0.0);
  for_each_head(run.shape(qkv), heads, [&](const Head& head) {
    const double* from = run.at(qkv);
    double* to = run.at(dqkv);
    for (std::int64_t i = 0; i < head.time; ++i) {
      const double* gradient = run.at(dy) + head.y(i);
      const double expected = dot(gradient, run.at(y) + head.y(i), head.d);
      const double log_sum = run.at(log_sums)[head.log_sums + i];
      for (std::int64_t j = 0; j < (causal ? i + 1 : head.time); ++j) {
        const double score = head.scale * dot(from + head.q(i), from + head.k(j), head.d);
        const double p = std::exp(score - log_sum);
        const double ds = p * (dot(gradient, from + head.v(j), head.d) - expected);
        add(p, gradient, to + head.v(j), head.d);
        add(ds * head.scale, from + head.k(j), to + head.q(i), head.d);
        add(ds * head.scale, from + head.q(i), to + head.k(j), head.d);
      }
      alive();
    }
  });
}

}  // namespace crossover
