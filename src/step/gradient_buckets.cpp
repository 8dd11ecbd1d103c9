// SPDX-License-Identifier: Apache-2.0
#include "gradient_buckets.h"

#include <algorithm>

namespace crossover {

void GradientBuckets::add_complete(std::size_t layer, const Workload& workload,
                                   std::vector<Op>& ops) {
  for (const std::size_t parameter : parameters_of_[layer]) {
    const auto here = parameters_of_.begin() + static_cast<std::ptrdiff_t>(layer);
    const bool goes_on =
        std::any_of(parameters_of_.begin(), here, [&](const std::vector<std::size_t>& earlier) {
          return std::find(earlier.begin(), earlier.end(), parameter) != earlier.end();
        });
    if (!goes_on && !is_taken_[parameter]) {
      is_taken_[parameter] = true;
      bucket_.push_back(gradients_[parameter]);
      bytes_ += bytes(workload[gradients_[parameter]]);
    }
  }
  if (bytes_ >= options_.bucket_bytes) {
    close(ops);
  }
}

void GradientBuckets::add_rest(std::vector<Op>& ops) {
  for (std::size_t parameter = 0; parameter < gradients_.size(); ++parameter) {
    if (!is_taken_[parameter]) {
      bucket_.push_back(gradients_[parameter]);
    }
  }
  close(ops);
}

void GradientBuckets::close(std::vector<Op>& ops) {
  if (!bucket_.empty()) {
    std::sort(bucket_.begin(), bucket_.end());  // as they lie in memory
    ops.emplace_back(AllReduce{.tensors = std::move(bucket_), .ranks = options_.ranks});
  }
  bucket_.clear();
  bytes_ = 0;
}

}  // namespace crossover
