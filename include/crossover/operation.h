// SPDX-License-Identifier: Apache-2.0
// What every operation of a Workload provides. operations.h lists the operations; each theme of
// them has a header in operations/ and a source of the same name in src/operations/.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "crossover/tensor.h"

namespace crossover {

struct Workload;
class Fit;           // src/operations/fit.h: asks what shapes and types an operation's tensors have
class ReferenceRun;  // src/reference/run.h: where the tensors of the run that is computed lie

/// What a profile divides time into.
enum class OpCategory {
  product,
  convolution,
  normalization,
  pooling,
  elementwise,
  loss,
  update,
  reorder,  ///< into another layout of memory
  copy_to_device,
  copy_from_device,
  launch,
  synchronization,
  communication  ///< between ranks
};

/// The tensors that an operation reads and writes; absent ones (none) are left out.
/// An operand that is updated in place is in both.
struct Operands {
  std::vector<Id> reads, writes;
};

/// What an operation costs; cost.h says what counts.
struct Cost {
  double flops = 0;
  double avoidable_flops = 0;  ///< of these, what is known to save some does without
  double bytes = 0;
  std::int64_t launches = 0;

  Cost& operator+=(const Cost& other);
};

/// A matrix product c [m, n] = op(a) [m, k] op(b) [k, n], where op transposes if its flag is set.
struct ProductSize {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  Type type = Type::f32;  ///< as which a, b and c are stored

  // clang-tidy 14 takes the comparison with zero that the compiler makes for ours.
  // NOLINTNEXTLINE(modernize-use-nullptr,readability-implicit-bool-conversion)
  auto operator<=>(const ProductSize&) const = default;
};

/// A product that an operation consists of. `pass`: "forward", "dx", "dw", or "" of a Gemm.
struct OpProduct {
  ProductSize size;
  const char* pass = "";
};

/// Sees the members of an operation, each with its name: see.reads() and see.writes() its tensors
/// (one, a list, or none; an operand that is updated in place is both), see.value() whatever else
/// tells one operation from another. see.newer_...() of members that operations had not always:
/// where they are as if there were none (none, or `before`), fingerprints do without, so that they
/// stay those that files hold. The order of the calls is that of Operands.
struct OperationVisitor {
  void reads(const char* name, Id id);
  void reads(const char* name, const std::vector<Id>& ids);
  void writes(const char* name, Id id);
  void writes(const char* name, const std::vector<Id>& ids);
  template <class Value>
  void value(const char* name, const Value& value);
  void newer_reads(const char* name, Id id);
  template <class Value>
  void newer_value(const char* name, const Value& value, const Value& before);
};

/// What an operation that consists of matrix products has to tell.
template <class T>
concept HasProducts = requires(const T& op, const Workload& workload) {
  { op.products(workload) } -> std::same_as<std::vector<OpProduct>>;
};

template <class T>
concept NamedByKind = requires(const T& op) {
  op.name();
};
template <class T>
concept Named = NamedByKind<T> || requires {
  T::name;
};

/// The name of an operation: of one that is of several kinds, its kind's.
template <Named T>
constexpr const char* name_of(const T& op) {
  if constexpr (NamedByKind<T>) {
    return op.name();
  } else {
    return op.name;
  }
}

/// An operation is a struct of tensors and values with these members. A type that lacks one does
/// not compile where the operations are listed.
///   name            as messages and files call it; name() where that depends on its kind
///   category        what its time counts as in profiles
///   describe(see)   shows its members to an OperationVisitor, or a class like it
///   check(fit)      throws std::invalid_argument where shapes or types do not fit
///   cost(workload)  its operations and launches; bytes follow from its operands
///   execute(run)    what it means, in float64
/// One that is a product or a convolution, or consists of them, also has
///   products(...)   its matrix products, in the order in which they are computed
template <class T>
concept Operation = requires(const T& op, OperationVisitor& see, const Fit& fit,
                             const Workload& workload, ReferenceRun& run) {
  { name_of(op) } -> std::same_as<const char*>;
  { T::category } -> std::convertible_to<OpCategory>;
  { op.describe(see) } -> std::same_as<void>;
  { op.check(fit) } -> std::same_as<void>;
  { op.cost(workload) } -> std::same_as<Cost>;
  { op.execute(run) } -> std::same_as<void>;
}
&&(HasProducts<T> ||
   (T::category != OpCategory::product && T::category != OpCategory::convolution));

}  // namespace crossover
