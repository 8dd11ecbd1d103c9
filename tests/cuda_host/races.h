// SPDX-License-Identifier: Apache-2.0
// In a build with ThreadSanitizer, each of a kernel's threads is a thread to it as well. What
// orders their accesses is the start of the launch, barriers and the end; a shuffle orders nothing.
// All of the emulation around them is the host's, whose accesses are not looked at meanwhile.
#pragma once

#include <array>

namespace cuda_host::races {

#ifdef __SANITIZE_THREAD__
constexpr bool are_looked_for = true;
void begin_group();
/// Whether one was found since begin_group(), after its report on standard error.
bool end_group();
/// The host goes on as a thread of the kernel, and is itself again.
void begin_thread(unsigned number);
void end_thread();

/// While a thread is in code of the emulation.
class Aside {
 public:
  Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside();

 private:
  void* thread_;
};

/// What threads at a barrier pass on to those that leave it. Two in turn: whoever is at the next
/// one has left this one, and the others have not yet been told of what it did in between.
class Barrier {
 public:
  void arrive(unsigned turn);
  void leave(unsigned turn);

 private:
  std::array<char, 2> tags_{};
};
#else
constexpr bool are_looked_for = false;
inline void begin_group() {}
inline bool end_group() { return false; }
inline void begin_thread(unsigned /*number*/) {}
inline void end_thread() {}

struct Aside {
  Aside() {}  // NOLINT(modernize-use-equals-default): else it counts as unused
};
struct Barrier {
  void arrive(unsigned /*turn*/) {}
  void leave(unsigned /*turn*/) {}
};
#endif

}  // namespace cuda_host::races
