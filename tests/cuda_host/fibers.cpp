// SPDX-License-Identifier: Apache-2.0
// A stack is entered by the C library's ucontext, once; from then on GCC's and Clang's own setjmp()
// switches between stacks. ucontext would save the signals' mask each time, by a call of the kernel
// that took half of the emulation's time.
#include "fibers.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <new>
#include <utility>

#include "races.h"
#include "sanitizers.h"

namespace cuda_host {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t stack_bytes = std::size_t{256} << 10U;
#else
constexpr std::size_t stack_bytes = std::size_t{64} << 10U;
#endif

/// Where a stack goes on: what __builtin_setjmp() fills.
using Place = std::array<void*, 5>;

/// AddressSanitizer would take the jump for one that leaves the functions of this stack.
[[noreturn, gnu::noinline, gnu::no_sanitize("address", "thread")]] void go_on(Place& at) {
  __builtin_longjmp(at.data(), 1);
}

/// Returns when somebody goes on at `here`.
[[gnu::noinline, gnu::no_sanitize("address", "thread")]] void switch_stacks(Place& here,
                                                                            Place& to) {
  if (__builtin_setjmp(here.data()) == 0) {
    go_on(to);
  }
}

/// The same where nothing has run on the other stack yet.
[[gnu::noinline, gnu::no_sanitize("address", "thread")]] void enter_stack(Place& here,
                                                                          const ucontext_t& start) {
  if (__builtin_setjmp(here.data()) == 0) {
    setcontext(&start);
  }
}

}  // namespace

struct Fibers::Caller {
  Place place{};
  void* fake_stack = nullptr;
  const void* stack = nullptr;
  std::size_t bytes = 0;
};

struct Fiber {
  Fibers* owner = nullptr;
  ucontext_t beginning{};
  Place place{};
  bool runs = false;  ///< it has been entered, and waits for its next body
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

  void begin();
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

/// One body after another.
void Fiber::run(unsigned low, unsigned high) {
  auto* self = reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32U) | low);
  Fibers::Caller& caller = *self->owner->caller_;
  for (void* fake_stack = nullptr;;) {
    arrived(fake_stack, &caller.stack, &caller.bytes);
    self->body();
    self->ended = true;
    leaving(&fake_stack, caller.stack, caller.bytes);
    switch_stacks(self->place, caller.place);
  }
}

void Fiber::begin() {
  getcontext(&beginning);
  beginning.uc_stack.ss_sp = stack;
  beginning.uc_stack.ss_size = stack_bytes;
  beginning.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&beginning, reinterpret_cast<void (*)()>(&Fiber::run), 2,
              static_cast<unsigned>(address), static_cast<unsigned>(address >> 32U));
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
  if (!fiber->runs) {
    fiber->begin();
  }
  enter(fiber);
  return fiber;
}

void Fibers::resume(Fiber* fiber) { enter(fiber); }

void Fibers::enter(Fiber* fiber) {
  current_ = fiber;
  leaving(&caller_->fake_stack, fiber->stack, stack_bytes);
  if (std::exchange(fiber->runs, true)) {
    switch_stacks(caller_->place, fiber->place);
  } else {
    enter_stack(caller_->place, fiber->beginning);
  }
  arrived(caller_->fake_stack, nullptr, nullptr);
  current_ = nullptr;
  if (fiber->ended) {
    (races::are_looked_for ? ended_ : free_).push_back(fiber);
  }
}

void Fibers::pause() {
  Fiber* self = current_;
  leaving(&self->fake_stack, caller_->stack, caller_->bytes);
  switch_stacks(self->place, caller_->place);
  arrived(self->fake_stack, &caller_->stack, &caller_->bytes);
}

void Fibers::reuse_ended() {
  free_.insert(free_.end(), ended_.begin(), ended_.end());
  ended_.clear();
}

void Fibers::abandon() {
  free_.clear();
  ended_.clear();
  for (const auto& fiber : fibers_) {
    ASAN_UNPOISON_MEMORY_REGION(fiber->stack, stack_bytes);  // frames that never returned
    fiber->runs = false;
    free_.push_back(fiber.get());
  }
}

}  // namespace cuda_host
