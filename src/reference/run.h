// SPDX-License-Identifier: Apache-2.0
// What the operations that compute a step in float64 see of it.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/alive.h"
#include "crossover/reference.h"
#include "crossover/step.h"
#include "crossover/tensor.h"

namespace crossover {

class ReferenceRun {
 public:
  /// `position` in the order of the Workload; `values` by tensor.
  ReferenceRun(const Workload& workload, std::vector<std::vector<double>>& values,
               std::int64_t position, const SumOverRanks& sum)
      : workload_(workload),
        values_(values),
        sum_(sum),
        position_(position),
        first_row_(workload.order[static_cast<std::size_t>(position)].first_row) {}

  [[nodiscard]] std::int64_t position() const { return position_; }
  [[nodiscard]] const Shape& shape(Id id) const { return workload_[id].shape; }
  [[nodiscard]] std::int64_t size(Id id) const { return elements(shape(id)); }

  /// The first element of a tensor; of a view, in its source.
  [[nodiscard]] double* at(Id id);

  /// The value as that tensor stores it.
  [[nodiscard]] double stored(Id id, double value) const;

  /// Its values become their sums over all ranks. Throws std::logic_error of a process alone.
  void sum_over_ranks(Id id);

  /// Whatever is stored in 16 bits holds numbers of that type: rounds what `op` has written.
  void store(const Op& op);

 private:
  const Workload& workload_;
  std::vector<std::vector<double>>& values_;
  const SumOverRanks& sum_;
  std::int64_t position_;
  std::int64_t first_row_;
};

// ---- The elements of one channel of images [batch, channels, height, width].

/// body(first, end) for the channel in each image: its elements there are [first, end).
template <class Body>
void for_each_part(const Shape& images, std::int64_t channel, const Body& body) {
  const std::int64_t pixels = images[2] * images[3];
  for (std::int64_t image = 0; image < images[0]; ++image) {
    const std::int64_t first = (image * images[1] + channel) * pixels;
    body(first, first + pixels);
    alive();
  }
}

/// The sum of value(i) over the elements of the channel.
template <class Value>
double sum_of_channel(const Shape& images, std::int64_t channel, const Value& value) {
  double sum = 0;
  for_each_part(images, channel, [&](std::int64_t first, std::int64_t end) {
    double part = 0;
#pragma omp simd reduction(+ : part)
    for (std::int64_t i = first; i < end; ++i) {
      part += value(i);
    }
    sum += part;
  });
  return sum;
}

}  // namespace crossover
