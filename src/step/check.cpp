// SPDX-License-Identifier: Apache-2.0
// Shapes, types and roles of a Workload, checked before anything is computed with it.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "crossover/step.h"
#include "overload.h"

namespace crossover {
namespace {

class Checker {
 public:
  explicit Checker(const Workload& workload) : workload_(workload) {}

  void run() {
    for (const Tensor& tensor : workload_.tensors) {
      for (const std::int64_t extent : tensor.shape) {
        require(extent > 0,
                "tensor '" + tensor.name + "' has a size below one: " + to_string(tensor.shape));
      }
      if (tensor.role == Role::input) {
        check_view(tensor);
      }
    }
    for (const Step& step : workload_.steps) {
      for (const Op& op : step.ops) {
        op_ = name(op);
        std::visit([this](const auto& o) { check_op(o); }, op);
      }
    }
    op_ = "order";
    for (const Run& run : workload_.order) {
      check_run(run);
    }
  }

 private:
  void require(bool condition, const std::string& what) const {
    if (!condition) {
      throw std::invalid_argument(std::string(op_) + ": " + what);
    }
  }

  [[nodiscard]] const Tensor& at(Id id) const {
    require(id >= 0 && static_cast<std::size_t>(id) < workload_.tensors.size(),
            "no tensor has the number " + std::to_string(id));
    return workload_[id];
  }

  void expect(Id id, const Shape& shape, Type type = Type::f32) const {
    const Tensor& tensor = at(id);
    require(tensor.shape == shape, "tensor '" + tensor.name + "' is " + to_string(tensor.shape) +
                                       ", not " + to_string(shape));
    require(tensor.type == type, "tensor '" + tensor.name + "' is stored as " +
                                     to_string(tensor.type) + ", not " + to_string(type));
  }

  /// The type of a tensor that an operation calculates with.
  [[nodiscard]] Type number(Id id) const {
    const Tensor& tensor = at(id);
    require(is_float(tensor.type), "tensor '" + tensor.name + "' is stored as " +
                                       to_string(tensor.type) + ", which nothing calculates with");
    return tensor.type;
  }

  /// Of tensors that may be f32 where the operation's other operands are of 16 bits.
  [[nodiscard]] Type number_or_f32(Id id, Type other) const {
    const Type type = number(id);
    require(type == other || type == Type::f32, "tensor '" + at(id).name + "' is stored as " +
                                                    to_string(type) + ", not f32 or " +
                                                    to_string(other));
    return type;
  }

  void check_view(const Tensor& view) const {
    const Tensor& source = at(view.source);
    require(source.role == Role::data && source.type == view.type &&
                source.shape.size() == view.shape.size() && !view.shape.empty() &&
                std::equal(source.shape.begin() + 1, source.shape.end(), view.shape.begin() + 1),
            "'" + view.name + "' " + to_string(view.shape) + " is no batch of rows of '" +
                source.name + "' " + to_string(source.shape));
  }

  void check_run(const Run& run) const {
    require(run.step >= 0 && static_cast<std::size_t>(run.step) < workload_.steps.size(),
            "no such step");
    for (const Op& op : workload_.steps[static_cast<std::size_t>(run.step)].ops) {
      for (const Id id : operands(op).reads) {
        const Tensor& view = workload_[id];
        require(view.role != Role::input || (run.first_row >= 0 && run.first_row + view.shape[0] <=
                                                                       at(view.source).shape[0]),
                "a run reads beyond the rows of '" + view.name + "'");
      }
    }
  }

  /// x [..., in] through w [out, in] gives [..., out].
  [[nodiscard]] Shape linear_result(Id x, Id w) const {
    require(at(w).shape.size() == 2, "weights '" + at(w).name + "' are no matrix");
    require(!at(x).shape.empty() && at(x).shape.back() == at(w).shape[1],
            "'" + at(x).name + "' " + to_string(at(x).shape) + " does not fit the weights " +
                to_string(at(w).shape));
    Shape result = at(x).shape;
    result.back() = at(w).shape[0];
    return result;
  }

  void check_op(const Linear& op) const {
    const Shape result = linear_result(op.x, op.w);
    const Type type = number(op.x);
    expect(op.w, at(op.w).shape, type);
    const Type result_type = number_or_f32(op.y, type);
    expect(op.y, result, result_type);
    if (op.bias != none) {
      expect(op.bias, {at(op.w).shape[0]}, result_type);
    }
  }

  void check_op(const LinearGrad& op) const {
    const Shape result = linear_result(op.x, op.w);
    const Type type = number(op.x);
    expect(op.w, at(op.w).shape, type);
    expect(op.dy, result, type);
    expect(op.dw, at(op.w).shape);
    if (op.dbias != none) {
      expect(op.dbias, {at(op.w).shape[0]});
    }
    if (op.dx != none) {
      expect(op.dx, at(op.x).shape, type);
    }
  }

  void check_op(const Cast& op) const {
    const Type from = number(op.x);
    const Type to = number(op.y);
    expect(op.y, at(op.x).shape, to);
    require(from != to && (from == Type::f32 || to == Type::f32),
            "from '" + at(op.x).name + "' to '" + at(op.y).name + "', from " + to_string(from) +
                " to " + to_string(to) + ": one of two different types must be f32");
  }

  void check_op(const Activate& op) const { expect(op.y, at(op.x).shape, number(op.x)); }

  void check_op(const ActivateGrad& op) const {
    expect(op.dy, at(op.y).shape, number(op.y));
    expect(op.dx, at(op.y).shape, number(op.y));
  }

  void check_op(const Add& op) const {
    expect(op.b, at(op.a).shape, number(op.a));
    expect(op.y, at(op.a).shape, number(op.a));
  }

  void check_op(const SoftmaxCrossEntropy& op) const {
    require(at(op.logits).shape.size() == 2, "the logits are no matrix [batch, classes]");
    expect(op.logits, at(op.logits).shape);
    expect(op.dlogits, at(op.logits).shape, number(op.dlogits));
    expect(op.labels, {at(op.logits).shape[0]}, Type::i32);
    expect(op.loss, {static_cast<std::int64_t>(workload_.order.size())});
  }

  void check_update(const std::vector<Id>& parameters, const std::vector<Id>& with) const {
    require(parameters.size() == with.size(), "lists of different lengths");
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      expect(parameters[i], at(parameters[i]).shape);
      expect(with[i], at(parameters[i]).shape);
    }
  }

  void check_op(const Sgd& op) const { check_update(op.parameters, op.gradients); }

  void check_op(const AdamW& op) const {
    check_update(op.parameters, op.gradients);
    check_update(op.parameters, op.m);
    check_update(op.parameters, op.v);
    require(op.weight_decay.size() == op.parameters.size(), "lists of different lengths");
    expect(op.step, {1}, Type::i32);
  }

  /// The extents of op(id), a matrix.
  [[nodiscard]] Shape factor(Id id, bool transposed) const {
    Shape shape = at(id).shape;
    require(shape.size() == 2, "'" + at(id).name + "' " + to_string(shape) + " is no matrix");
    if (transposed) {
      std::swap(shape[0], shape[1]);
    }
    return shape;
  }

  void check_op(const Gemm& op) const {
    const Shape a = factor(op.a, op.transpose_a);
    const Shape b = factor(op.b, op.transpose_b);
    require(a[1] == b[0], "'" + at(op.a).name + "' as " + to_string(a) + " does not fit '" +
                              at(op.b).name + "' as " + to_string(b));
    const Type type = number(op.a);
    expect(op.b, at(op.b).shape, type);
    expect(op.c, {a[0], b[1]}, number_or_f32(op.c, type));
    require(op.c != op.a && op.c != op.b, "the result '" + at(op.c).name + "' is also a factor");
  }

  const Workload& workload_;
  const char* op_ = "tensors";
};

}  // namespace

void check(const Workload& workload) { Checker(workload).run(); }

Precision stored_precision(const Workload& workload) {
  const auto stores = [&](Type type) {
    return std::any_of(workload.tensors.begin(), workload.tensors.end(),
                       [&](const Tensor& tensor) { return tensor.type == type; });
  };
  if (stores(Type::bf16) && stores(Type::f16)) {
    throw std::invalid_argument("tensors: a workload stores bf16 or f16, not both");
  }
  return stores(Type::bf16) ? Precision::bf16 : stores(Type::f16) ? Precision::f16 : Precision::f32;
}

void check(const Workload& workload, Precision precision) {
  check(workload);
  const Precision stored = stored_precision(workload);
  if (stored != (precision == Precision::tf32 ? Precision::f32 : precision)) {
    throw std::invalid_argument("a workload that stores " + to_string(stored) +
                                " can't be compiled for " + to_string(precision));
  }
}

}  // namespace crossover
