// SPDX-License-Identifier: Apache-2.0
// Two functions, or more, that solve one problem: from which size on is which of them faster? The
// one header of the library crossover::two; docs/howto/two-functions.md begins with 30 lines.
#pragma once

#include <algorithm>
#include <any>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "crossover/two_compare.h"

namespace crossover::two {

// ---- Where a side computes.

struct Device {
  std::string kind = "cpu";  ///< "cpu" or "gpu"
  std::string name = {};     ///< of a GPU, for the result file: "NVIDIA H200"
  /// Returns when the device has done all that it was given. Empty: run() returns no earlier.
  std::function<void()> wait = {};
  std::string missing = {};  ///< why nothing can run on it; empty: it is there
  /// By the device's own clock, the seconds of what `call` gives it; empty: nobody can tell.
  std::function<double(const std::function<void()>& call)> seconds = {};
  std::function<void()> flush = {};  ///< overwrites its caches; empty: nobody can
  /// What the constructor of a side that takes one is handed: a stream, a queue. Empty: nothing.
  std::function<std::any()> stream = {};
};

/// The stream of a device, on its way to a constructor's parameter of the type that it has.
class Stream {
 public:
  /// std::runtime_error where the device hands none out.
  explicit Stream(const Device& device) {
    if (!device.stream) {
      throw std::runtime_error(
          "its constructor takes a stream, and its device has none; set the "
          "device's stream in the program");
    }
    made_ = device.stream();
  }
  /// std::runtime_error where it is of another type.
  template <class Type>
  operator Type() const {  // NOLINT(google-explicit-constructor): for its sake the class is there
    const Type* const stream = std::any_cast<Type>(&made_);
    if (stream == nullptr) {
      throw std::runtime_error(
          "its constructor takes a stream of another type than its device's; "
          "correct one of them in the program");
    }
    return *stream;
  }

 private:
  std::any made_;
};

/// A device that can do nothing more in this process: the next rows get another one.
struct DeviceLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A GPU by HIP, SYCL, Kokkos ... `wait`: for the whole device, not for one queue of it.
inline Device gpu(std::string name, std::function<void()> wait) {
  return {.kind = "gpu", .name = std::move(name), .wait = std::move(wait)};
}

// ---- A side at one size, as the harness sees it. Problem makes these.

class Run {
 public:
  Run() = default;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  virtual ~Run() = default;

  virtual void copy_in() {}   ///< the input, to where run() reads it
  virtual void restore() {}   ///< of that what run() has changed
  virtual void run() = 0;     ///< on a device it may return earlier than that is done
  virtual void copy_out() {}  ///< the result, to the host

  // Of the result that was copied out last, while the right one of its size is known:
  [[nodiscard]] virtual bool has_right() const = 0;
  [[nodiscard]] virtual Difference from_right() const = 0;
  [[nodiscard]] virtual bool has_moved() const = 0;  ///< since remember()
  virtual void remember() = 0;
  virtual void take_as_right() = 0;
  [[nodiscard]] virtual const void* result() const = 0;
};

struct Side {
  std::string name;
  Device device;
  bool copies = false;    ///< its copies are measured as well: with those and without
  bool restores = false;  ///< run() changes what it reads
};

/// A problem whose types are of no matter any more.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  std::string name;
  std::vector<std::int64_t> sizes;
  double tolerance = 0;
  bool has_right = false;  ///< the problem says by itself what is right
  std::function<double(std::int64_t size)> items, bytes;  ///< of a call; empty: not told
  std::vector<Side> sides;

  /// Makes the input of that size, unless it is there.
  virtual void begin(std::int64_t size) = 0;
  /// Whether the right result is known for it: the problem computes it here, or a side has.
  virtual bool knows_right() = 0;
  virtual std::unique_ptr<Run> make(std::size_t side) = 0;
};

// ---- The problem, as its user writes it.

/// From the first to the last, each at most `factor` times the one before.
inline std::vector<std::int64_t> range(std::int64_t from, std::int64_t to, double factor = 4) {
  std::vector<std::int64_t> sizes;
  const double ratio = static_cast<double>(to) / static_cast<double>(from);
  const int steps = std::max(1, static_cast<int>(std::ceil(std::log(ratio) / std::log(factor))));
  for (int step = 0; step <= steps; ++step) {
    const double size = static_cast<double>(from) * std::pow(ratio, 1.0 * step / steps);
    sizes.push_back(std::llround(size));
  }
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

namespace detail {

/// What all runs of a problem share: the input of one size, and the right result.
template <class Input, class Output>
struct Data {
  std::int64_t size = -1;
  Input input{};
  std::optional<Output> right;
  double tolerance = 0;
  std::function<double(const Output& result, const Output& right)> error;
};

template <class Input, class Output>
class RunOf : public Run {
 public:
  explicit RunOf(std::shared_ptr<Data<Input, Output>> data)
      : data_(std::move(data)), size_(data_->size) {}

  [[nodiscard]] bool has_right() const override {
    return data_->size == size_ && data_->right.has_value();
  }
  [[nodiscard]] Difference from_right() const override {
    const Output& right = *data_->right;
    return data_->error ? judged(data_->error(result_, right), data_->tolerance)
                        : difference(result_, right, data_->tolerance);
  }
  [[nodiscard]] bool has_moved() const override {
    return !difference(result_, *remembered_, 0).words.empty();
  }
  void remember() override { remembered_ = result_; }
  void take_as_right() override { data_->right = result_; }
  [[nodiscard]] const void* result() const override { return &result_; }

 protected:
  [[nodiscard]] const Input& input() const { return data_->input; }
  Output result_{};

 private:
  std::shared_ptr<Data<Input, Output>> data_;
  std::int64_t size_;
  std::optional<Output> remembered_;
};

/// Output f(const Input&); void f(const Input&, Output&); or void f(Input&), which changes it.
template <class Input, class Output, class Function>
class FunctionRun final : public RunOf<Input, Output> {
 public:
  static constexpr bool fills = std::is_invocable_v<Function&, const Input&, Output&>;
  static constexpr bool returns = !fills && std::is_invocable_r_v<Output, Function&, const Input&>;
  static constexpr bool changes = !fills && !returns;
  static_assert(!changes ||
                    (std::is_same_v<Input, Output> && std::is_invocable_v<Function&, Input&>),
                "a side is Output f(const Input&), void f(const Input&, Output&), or, where both "
                "are one type, void f(Input&)");

  FunctionRun(std::shared_ptr<Data<Input, Output>> data, Function function)
      : RunOf<Input, Output>(std::move(data)), function_(std::move(function)) {}

  void copy_in() override { restore(); }
  void restore() override {
    if constexpr (changes) {
      this->result_ = this->input();
    }
  }
  void run() override {
    if constexpr (fills) {
      function_(this->input(), this->result_);
    } else if constexpr (returns) {
      this->result_ = function_(this->input());
    } else {
      function_(this->result_);
    }
  }

 private:
  Function function_;
};

/// Of a class with Held(const Input&) or Held(const Input&, stream), run() and copy_out(Output&).
template <class Input, class Output, class Held>
class HeldRun final : public RunOf<Input, Output> {
 public:
  static constexpr bool copies = requires(Held & held, const Input& input) { held.copy_in(input); };
  static constexpr bool restores_itself = requires(Held & held) { held.restore(); };
  static constexpr bool keeps_input = [] {
    if constexpr (requires { Held::keeps_input; }) {
      return static_cast<bool>(Held::keeps_input);
    } else {
      return false;
    }
  }();
  static constexpr bool changes = !keeps_input && (restores_itself || copies);

  HeldRun(std::shared_ptr<Data<Input, Output>> data, const Device& device)
      : RunOf<Input, Output>(std::move(data)), held_(made(this->input(), device)) {}

  void copy_in() override {
    if constexpr (copies) {
      held_.copy_in(this->input());
    }
  }
  void restore() override {
    if constexpr (restores_itself) {
      held_.restore();
    } else if constexpr (changes) {
      copy_in();
    }
  }
  void run() override { held_.run(); }
  void copy_out() override { held_.copy_out(this->result_); }

 private:
  static Held made(const Input& input, const Device& device) {
    if constexpr (std::is_constructible_v<Held, const Input&>) {
      return Held(input);
    } else {
      static_assert(std::is_constructible_v<Held, const Input&, Stream>,
                    "the class of a side is made of (const Input&), or of (const Input&, stream)");
      return Held(input, Stream(device));
    }
  }

  Held held_;
};

}  // namespace detail

template <class Input, class Output = Input>
struct Problem {
  using Data = detail::Data<Input, Output>;
  struct TypedSide : Side {
    std::function<std::unique_ptr<Run>(std::shared_ptr<Data>, const Device& device)> make;
  };

  std::string name;  ///< without '/', as those of sides
  std::vector<std::int64_t> sizes;
  /// The input of a size: the same numbers whenever it is called.
  std::function<Input(std::int64_t size)> make;
  /// Of floating-point numbers: the largest difference over the largest number. All else is equal.
  double tolerance = 0;
  std::function<Output(const Input&)> right = {};  ///< empty: what the first side computes
  /// What is compared with the tolerance, of types that only their user knows; empty: the above.
  std::function<double(const Output& result, const Output& right)> error = {};
  /// How many items a call works on, and how many bytes it has to read and write at least: what it
  /// does of them in a second stands beside its time.
  std::function<double(std::int64_t size)> items = {}, bytes = {};
  std::vector<TypedSide> sides = {};

  /// A function of the host's data: Output f(const Input&); void f(const Input&, Output&), whose
  /// output it may keep from call to call; or void f(Input&), whose input is restored before each
  /// call, outside the clock. `device`: where it computes, if not on the CPU.
  template <class Function>
  Problem& side(std::string called, Function function, Device device = {}) {
    using Made = detail::FunctionRun<Input, Output, Function>;
    return add({std::move(called), std::move(device), false, Made::changes},
               [function = std::move(function)](std::shared_ptr<Data> data, const Device&) {
                 return std::make_unique<Made>(std::move(data), function);
               });
  }

  /// What has data of its own: a class with Held(const Input&), which makes room, or Held(const
  /// Input&, stream) with the one that the device hands out; copy_in(const Input&), run() and
  /// copy_out(Output&). Before each run(), outside the clock, restore() or, where it has none,
  /// copy_in() is called, unless it says `static constexpr bool keeps_input = true`.
  template <class Held>
  Problem& side(std::string called, Device device) {
    using Made = detail::HeldRun<Input, Output, Held>;
    return add({std::move(called), std::move(device), Made::copies, Made::changes},
               [](std::shared_ptr<Data> data, const Device& of) {
                 return std::make_unique<Made>(std::move(data), of);
               });
  }

 private:
  template <class Make>
  Problem& add(Side side, Make make_run) {
    sides.push_back({std::move(side), std::move(make_run)});
    return *this;
  }
};

namespace detail {

template <class Input, class Output>
class WorkOf final : public Work {
 public:
  explicit WorkOf(Problem<Input, Output> problem)
      : problem_(std::move(problem)), data_(std::make_shared<Data<Input, Output>>()) {
    // NOLINTBEGIN(cppcoreguidelines-prefer-member-initializer): they are the base's
    name = problem_.name;
    sizes = problem_.sizes;
    tolerance = problem_.tolerance;
    has_right = static_cast<bool>(problem_.right);
    items = problem_.items;
    bytes = problem_.bytes;
    // NOLINTEND(cppcoreguidelines-prefer-member-initializer)
    sides.assign(problem_.sides.begin(), problem_.sides.end());
    data_->tolerance = tolerance;
    data_->error = problem_.error;
  }

  void begin(std::int64_t size) override {
    if (data_->size != size) {
      data_->right.reset();
      data_->size = -1;  // if it throws
      data_->input = problem_.make(size);
      data_->size = size;
    }
  }
  bool knows_right() override {
    if (!data_->right && problem_.right) {
      data_->right = problem_.right(data_->input);
    }
    return data_->right.has_value();
  }
  std::unique_ptr<Run> make(std::size_t side) override {
    return problem_.sides[side].make(data_, problem_.sides[side].device);
  }

 private:
  Problem<Input, Output> problem_;
  std::shared_ptr<Data<Input, Output>> data_;
};

}  // namespace detail

// ---- The measurement.

/// `optimized`: whether the compiler was asked to, of the program that has the sides.
int measure_work(int argc, char** argv, std::vector<std::unique_ptr<Work>> works, bool optimized);

/// main() returns it, and does nothing before: the program starts itself again to measure. Reads
/// the flags that --help prints; prints each row and the answer; writes --out=FILE.json. The exit
/// code: 0 all rows measured, 1 a row failed or was skipped, 2 wrong usage.
template <class... Inputs, class... Outputs>
int measure(int argc, char** argv, const Problem<Inputs, Outputs>&... problems) {
  std::vector<std::unique_ptr<Work>> works;
  (works.push_back(std::make_unique<detail::WorkOf<Inputs, Outputs>>(problems)), ...);
#ifdef __OPTIMIZE__
  return measure_work(argc, argv, std::move(works), true);
#else
  return measure_work(argc, argv, std::move(works), false);
#endif
}

}  // namespace crossover::two

#if defined(__CUDACC__) || defined(CROSSOVER_TWO_CUDA)
#include "crossover/two_cuda.h"
#endif
