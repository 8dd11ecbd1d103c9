// SPDX-License-Identifier: Apache-2.0
#include "races.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

#include <atomic>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): ThreadSanitizer's names
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);

/// A race fails the test in whose kernel it is, and not the program at its end. Another kernel may
/// have one at the same address.
const char* __tsan_default_options() { return "exitcode=0:suppress_equal_addresses=0"; }

/// Of the reference's threads: OpenMP's library does not tell where they meet.
const char* __tsan_default_suppressions() { return "race:_omp_fn"; }
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

namespace cuda_host::races {
namespace {

struct Threads {
  void* const host = __tsan_get_current_fiber();
  std::vector<void*> of_the_device;
  std::atomic<bool> found = false;
  char start = 0, end = 0;
};
Threads& threads() {
  static Threads all;
  return all;
}

void switch_to(void* thread) { __tsan_switch_to_fiber(thread, __tsan_switch_to_fiber_no_sync); }

}  // namespace

void begin_group() {
  Threads& all = threads();
  all.found = false;
  __tsan_release(&all.start);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

bool end_group() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  __tsan_acquire(&threads().end);
  return threads().found;
}

void begin_thread(unsigned number) {
  auto& all = threads().of_the_device;
  while (all.size() <= number) {
    all.push_back(__tsan_create_fiber(0));
  }
  switch_to(all[number]);
  __tsan_acquire(&threads().start);
}

void end_thread() {
  __tsan_release(&threads().end);
  switch_to(threads().host);
}

Aside::Aside() : thread_(__tsan_get_current_fiber()) { switch_to(threads().host); }
Aside::~Aside() { switch_to(thread_); }

void Barrier::arrive(unsigned turn) { __tsan_release(&tags_[turn % 2]); }
void Barrier::leave(unsigned turn) { __tsan_acquire(&tags_[turn % 2]); }

}  // namespace cuda_host::races

// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier)
extern "C" void __tsan_on_report(void* /*report*/) { cuda_host::races::threads().found = true; }
#endif
