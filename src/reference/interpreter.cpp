// SPDX-License-Identifier: Apache-2.0
// The meaning of each operation in float64, as plain as it can be: loops over rows. Only the matrix
// product is blocked and threaded, because whole epochs are checked with it.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "../step/overload.h"
#include "crossover/elementwise.h"
#include "crossover/float16.h"
#include "crossover/reference.h"

namespace crossover {
namespace {

/// A matrix as a product reads it: element (i, j) lies at data[i * row + j * column].
struct View {
  const double* data;
  std::int64_t row, column;
};

/// c [m, n] (+)= a [m, k] b [k, n], c row-major.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, View a, View b, double* c,
              bool accumulate) {
  std::vector<double> transposed;
  if (b.column != 1) {
    transposed.resize(static_cast<std::size_t>(k * n));
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t p = 0; p < k; ++p) {
        transposed[static_cast<std::size_t>(p * n + j)] = b.data[p * b.row + j * b.column];
      }
    }
    b = {transposed.data(), n, 1};
  }
  const bool large = m * n * k > 100000;  // below, threads cost more than they bring
  constexpr std::int64_t depth = 64;      // rows of b, and
  constexpr std::int64_t width = 512;     // columns of b, that stay in the second-level cache
  constexpr std::int64_t unrolled = 4;    // rows of b that one pass over a row of c takes
#pragma omp parallel for schedule(static) if (large)
  for (std::int64_t i = 0; i < m; ++i) {
    if (!accumulate) {
      std::fill_n(c + i * n, n, 0.0);
    }
  }
  for (std::int64_t j0 = 0; j0 < n; j0 += width) {
    const std::int64_t columns = std::min(width, n - j0);
    for (std::int64_t p0 = 0; p0 < k; p0 += depth) {
      const std::int64_t p1 = std::min(k, p0 + depth);
#pragma omp parallel for schedule(static) if (large)
      for (std::int64_t i = 0; i < m; ++i) {
        double* to = c + i * n + j0;
        std::int64_t p = p0;
        const auto factor = [&](std::int64_t at) { return a.data[i * a.row + at * a.column]; };
        for (; p + unrolled <= p1; p += unrolled) {
          const double f0 = factor(p);
          const double f1 = factor(p + 1);
          const double f2 = factor(p + 2);
          const double f3 = factor(p + 3);
          const double* from = b.data + p * b.row + j0;
          for (std::int64_t j = 0; j < columns; ++j) {
            to[j] += f0 * from[j] + f1 * from[j + b.row] + f2 * from[j + 2 * b.row] +
                     f3 * from[j + 3 * b.row];
          }
        }
        for (; p < p1; ++p) {
          const double f = factor(p);
          const double* from = b.data + p * b.row + j0;
          for (std::int64_t j = 0; j < columns; ++j) {
            to[j] += f * from[j];
          }
        }
      }
    }
  }
}

class Interpreter {
 public:
  Interpreter(const Workload& workload, std::vector<std::vector<double>>& values)
      : workload_(workload), values_(values) {}

  void run(std::int64_t position) {
    position_ = position;
    const Run& run = workload_.order[static_cast<std::size_t>(position)];
    first_row_ = run.first_row;
    for (const Op& op : workload_.steps[static_cast<std::size_t>(run.step)].ops) {
      std::visit([this](const auto& o) { execute(o); }, op);
      store(op);
    }
  }

 private:
  [[nodiscard]] const Shape& shape(Id id) const { return workload_[id].shape; }
  [[nodiscard]] std::int64_t size(Id id) const { return elements(shape(id)); }

  double* at(Id id) {
    const Tensor& tensor = workload_[id];
    if (tensor.role == Role::input) {
      const std::int64_t row = elements(tensor.shape) / tensor.shape[0];
      return values_[static_cast<std::size_t>(tensor.source)].data() + first_row_ * row;
    }
    return values_[static_cast<std::size_t>(id)].data();
  }

  /// Whatever is stored in 16 bits holds numbers of that type.
  void store(const Op& op) {
    for (const Id id : operands(op).writes) {
      const Type type = workload_[id].type;
      if (!is_16_bit(type)) {
        continue;
      }
      double* values = at(id);
      const std::int64_t count = size(id);
#pragma omp parallel for simd schedule(static) if (count > 100000)
      for (std::int64_t i = 0; i < count; ++i) {
        values[i] = type == Type::bf16 ? rounded_to_bf16(values[i]) : rounded_to_f16(values[i]);
      }
    }
  }

  void execute(const Linear& op) {
    const std::int64_t rows = leading(shape(op.x));
    const std::int64_t in = shape(op.w)[1];
    const std::int64_t out = shape(op.w)[0];
    double* y = at(op.y);
    multiply(rows, out, in, {at(op.x), in, 1}, {at(op.w), 1, in}, y, false);
    const double* bias = op.bias != none ? at(op.bias) : nullptr;
    for (std::int64_t i = 0; i < rows * out; ++i) {
      y[i] = activate(op.activation, y[i] + (bias != nullptr ? bias[i % out] : 0));
    }
  }

  void execute(const LinearGrad& op) {
    const std::int64_t rows = leading(shape(op.x));
    const std::int64_t in = shape(op.w)[1];
    const std::int64_t out = shape(op.w)[0];
    const double* dy = at(op.dy);
    if (op.dx != none) {
      double* dx = at(op.dx);
      multiply(rows, in, out, {dy, out, 1}, {at(op.w), in, 1}, dx, false);
      const double* x = at(op.x);
      for (std::int64_t i = 0; i < rows * in; ++i) {
        dx[i] *= derivative_from_result(op.x_activation, x[i]);
      }
    }
    multiply(out, in, rows, {dy, 1, out}, {at(op.x), in, 1}, at(op.dw), op.accumulate);
    if (op.dbias != none) {
      double* dbias = at(op.dbias);
      if (!op.accumulate) {
        std::fill_n(dbias, out, 0.0);
      }
      for (std::int64_t i = 0; i < rows * out; ++i) {
        dbias[i % out] += dy[i];
      }
    }
  }

  void execute(const Cast& op) { std::copy_n(at(op.x), size(op.x), at(op.y)); }

  void execute(const Activate& op) {
    const double* x = at(op.x);
    double* y = at(op.y);
    for (std::int64_t i = 0; i < size(op.x); ++i) {
      y[i] = activate(op.activation, x[i]);
    }
  }

  void execute(const ActivateGrad& op) {
    const double* y = at(op.y);
    const double* dy = at(op.dy);
    double* dx = at(op.dx);
    for (std::int64_t i = 0; i < size(op.y); ++i) {
      dx[i] = dy[i] * derivative_from_result(op.activation, y[i]);
    }
  }

  void execute(const Add& op) {
    const double* a = at(op.a);
    const double* b = at(op.b);
    double* y = at(op.y);
    for (std::int64_t i = 0; i < size(op.y); ++i) {
      y[i] = a[i] + b[i];
    }
  }

  void execute(const SoftmaxCrossEntropy& op) {
    const std::int64_t batch = shape(op.logits)[0];
    const std::int64_t classes = shape(op.logits)[1];
    double loss = 0;
    for (std::int64_t i = 0; i < batch; ++i) {
      const double* logits = at(op.logits) + i * classes;
      double* gradient = at(op.dlogits) + i * classes;
      const auto label = static_cast<std::int64_t>(at(op.labels)[i]);
      const double largest = *std::max_element(logits, logits + classes);
      double sum = 0;
      for (std::int64_t c = 0; c < classes; ++c) {
        sum += std::exp(logits[c] - largest);
      }
      loss += largest + std::log(sum) - logits[label];
      for (std::int64_t c = 0; c < classes; ++c) {
        const double probability = std::exp(logits[c] - largest) / sum;
        gradient[c] = (probability - (c == label ? 1 : 0)) * op.scale / static_cast<double>(batch);
      }
    }
    at(op.loss)[position_] = loss / static_cast<double>(batch);
  }

  void execute(const Sgd& op) {
    for (std::size_t p = 0; p < op.parameters.size(); ++p) {
      double* w = at(op.parameters[p]);
      const double* g = at(op.gradients[p]);
      for (std::int64_t i = 0; i < size(op.parameters[p]); ++i) {
        w[i] = sgd(w[i], op.gradient_factor * g[i], op.learning_rate);
      }
    }
  }

  void execute(const AdamW& op) {
    const double t = ++*at(op.step);
    for (std::size_t p = 0; p < op.parameters.size(); ++p) {
      const auto factors = adamw_factors<double>(op, op.weight_decay[p], static_cast<int>(t));
      double* w = at(op.parameters[p]);
      const double* g = at(op.gradients[p]);
      double* m = at(op.m[p]);
      double* v = at(op.v[p]);
      for (std::int64_t i = 0; i < size(op.parameters[p]); ++i) {
        adamw(w[i], g[i], m[i], v[i], factors);
      }
    }
  }

  void execute(const Gemm& op) {
    const Shape& a = shape(op.a);
    const Shape& b = shape(op.b);
    const View left = op.transpose_a ? View{at(op.a), 1, a[1]} : View{at(op.a), a[1], 1};
    const View right = op.transpose_b ? View{at(op.b), 1, b[1]} : View{at(op.b), b[1], 1};
    multiply(shape(op.c)[0], shape(op.c)[1], op.transpose_a ? a[0] : a[1], left, right, at(op.c),
             false);
  }

  const Workload& workload_;
  std::vector<std::vector<double>>& values_;
  std::int64_t position_ = 0;
  std::int64_t first_row_ = 0;
};

bool has_values(const Workload& workload, std::size_t i) {
  return workload.tensors[i].role != Role::input;
}

}  // namespace

Reference::Reference(Workload workload) : workload_(std::move(workload)) {
  check(workload_);
  values_.resize(workload_.tensors.size());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (has_values(workload_, i)) {
      values_[i].resize(static_cast<std::size_t>(elements(workload_.tensors[i].shape)));
    }
  }
}

std::span<double> Reference::operator[](Id id) { return values_.at(static_cast<std::size_t>(id)); }

void Reference::run(std::int64_t first, std::int64_t count) {
  Interpreter interpreter(workload_, values_);
  for (std::int64_t i = first; i < first + count; ++i) {
    interpreter.run(i);
  }
}

std::int64_t reference_bytes(const Workload& workload) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (has_values(workload, i)) {
      count += elements(workload.tensors[i].shape);
    }
  }
  return count * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace crossover
