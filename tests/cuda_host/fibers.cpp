// SPDX-License-Identifier: Apache-2.0
// ucontext of the C library: slower than an own switch in assembler, and it works on every Linux.
#include "fibers.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <new>

#include "sanitizers.h"

namespace cuda_host {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t stack_bytes = std::size_t{256} << 10U;
#else
constexpr std::size_t stack_bytes = std::size_t{64} << 10U;
#endif

}  // namespace

struct Fibers::Caller {
  ucontext_t context{};
  void* fake_stack = nullptr;
  const void* stack = nullptr;
  std::size_t bytes = 0;
};

struct Fiber {
  Fibers* owner = nullptr;
  ucontext_t context{};
  std::byte* stack = nullptr;
  void* fake_stack = nullptr;
  std::function<void()> body;
  bool ended = false;

  Fiber() {
    void* pages = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
      throw std::bad_alloc();
    }
    stack = static_cast<std::byte*>(pages);
    ASAN_UNPOISON_MEMORY_REGION(stack, stack_bytes);  // whatever lay at these addresses before
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {
    ASAN_UNPOISON_MEMORY_REGION(stack, stack_bytes);
    munmap(stack, stack_bytes);
  }

  static void run(unsigned low, unsigned high);
};

namespace {

/// Before and after every switch: AddressSanitizer must know which stack is in use.
void leaving([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* to,
             [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(fake_stack, to, bytes);
#endif
}

void arrived([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** from,
             [[maybe_unused]] std::size_t* bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake_stack, from, bytes);
#endif
}

}  // namespace

void Fiber::run(unsigned low, unsigned high) {
  auto* self = reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32U) | low);
  Fibers::Caller& caller = *self->owner->caller_;
  arrived(nullptr, &caller.stack, &caller.bytes);
  self->body();
  self->ended = true;
  leaving(nullptr, caller.stack, caller.bytes);
  setcontext(&caller.context);
}

Fibers::Fibers() : caller_(std::make_unique<Caller>()) {}
Fibers::~Fibers() = default;

Fiber* Fibers::take() {
  if (free_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>());
    fibers_.back()->owner = this;
    return fibers_.back().get();
  }
  Fiber* fiber = free_.back();
  free_.pop_back();
  return fiber;
}

Fiber* Fibers::start(std::function<void()> body) {
  Fiber* fiber = take();
  fiber->body = std::move(body);
  fiber->ended = false;
  fiber->fake_stack = nullptr;
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = stack_bytes;
  fiber->context.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(fiber);
  makecontext(&fiber->context, reinterpret_cast<void (*)()>(&Fiber::run), 2,
              static_cast<unsigned>(address), static_cast<unsigned>(address >> 32U));
  // Only makecontext() needs it; AddressSanitizer would clear what it knows of the whole stack at
  // every switch, which takes longer than all else, and finds less.
  fiber->context.uc_stack = {};
  enter(fiber);
  return fiber;
}

void Fibers::resume(Fiber* fiber) { enter(fiber); }

void Fibers::enter(Fiber* fiber) {
  current_ = fiber;
  leaving(&caller_->fake_stack, fiber->stack, stack_bytes);
  swapcontext(&caller_->context, &fiber->context);
  arrived(caller_->fake_stack, nullptr, nullptr);
  current_ = nullptr;
  if (fiber->ended) {
    free_.push_back(fiber);
  }
}

void Fibers::pause() {
  Fiber* self = current_;
  leaving(&self->fake_stack, caller_->stack, caller_->bytes);
  swapcontext(&self->context, &caller_->context);
  arrived(self->fake_stack, &caller_->stack, &caller_->bytes);
}

void Fibers::abandon() {
  free_.clear();
  for (const auto& fiber : fibers_) {
    ASAN_UNPOISON_MEMORY_REGION(fiber->stack, stack_bytes);  // frames that never returned
    free_.push_back(fiber.get());
  }
}

}  // namespace cuda_host
