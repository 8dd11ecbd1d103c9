// SPDX-License-Identifier: Apache-2.0
// The exit codes of a program that measures, and what it says before it ends with one.
#pragma once

#include <exception>
#include <new>

#include "axes/flag.h"
#include "base/say.h"

namespace crossover::bench {

inline constexpr int exit_row_failed = 1;
inline constexpr int exit_usage = 2;

/// What `run` returns; where it throws, the code for that, with a sentence of why.
template <class Run>
int exit_code_of(const Run& run) {
  try {
    return run();
  } catch (const UsageError& error) {
    say(error.what());
    return exit_usage;
  } catch (const std::bad_alloc&) {
    say("out of memory; the result file has the rows that were finished");
  } catch (const std::exception& error) {
    say(error.what());
  }
  return exit_row_failed;
}

}  // namespace crossover::bench
