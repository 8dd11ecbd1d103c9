// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/resample.h"

#include "../reference/run.h"
#include "crossover/alive.h"
#include "crossover/cost.h"
#include "fit.h"

namespace crossover {

void Resample::check(const Fit& fit) const {
  const Shape& from = image(fit, images());
  const Shape& to = image(fit, result());
  fit.expect(result(), {from[0], from[1], to[2], to[3]}, fit.number(images()));
  const auto has_corners = [](std::int64_t before, std::int64_t after) {
    return after > 1 || before == 1;
  };
  fit.require(!aligned || (has_corners(from[2], to[2]) && has_corners(from[3], to[3])),
              "the corners of one row or column can't be those of several");
}

/// Each number of the result is a sum of two products for each axis whose size changes.
Cost Resample::cost(const Workload& workload) const {
  const Shape& from = workload[images()].shape;
  const Shape& to = workload[result()].shape;
  const double neighbours = (from[2] == to[2] ? 1 : 2) * (from[3] == to[3] ? 1 : 2);
  return {.flops = 2 * neighbours * count(workload, result()), .launches = 1};
}

void Resample::execute(ReferenceRun& run) const {
  const Shape& from = run.shape(images());
  const Shape& to = run.shape(result());
  const auto rows = ResampledAxis<std::int64_t>::of(from[2], to[2], aligned);
  const auto columns = ResampledAxis<std::int64_t>::of(from[3], to[3], aligned);
  const double* read = run.at(x);
  double* written = run.at(y);
  for_each_index(run.size(y), [=](std::int64_t i) { written[i] = 0; });
  for_each_index(run.size(result()), [&, back = transposed](std::int64_t i) {
    const std::int64_t column = i % to[3];
    const std::int64_t row = i / to[3] % to[2];
    const std::int64_t plane = i / to[3] / to[2];
    for (std::int64_t h = rows.read_by(row).begin; h < rows.read_by(row).end; ++h) {
      for (std::int64_t w = columns.read_by(column).begin; w < columns.read_by(column).end; ++w) {
        const double share = rows.share<double>(h, row) * columns.share<double>(w, column);
        const std::int64_t pixel = (plane * from[2] + h) * from[3] + w;
        written[back ? pixel : i] += share * read[back ? i : pixel];
      }
    }
  });
}

}  // namespace crossover
