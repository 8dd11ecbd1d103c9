// SPDX-License-Identifier: Apache-2.0
// What a process takes for granted, whoever started it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace crossover::bench {

/// First in main(), before any file or pipe is opened:
/// - A standard descriptor that is closed, as some services leave them, would be taken by the next
///   file, and messages would go into it: /dev/null takes it.
/// - Where the starter ignored SIGCHLD nobody could tell how a child ended, and what it blocked
///   could not end this process, or tell it that it was stopped. Children inherit both.
inline void settle() {
  for (int opened = 0; opened >= 0 && opened <= STDERR_FILENO;) {
    opened = open("/dev/null", O_RDWR);
    if (opened > STDERR_FILENO) {
      close(opened);
    }
  }
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t needed;
  sigemptyset(&needed);
  for (const int signal : {SIGCHLD, SIGCONT, SIGINT, SIGTERM}) {
    sigaddset(&needed, signal);
  }
  sigprocmask(SIG_UNBLOCK, &needed, nullptr);
}

}  // namespace crossover::bench
