// SPDX-License-Identifier: Apache-2.0
// Attention as the emulated cuDNN has it: by the definition, in double, except that probabilities
// and gradients of scores are rounded to 16 bits before they are multiplied, as tensor cores take
// them. For which shapes cuDNN has plans, tests/fixtures/cudnn_plans.txt shows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "crossover/backend.h"
#include "cudnn_plan.h"
#include "numbers.h"

namespace cuda_host {
namespace {

using crossover::Type;
using crossover::cuda::CalledSdpa;
using crossover::cuda::SdpaForm;

cudaDataType_t data_type(Type type) { return type == Type::bf16 ? CUDA_R_16BF : CUDA_R_16F; }

std::vector<Range> ranges_of(const CalledSdpa& of) {
  const SdpaForm& form = of.form;
  const auto y_bytes =
      static_cast<std::size_t>(form.time * form.batch * form.width() * crossover::bytes(form.type));
  const auto sum_bytes =
      static_cast<std::size_t>(form.time * form.batch * form.heads * crossover::bytes(Type::f32));
  std::vector<Range> ranges{{"qkv", of.qkv, 3 * y_bytes, false},
                            {"y", of.y, y_bytes, !form.gradient},
                            {"log_sums", of.log_sums, sum_bytes, !form.gradient}};
  if (form.gradient) {
    ranges.push_back({"dy", of.dy, y_bytes, false});
    ranges.push_back({"dqkv", of.dqkv, 3 * y_bytes, true});
  }
  return ranges;
}

using Row = std::vector<double>;
using Rows = std::vector<Row>;

/// A head of a sequence in a tensor of `parts` such heads (3 in qkv) at a time.
struct Head {
  const SdpaForm& form;
  std::int64_t of_batch, of_heads;

  [[nodiscard]] std::int64_t at(std::int64_t time, std::int64_t parts, std::int64_t part) const {
    return ((time * form.batch + of_batch) * parts + part) * form.width() + of_heads * form.d;
  }
  [[nodiscard]] std::int64_t sum(std::int64_t time) const {
    return (of_batch * form.heads + of_heads) * form.time + time;
  }
  [[nodiscard]] CUDA_HOST_CHECKED_BEFORE Rows read(const void* from, std::int64_t parts,
                                                   std::int64_t part) const {
    const Numbers numbers(from, data_type(form.type));
    Rows rows(static_cast<std::size_t>(form.time), Row(static_cast<std::size_t>(form.d)));
    for (std::int64_t t = 0; t < form.time; ++t) {
      for (std::int64_t i = 0; i < form.d; ++i) {
        rows[static_cast<std::size_t>(t)][static_cast<std::size_t>(i)] =
            numbers.get(at(t, parts, part) + i);
      }
    }
    return rows;
  }
  CUDA_HOST_CHECKED_BEFORE void write(const Rows& rows, void* to, std::int64_t parts,
                                      std::int64_t part) const {
    const Numbers numbers(to, data_type(form.type));
    for (std::int64_t t = 0; t < form.time; ++t) {
      for (std::int64_t i = 0; i < form.d; ++i) {
        numbers.set(at(t, parts, part) + i,
                    rows[static_cast<std::size_t>(t)][static_cast<std::size_t>(i)]);
      }
    }
  }
  [[nodiscard]] double rounded(double value) const {
    std::uint16_t place = 0;
    const Numbers number(&place, data_type(form.type));
    number.set(0, value);
    return number.get(0);
  }
  [[nodiscard]] double scale() const { return 1 / std::sqrt(static_cast<double>(form.d)); }
  [[nodiscard]] std::size_t keys(std::size_t query) const {
    return form.causal ? query + 1 : static_cast<std::size_t>(form.time);
  }
};

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

void add(double factor, const Row& from, Row& to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] += factor * from[i];
  }
}

CUDA_HOST_CHECKED_BEFORE void attend(const CalledSdpa& of, const Head& head) {
  const Rows q = head.read(of.qkv, 3, 0);
  const Rows k = head.read(of.qkv, 3, 1);
  const Rows v = head.read(of.qkv, 3, 2);
  Rows y(q.size(), Row(q[0].size()));
  for (std::size_t i = 0; i < q.size(); ++i) {
    Row scores;
    for (std::size_t j = 0; j < head.keys(i); ++j) {
      scores.push_back(head.scale() * dot(q[i], k[j]));
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const double p = std::exp(scores[j] - largest);
      sum += p;
      add(head.rounded(p), v[j], y[i]);
    }
    std::transform(y[i].begin(), y[i].end(), y[i].begin(), [&](double all) { return all / sum; });
    of.log_sums[head.sum(static_cast<std::int64_t>(i))] =
        static_cast<float>(largest + std::log(sum));
  }
  head.write(y, of.y, 1, 0);
}

CUDA_HOST_CHECKED_BEFORE void attend_back(const CalledSdpa& of, const Head& head) {
  const Rows q = head.read(of.qkv, 3, 0);
  const Rows k = head.read(of.qkv, 3, 1);
  const Rows v = head.read(of.qkv, 3, 2);
  const Rows y = head.read(of.y, 1, 0);
  const Rows dy = head.read(of.dy, 1, 0);
  Rows dq(q.size(), Row(q[0].size()));
  Rows dk = dq;
  Rows dv = dq;
  for (std::size_t i = 0; i < q.size(); ++i) {
    const double expected = dot(dy[i], y[i]);
    const double log_sum = of.log_sums[head.sum(static_cast<std::int64_t>(i))];
    for (std::size_t j = 0; j < head.keys(i); ++j) {
      const double p = std::exp(head.scale() * dot(q[i], k[j]) - log_sum);
      const double ds = head.rounded(p * (dot(dy[i], v[j]) - expected));
      add(head.rounded(p), dy[i], dv[j]);
      add(ds * head.scale(), k[j], dq[i]);
      add(ds * head.scale(), q[i], dk[j]);
    }
  }
  head.write(dq, of.dqkv, 3, 0);
  head.write(dk, of.dqkv, 3, 1);
  head.write(dv, of.dqkv, 3, 2);
}

void compute(const CalledSdpa& of, bool /*tf32*/) {
  for (std::int64_t b = 0; b < of.form.batch; ++b) {
    for (std::int64_t h = 0; h < of.form.heads; ++h) {
      const Head head{of.form, b, h};
      of.form.gradient ? attend_back(of, head) : attend(of, head);
    }
  }
}

class HostSdpa : public crossover::cuda::SdpaLibrary {
 public:
  /// As the real one: heads of multiples of 8, and no gradient of a single place.
  [[nodiscard]] int algorithms(const SdpaForm& form) override {
    CROSSOVER_CUDA_CHECK(enter("cudnnPlans"));
    const bool fits = form.d % 8 == 0 && !(form.gradient && form.time == 1);
    const bool has_some = state().device.no_cudnn.empty() && !state().device.refuses_sdpa;
    const bool refused = form.gradient && form.repeats && state().device.refuses_repeating_sdpa;
    return fits && has_some && !refused ? static_cast<int>(plans.size()) : 0;
  }

  [[nodiscard]] std::unique_ptr<crossover::cuda::PreparedSdpa> make(const CalledSdpa& /*of*/,
                                                                    int algorithm) override {
    CROSSOVER_CUDA_CHECK(enter("cudnnMake"));
    const Emulated<CalledSdpa> emulated{"fused attention", ranges_of, compute};
    return std::make_unique<HostPlan<CalledSdpa>>(emulated, static_cast<std::size_t>(algorithm),
                                                  false);
  }
};

}  // namespace
}  // namespace cuda_host

namespace crossover::cuda {

std::unique_ptr<SdpaLibrary> make_sdpa_library(Precision /*precision*/,
                                               std::int64_t /*memory_bytes*/) {
  return std::make_unique<cuda_host::HostSdpa>();
}

}  // namespace crossover::cuda
