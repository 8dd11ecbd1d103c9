// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../reference/run.h"
#include "crossover/alive.h"
#include "fit.h"

namespace crossover {

namespace {

/// [time, batch, width] of tokens [batch, time] and a table [vocabulary, width].
Shape result(const Fit& fit, Id tokens, Id table) {
  const Shape& sequences = fit.at(tokens).shape;
  const Shape& rows = fit.at(table).shape;
  fit.require(sequences.size() == 2, "tokens '" + fit.at(tokens).name + "' are not [batch, time]");
  fit.require(rows.size() == 2, "table '" + fit.at(table).name + "' is not [vocabulary, width]");
  fit.expect(tokens, sequences, Type::i32);
  return {sequences[1], sequences[0], rows[1]};
}

/// body(token, where the row of its position begins in [time, batch, width]) for each position.
template <class Body>
void for_each_token(ReferenceRun& run, Id tokens, std::int64_t width, const Body& body) {
  const std::int64_t batch = run.shape(tokens)[0];
  const std::int64_t time = run.shape(tokens)[1];
  const double* token = run.at(tokens);
  for (std::int64_t t = 0; t < time; ++t) {
    for (std::int64_t b = 0; b < batch; ++b) {
      body(static_cast<std::int64_t>(token[b * time + t]), (t * batch + b) * width);
    }
    alive();
  }
}

/// [time, width] of a sequence [time, batch, width].
Shape table_of(const Fit& fit, Id sequence) {
  const Tensor& tensor = fit.at(sequence);
  fit.require(tensor.shape.size() == 3, "tensor '" + tensor.name + "' " + to_string(tensor.shape) +
                                            " is not [time, batch, width]");
  return {tensor.shape[0], tensor.shape[2]};
}

/// body(element of the sequence, element of the table) for each element of the sequence.
template <class Body>
void for_each_element(const Shape& sequence, const Body& body) {
  const std::int64_t batch = sequence[1];
  const std::int64_t width = sequence[2];
  for_each_index(elements(sequence),
                 [&](std::int64_t i) { body(i, i / (batch * width) * width + i % width); });
}

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

void check_parts(const Fit& fit, Id of, std::int64_t heads) {
  const Tensor& rows = fit.at(of);
  fit.require(!rows.shape.empty() && heads > 0 && rows.shape.back() % heads == 0,
              "rows of '" + rows.name + "' " + to_string(rows.shape) + " can't be divided into " +
                  std::to_string(heads) + " equal parts");
}

}  // namespace

void Embedding::check(const Fit& fit) const {
  fit.expect(y, result(fit, tokens, table), fit.number(table));
}

Cost Embedding::cost(const Workload& /*workload*/) const { return {.launches = 1}; }

void Embedding::execute(ReferenceRun& run) const {
  const std::int64_t width = run.shape(table)[1];
  for_each_token(run, tokens, width, [&](std::int64_t token, std::int64_t row) {
    std::copy_n(run.at(table) + token * width, width, run.at(y) + row);
  });
}

void EmbeddingGrad::check(const Fit& fit) const {
  fit.expect(dy, result(fit, tokens, dtable), fit.number(dy));
  fit.expect(dtable, fit.at(dtable).shape);
}

/// Each element of dy is added once.
Cost EmbeddingGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dy), .launches = 1};
}

void EmbeddingGrad::execute(ReferenceRun& run) const {
  const std::int64_t width = run.shape(dtable)[1];
  std::fill_n(run.at(dtable), run.size(dtable), 0.0);
  for_each_token(run, tokens, width, [&](std::int64_t token, std::int64_t row) {
    const double* from = run.at(dy) + row;
    double* to = run.at(dtable) + token * width;
    for (std::int64_t i = 0; i < width; ++i) {
      to[i] += from[i];
    }
  });
}

void PositionEmbedding::check(const Fit& fit) const {
  const Type type = fit.number(x);
  fit.expect(table, table_of(fit, x), type);
  fit.expect(y, fit.at(x).shape, type);
}

Cost PositionEmbedding::cost(const Workload& workload) const {
  return {.flops = count(workload, y), .launches = 1};
}

void PositionEmbedding::execute(ReferenceRun& run) const {
  for_each_element(run.shape(x), [&](std::int64_t i, std::int64_t of_table) {
    run.at(y)[i] = run.at(x)[i] + run.at(table)[of_table];
  });
}

void PositionEmbeddingGrad::check(const Fit& fit) const {
  fit.expect(dy, fit.at(dy).shape, fit.number(dy));
  fit.expect(dtable, table_of(fit, dy));
}

Cost PositionEmbeddingGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dy), .launches = 1};
}

void PositionEmbeddingGrad::execute(ReferenceRun& run) const {
  std::fill_n(run.at(dtable), run.size(dtable), 0.0);
  for_each_element(run.shape(dy), [&](std::int64_t i, std::int64_t of_table) {
    run.at(dtable)[of_table] += run.at(dy)[i];
  });
}

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

void Softmax::check(const Fit& fit) const {
  check_parts(fit, x, heads);
  fit.require(!causal || fit.at(x).shape.size() == 3,
              "'" + fit.at(x).name + "' " + to_string(fit.at(x).shape) +
                  " is no sequence, in which later places could be left out");
  fit.expect(y, fit.at(x).shape, fit.number(x));
}

std::int64_t Softmax::seen(const Shape& shape, std::int64_t row) const {
  const std::int64_t keys = shape.back() / heads;
  return causal ? std::min(keys, row / shape[1] + 1) : keys;
}

/// Largest, difference, exponential, sum and quotient, of each number that is seen.
Cost Softmax::cost(const Workload& workload) const {
  const Shape& shape = workload[x].shape;
  const std::int64_t places = causal ? shape[0] : 1;
  const std::int64_t rows = leading(shape) / places;  // that see alike
  std::int64_t numbers = 0;
  for (std::int64_t place = 0; place < places; ++place) {
    numbers += rows * heads * seen(shape, place * rows);
  }
  return {.flops = 5 * static_cast<double>(numbers), .launches = 1};
}

void Softmax::execute(ReferenceRun& run) const {
  const Shape& shape = run.shape(x);
  const std::int64_t keys = shape.back() / heads;
  for (std::int64_t part = 0; part < leading(shape) * heads; ++part) {
    const double* from = run.at(x) + part * keys;
    double* to = run.at(y) + part * keys;
    const std::int64_t count = seen(shape, part / heads);
    const double largest = *std::max_element(from, from + count);
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = std::exp(from[i] - largest);
      sum += to[i];
    }
    std::for_each(to, to + count, [sum](double& e) { e /= sum; });
    std::fill(to + count, to + keys, 0.0);
    alive();
  }
}

void SoftmaxGrad::check(const Fit& fit) const {
  check_parts(fit, y, heads);
  for (const Id id : {dy, dx}) {
    fit.expect(id, fit.at(y).shape, fit.number(y));
  }
}

/// Product and sum, difference and product.
Cost SoftmaxGrad::cost(const Workload& workload) const {
  return {.flops = 4 * count(workload, y), .launches = 1};
}

void SoftmaxGrad::execute(ReferenceRun& run) const {
  const Shape& shape = run.shape(y);
  const std::int64_t keys = shape.back() / heads;
  for (std::int64_t part = 0; part < leading(shape) * heads; ++part) {
    const double* of_y = run.at(y) + part * keys;
    const double* of_dy = run.at(dy) + part * keys;
    double* to = run.at(dx) + part * keys;
    double sum = 0;
    for (std::int64_t i = 0; i < keys; ++i) {
      sum += of_dy[i] * of_y[i];
    }
    for (std::int64_t i = 0; i < keys; ++i) {
      to[i] = of_y[i] * (of_dy[i] - sum);
    }
    alive();
  }
}

}  // namespace crossover
