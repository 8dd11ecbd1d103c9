// SPDX-License-Identifier: Apache-2.0
// A device of PyTorch's that is none: its memory is the host's, and one thread computes on it what
// was queued, by PyTorch's kernels of the CPU. Each piece of work first sleeps, so that whoever
// does not wait reads numbers that are not there yet, and a time that is too short.
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace {

constexpr auto device_type = c10::DeviceType::PrivateUse1;
constexpr unsigned char not_there_yet = 0xff;  // of all bytes: a number that is none

class Queue {
 public:
  Queue() {
    std::thread([this] { run(); }).detach();
  }

  void add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return works_.empty(); });
  }

  /// While it is held, nothing begins.
  void hold(bool is_held) {
    const std::lock_guard lock(mutex_);
    is_held_ = is_held;
    changed_.notify_all();
  }

  long pending() {
    const std::lock_guard lock(mutex_);
    return static_cast<long>(works_.size());
  }

  std::atomic<long> nanoseconds{0};  ///< that each kernel sleeps
  std::atomic<long> kernels{0};      ///< done so far

 private:
  void run() {
    const at::AutoDispatchBelowADInplaceOrView no_gradients;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !works_.empty() && !is_held_; });
      const std::function<void()> work = works_.front();
      lock.unlock();
      work();
      lock.lock();
      works_.pop_front();
      changed_.notify_all();
    }
  }

  bool is_held_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> works_;
};

Queue& queue() {
  static auto* const only = new Queue;  // the thread outlives what is static
  return *only;
}

void sleep_as_a_kernel() {
  std::this_thread::sleep_for(std::chrono::nanoseconds(queue().nanoseconds));
  ++queue().kernels;
}

// ---- memory, given back in the order of the queue

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const data = std::malloc(bytes);
    std::memset(data, not_there_yet, bytes);
    return {data, data, &give_back, c10::Device(device_type, 0)};
  }
  static void give_back(void* data) {
    queue().add([data] { std::free(data); });
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    queue().wait();
    std::memcpy(to, from, bytes);
  }
};

Memory memory;
REGISTER_ALLOCATOR(device_type, &memory);

// ---- what PyTorch asks of a device

/// It has one stream, in whose order everything is done: an event waits for all of it.
struct Guard final : c10::impl::NoOpDeviceGuardImpl<device_type> {
  static constexpr c10::DeviceIndex only = 0;
  c10::Device getDevice() const override { return {device_type, only}; }
  c10::Device exchangeDevice(c10::Device /*to*/) const override { return getDevice(); }
  c10::Stream getStream(c10::Device /*of*/) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(device_type, only));
  }
  c10::Stream getDefaultStream(c10::Device of) const override { return getStream(of); }
  c10::Stream getNewStream(c10::Device of, int /*priority*/) const override {
    return getStream(of);
  }
  c10::Stream exchangeStream(c10::Stream of) const noexcept override {
    return getStream(of.device());
  }
  void record(void** /*event*/, const c10::Stream& /*stream*/, c10::DeviceIndex /*device*/,
              c10::EventFlag /*flag*/) const override {}
  void block(void* /*event*/, const c10::Stream& /*stream*/) const override {}
  void synchronizeEvent(void* /*event*/) const override { queue().wait(); }
  void synchronizeDevice(c10::DeviceIndex /*device*/) const override { queue().wait(); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
};
const bool has_hooks = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

// ---- tensors

/// A tensor as the thread of the queue sees it: nothing that PyTorch counts references of.
struct Seen {
  void* data;
  std::vector<std::int64_t> sizes, strides;
  c10::ScalarType type;

  explicit Seen(const at::Tensor& tensor)
      : data(tensor.data_ptr()),
        sizes(tensor.sizes().vec()),
        strides(tensor.strides().vec()),
        type(tensor.scalar_type()) {}

  [[nodiscard]] at::Tensor on_cpu() const { return at::from_blob(data, sizes, strides, type); }
};

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
                 std::optional<bool> /*pinned*/, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &memory,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                         std::optional<at::Device> /*device*/, std::optional<bool> /*pinned*/) {
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &memory,
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(type));
}

/// To the host it waits; from there the host's numbers are read before it returns, as CUDA does
/// with memory that is not pinned.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  if (to.device().type() != device_type) {
    queue().wait();
    to.copy_(Seen(from).on_cpu());
    return to;
  }
  const bool is_here = from.device().type() == device_type;
  const std::optional<at::Tensor> host = is_here ? std::nullopt : std::optional(from.clone());
  const Seen source(is_here ? from : *host), target(to);
  queue().add([host, source, target] {
    sleep_as_a_kernel();
    target.on_cpu().copy_(source.on_cpu());
  });
  return to;
}

at::Scalar number_of(const at::Tensor& tensor) {
  queue().wait();
  return Seen(tensor).on_cpu().item();
}

// ---- all other operations

using Change = std::function<at::Tensor(const at::Tensor&)>;

c10::IValue changed(const c10::IValue& value, const Change& change) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    return tensor.defined() && tensor.device().type() == device_type ? change(tensor) : value;
  }
  if (value.isDevice() && value.toDevice().type() == device_type) {
    return change(at::Tensor()).device();
  }
  if (value.isTensorList()) {
    std::vector<at::Tensor> all;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      all.push_back(changed(tensor, change).toTensor());
    }
    return all;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> all;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      all.push_back(tensor ? std::optional(changed(*tensor, change).toTensor()) : tensor);
    }
    return all;
  }
  return value;
}

torch::jit::Stack all_changed(const torch::jit::Stack& stack, const Change& change) {
  torch::jit::Stack made;
  for (const c10::IValue& value : stack) {
    made.push_back(changed(value, change));
  }
  return made;
}

at::Tensor without_data(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return at::empty_strided({0}, {1}, at::TensorOptions(at::kMeta));
  }
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

at::Tensor on_cpu(const at::Tensor& tensor) {
  return tensor.defined() ? Seen(tensor).on_cpu() : at::Tensor();
}

/// The argument that a result is, where the operation writes to one; -1 where it makes it.
std::vector<int> written(const c10::FunctionSchema& schema) {
  std::vector<int> places;
  for (const c10::Argument& result : schema.returns()) {
    int place = -1;
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
      const auto* const alias = schema.arguments()[i].alias_info();
      if (result.alias_info() != nullptr && alias != nullptr && alias->isWrite() &&
          alias->beforeSets() == result.alias_info()->beforeSets()) {
        place = static_cast<int>(i);
      }
    }
    places.push_back(place);
  }
  return places;
}

at::Tensor made_like(const at::Tensor& like) {
  return at::empty_strided(like.sizes(), like.strides(),
                           like.options().device(c10::Device(device_type, 0)));
}

/// Numbers that decide what happens next, and operations whose results have no known shape.
void waited_for(const c10::OperatorHandle& operation, torch::jit::Stack* arguments,
                const torch::jit::Stack& given, const std::vector<int>& places) {
  queue().wait();
  torch::jit::Stack stack = all_changed(given, on_cpu);
  sleep_as_a_kernel();
  operation.callBoxed(&stack);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] >= 0) {
      stack[i] = given[places[i]];
    } else if (stack[i].isTensor() && stack[i].toTensor().defined()) {
      const at::Tensor here = made_like(stack[i].toTensor());
      Seen(here).on_cpu().copy_(stack[i].toTensor());
      stack[i] = here;
    }
  }
  arguments->insert(arguments->end(), stack.begin(), stack.end());
}

void queued(const c10::OperatorHandle& operation, c10::DispatchKeySet /*keys*/,
            torch::jit::Stack* arguments) {
  const std::size_t count = operation.schema().arguments().size();
  const torch::jit::Stack given(arguments->end() - count, arguments->end());
  arguments->erase(arguments->end() - count, arguments->end());
  const std::vector<int> places = written(operation.schema());
  torch::jit::Stack shapes = all_changed(given, without_data);
  try {
    operation.callBoxed(&shapes);
  } catch (const std::exception&) {
    waited_for(operation, arguments, given, places);
    return;
  }
  torch::jit::Stack results;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] >= 0) {
      const c10::IValue& result = given[places[i]];
      if (result.isTensor() && result.toTensor().sizes() != shapes[i].toTensor().sizes()) {
        result.toTensor().resize_(shapes[i].toTensor().sizes());
      }
      results.push_back(result);
    } else if (shapes[i].isTensor()) {
      const at::Tensor& like = shapes[i].toTensor();
      results.push_back(like.defined() ? made_like(like) : like);
    } else {
      waited_for(operation, arguments, given, places);
      return;
    }
  }
  // The queue's own: pointers in place of tensors, of which this thread may free the last.
  std::vector<std::optional<Seen>> made;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool is_new = places[i] < 0 && results[i].toTensor().defined();
    made.push_back(is_new ? std::optional(Seen(results[i].toTensor())) : std::nullopt);
  }
  queue().add([operation, made, seen = all_changed(given, on_cpu)] {
    sleep_as_a_kernel();
    torch::jit::Stack stack = seen;
    operation.callBoxed(&stack);
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (made[i]) {
        made[i]->on_cpu().copy_(stack[i].toTensor());
      }
    }
  });
  arguments->insert(arguments->end(), results.begin(), results.end());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&queued>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_copy_from", copy_from);
  m.impl("_local_scalar_dense", number_of);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("resize_", at::native::resize_);
}

}  // namespace

// ---- for Python's ctypes

extern "C" {
void stand_in_wait() { queue().wait(); }
void stand_in_sleep(long nanoseconds) { queue().nanoseconds = nanoseconds; }
void stand_in_hold(int is_held) { queue().hold(is_held != 0); }
long stand_in_pending() { return queue().pending(); }
long stand_in_kernels() { return queue().kernels; }
}
