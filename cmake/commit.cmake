# SPDX-License-Identifier: Apache-2.0
# Run at every build: the commit of the tree in `source` and whether the tree differed, into `header`.
cmake_minimum_required(VERSION 3.25)
set(commit "")
set(dirty false)
find_program(git git)
if(git)
  # In containers the checkout often belongs to another user.
  set(ask ${git} -C ${source} -c safe.directory=${source})
  execute_process(COMMAND ${ask} rev-parse HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    cmake_minimum_required(VERSION 3.25)
set(commit "")
  else()
    # Results and untracked files do not change what was built.
    execute_process(COMMAND ${ask} status --porcelain --untracked-files=no -- . :!results
      OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(changes)
      set(dirty true)
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${header} @ONLY CONTENT
"// SPDX-License-Identifier: Apache-2.0
// Written at every build.
#pragma once

namespace crossover::build {

inline constexpr const char* commit = \"@commit@\";
inline constexpr bool dirty = @dirty@;

}  // namespace crossover::build
")
