// SPDX-License-Identifier: Apache-2.0
#include "crossover/start.h"

#include <algorithm>
#include <stdexcept>

#include "crossover/random.h"
#include "crossover/training.h"

namespace crossover {
namespace {

void require_size(const Tensor& tensor, std::size_t count) {
  if (static_cast<std::int64_t>(count) != elements(tensor.shape)) {
    throw std::invalid_argument("tensor '" + tensor.name + "' " + to_string(tensor.shape) +
                                " can't take " + std::to_string(count) + " values");
  }
}

template <class Stored>
void upload_as(Program& program, Id id, std::span<const double> values) {
  std::vector<Stored> stored(values.size());
  std::transform(values.begin(), values.end(), stored.begin(),
                 [](double v) { return static_cast<Stored>(v); });
  program.upload(id, std::as_bytes(std::span(stored)));
}

template <class Stored>
std::vector<double> download_as(Program& program, Id id, std::int64_t count) {
  std::vector<Stored> stored(static_cast<std::size_t>(count));
  program.download(id, std::as_writable_bytes(std::span(stored)));
  return {stored.begin(), stored.end()};
}

const std::vector<Role>& restarted_at_zero() {
  static const std::vector<Role> roles{Role::gradient, Role::state, Role::loss};
  return roles;
}

}  // namespace

void upload(Program& program, const Workload& workload, Id id, std::span<const double> values) {
  require_size(workload[id], values.size());
  switch (workload[id].type) {
    case Type::f32:
      return upload_as<float>(program, id, values);
    case Type::i32:
      return upload_as<std::int32_t>(program, id, values);
  }
}

std::vector<double> download(Program& program, const Workload& workload, Id id) {
  const std::int64_t count = elements(workload[id].shape);
  return workload[id].type == Type::f32 ? download_as<float>(program, id, count)
                                        : download_as<std::int32_t>(program, id, count);
}

void set_data(Program& program, const Workload& workload, const Dataset& dataset) {
  upload(program, workload, find(workload, "inputs"), dataset.inputs);
  const std::vector<double> labels(dataset.labels.begin(), dataset.labels.end());
  upload(program, workload, find(workload, "labels"), labels);
}

void set_data(Reference& reference, const Dataset& dataset) {
  const Workload& workload = reference.workload();
  const Id inputs = find(workload, "inputs");
  const Id labels = find(workload, "labels");
  require_size(workload[inputs], dataset.inputs.size());
  require_size(workload[labels], dataset.labels.size());
  std::copy(dataset.inputs.begin(), dataset.inputs.end(), reference[inputs].begin());
  std::copy(dataset.labels.begin(), dataset.labels.end(), reference[labels].begin());
}

void restart(Program& program, const Workload& workload) {
  for (const Id id : tensors_of(workload, Role::parameter)) {
    upload(program, workload, id, start_values(workload, id));
  }
  for (const Role role : restarted_at_zero()) {
    for (const Id id : tensors_of(workload, role)) {
      upload(program, workload, id,
             std::vector<double>(static_cast<std::size_t>(elements(workload[id].shape))));
    }
  }
}

void restart(Reference& reference) {
  const Workload& workload = reference.workload();
  for (const Id id : tensors_of(workload, Role::parameter)) {
    const std::vector<double> values = start_values(workload, id);
    std::copy(values.begin(), values.end(), reference[id].begin());
  }
  for (const Role role : restarted_at_zero()) {
    for (const Id id : tensors_of(workload, role)) {
      std::ranges::fill(reference[id], 0.0);
    }
  }
}

}  // namespace crossover
