// SPDX-License-Identifier: Apache-2.0
#include "crossover/fingerprint.h"

#include <bit>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "crossover/alive.h"
#include "crossover/random.h"

namespace crossover {
namespace {

class Hash {
 public:
  template <class... Values>
  void add_all(const Values&... values) {
    (add(values), ...);
  }

  // Of an operation, as it describes itself:
  template <class Ids>
  void reads(const char* name, const Ids& ids) {
    value(name, ids);
  }
  template <class Ids>
  void writes(const char* name, const Ids& ids) {
    value(name, ids);
  }
  template <class Value>
  void value(const char* name, const Value& value) {
    add_all(std::string_view(name), value);
  }
  void newer_reads(const char* name, Id id) { newer_value(name, id, none); }
  template <class Value>
  void newer_value(const char* name, const Value& value, const Value& before) {
    if (value != before) {
      this->value(name, value);
    }
  }

  // Of a function:
  void number(const char* name, double value, double /*absent*/) { this->value(name, value); }
  void any_number(const char* name, double value, double /*absent*/) { this->value(name, value); }

  [[nodiscard]] std::uint64_t state() const { return state_; }

 private:
  template <class Number>
  requires std::is_integral_v<Number> || std::is_enum_v<Number>
  void add(Number number) {
    if constexpr (std::is_same_v<Number, std::uint64_t>) {
      word(number);
    } else {
      word(static_cast<std::uint64_t>(static_cast<std::int64_t>(number)));
    }
  }
  void add(double number) { word(std::bit_cast<std::uint64_t>(number)); }
  void add(std::string_view text) {
    word(text.size());
    for (const char byte : text) {
      word(static_cast<unsigned char>(byte));
    }
  }
  template <class Element>
  void add(const std::vector<Element>& list) {
    word(list.size());
    for_each_index(std::ssize(list),
                   [&](std::int64_t i) { add(list[static_cast<std::size_t>(i)]); });
  }
  void add(const Window& window) {
    const auto& [size, stride, padding, ceil, dilation] = window;
    add_all(size.down, stride.down, padding.down, ceil);
    if (dilation.down != 1) {  // so that windows without any keep the hashes that files hold,
      add_all(dilation.down);
    }
    if (!window.is_square()) {  // as do square ones
      add_all(std::string_view("across"), size.across, stride.across, padding.across,
              dilation.across);
    }
  }
  void add(const Function& function) {
    std::visit(
        [this](const auto& of) {
          add(std::string_view(of.name));
          of.describe(of, *this);
        },
        function);
  }
  void add(const BlockExtent& extent) {
    const auto& [count, from_step, to_step] = extent;
    add_all(count, from_step, to_step);
  }
  void add(const CopiedBlock& block) {
    const auto& [from, to, from_first, to_first, extents] = block;
    add_all(from, to, from_first, to_first, extents);
  }
  void add(const Tensor& tensor) {
    const auto& [name, shape, type, role, source, start] = tensor;
    const auto& [bound, value, factor, offset] = start;
    add_all(shape, type, role, source, bound, value);
    if (factor != none || offset != none) {
      add_all(std::string_view("of others"), factor, offset);
    }
  }
  void add(const Op& op) {
    add(std::string_view(name(op)));
    std::visit([this](const auto& of) { of.describe(*this); }, op);
  }
  void add(const Step& step) { add(step.ops); }
  void add(const Run& run) {
    const auto& [step, first_row] = run;
    add_all(step, first_row);
  }

  void word(std::uint64_t bits) { state_ = finalized(state_ ^ bits); }

  std::uint64_t state_ = 0xCBF29CE484222325U;
};

template <class... Values>
std::uint64_t hash(const Values&... values) {
  Hash hash;
  hash.add_all(values...);
  return hash.state();
}

}  // namespace

std::uint64_t fingerprint(const Workload& workload) {
  const auto& [tensors, steps, order, epoch] = workload;
  return epoch == none ? hash(tensors, steps, order)
                       : hash(tensors, steps, order, std::string_view("epoch"), epoch);
}

std::uint64_t fingerprint(const Dataset& dataset) {
  return dataset.targets.empty() ? hash(dataset.sample, dataset.inputs, dataset.labels)
                                 : hash(dataset.sample, dataset.inputs, dataset.targets);
}

std::uint64_t fingerprint(std::uint64_t workload, std::uint64_t dataset) {
  return hash(workload, dataset);
}

}  // namespace crossover
