// SPDX-License-Identifier: Apache-2.0
#include "crossover/start.h"

#include <algorithm>
#include <concepts>
#include <stdexcept>
#include <type_traits>

#include "crossover/alive.h"
#include "crossover/float16.h"
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

void store(double value, std::integral auto& to) {
  to = static_cast<std::remove_reference_t<decltype(to)>>(value);
}
void store(double value, auto& to) {
  to = narrowed<std::remove_reference_t<decltype(to)>>(static_cast<float>(value));
}

double value_of(std::integral auto stored) { return stored; }
double value_of(auto stored) { return widened(stored); }

std::size_t to_size(std::int64_t i) { return static_cast<std::size_t>(i); }

/// work(T{}) for the T that stores the type.
template <class Work>
auto with_stored(Type type, const Work& work) {
  switch (type) {
    case Type::i32:
      return work(std::int32_t{});
    case Type::u8:
      return work(std::uint8_t{});
    default:
      return with_float(type, work);
  }
}

const std::vector<Role>& restarted_at_zero() {
  static const std::vector<Role> roles{Role::gradient, Role::state, Role::loss};
  return roles;
}

/// The tensor of labels or targets.
Id wanted_of(const Workload& workload, const Dataset& dataset) {
  return find(workload, dataset.targets.empty() ? "labels" : "targets");
}

}  // namespace

void upload(Program& program, const Workload& workload, Id id, std::span<const double> values) {
  require_size(workload[id], values.size());
  with_stored(workload[id].type, [&](auto zero) {
    std::vector<decltype(zero)> stored(values.size());
    for_each_index(std::ssize(values),
                   [&](std::int64_t i) { store(values[to_size(i)], stored[to_size(i)]); });
    program.upload(id, std::as_bytes(std::span(stored)));
  });
}

std::vector<double> download(Program& program, const Workload& workload, Id id) {
  std::vector<double> values(static_cast<std::size_t>(elements(workload[id].shape)));
  with_stored(workload[id].type, [&](auto zero) {
    std::vector<decltype(zero)> stored(values.size());
    program.download(id, std::as_writable_bytes(std::span(stored)));
    for_each_index(std::ssize(stored),
                   [&](std::int64_t i) { values[to_size(i)] = value_of(stored[to_size(i)]); });
  });
  return values;
}

void set_inputs(Program& program, const Workload& workload, const Dataset& dataset) {
  upload(program, workload, find(workload, "inputs"), dataset.inputs);
}

void set_inputs(Reference& reference, const Dataset& dataset) {
  const Workload& workload = reference.workload();
  const Id inputs = find(workload, "inputs");
  require_size(workload[inputs], dataset.inputs.size());
  std::copy(dataset.inputs.begin(), dataset.inputs.end(), reference[inputs].begin());
}

void set_data(Program& program, const Workload& workload, const Dataset& dataset) {
  set_inputs(program, workload, dataset);
  const std::vector<double> labels(dataset.labels.begin(), dataset.labels.end());
  upload(program, workload, wanted_of(workload, dataset),
         dataset.targets.empty() ? labels : dataset.targets);
}

void set_data(Reference& reference, const Dataset& dataset) {
  set_inputs(reference, dataset);
  const Workload& workload = reference.workload();
  const Id wanted = wanted_of(workload, dataset);
  require_size(workload[wanted], dataset.labels.size() + dataset.targets.size());
  std::copy(dataset.labels.begin(), dataset.labels.end(), reference[wanted].begin());
  std::copy(dataset.targets.begin(), dataset.targets.end(), reference[wanted].begin());
}

/// Before each repetition of a row: large networks wait for it, so nothing takes a detour.
void restart(Program& program, const Workload& workload) {
  for (const Id id : tensors_of(workload, Role::parameter)) {
    const StartValues values(workload, id);
    with_stored(workload[id].type, [&](auto zero) {
      std::vector<decltype(zero)> stored(values.size());
      for_each_index(std::ssize(stored),
                     [&](std::int64_t i) { store(values[to_size(i)], stored[to_size(i)]); });
      program.upload(id, std::as_bytes(std::span(stored)));
    });
  }
  for (const Role role : restarted_at_zero()) {
    for (const Id id : tensors_of(workload, role)) {
      const std::vector<std::byte> zeros(static_cast<std::size_t>(bytes(workload[id])));
      program.upload(id, zeros);
    }
  }
}

void restart(Reference& reference) {
  const Workload& workload = reference.workload();
  for (const Id id : tensors_of(workload, Role::parameter)) {
    const StartValues values(workload, id);
    const std::span<double> to = reference[id];
    const Type type = workload[id].type;
    for_each_index(std::ssize(to),
                   [&](std::int64_t i) { to[to_size(i)] = stored_as(type, values[to_size(i)]); });
  }
  for (const Role role : restarted_at_zero()) {
    for (const Id id : tensors_of(workload, role)) {
      std::ranges::fill(reference[id], 0.0);
    }
  }
}

}  // namespace crossover
