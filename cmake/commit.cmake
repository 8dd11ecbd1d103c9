# SPDX-License-Identifier: Apache-2.0
# Run at every build: the commit of the tree in `source` and whether the tree differed, as bench/file/built_from.h
# describes them, into the source `written`.
cmake_minimum_required(VERSION 3.25)

function(ask_git commit dirty)
  find_program(git git)
  if(NOT git)
    return()
  endif()
  # In containers the checkout often belongs to another user.
  set(ask ${git} -C ${source} -c safe.directory=${source})
  execute_process(COMMAND ${ask} rev-parse HEAD
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    return()
  endif()
  set(${commit} ${found} PARENT_SCOPE)
  # Results and untracked files do not change what was built.
  execute_process(COMMAND ${ask} status --porcelain --untracked-files=no -- . :!results
    OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(changes)
    set(${dirty} true PARENT_SCOPE)
  endif()
endfunction()

set(commit "")
set(dirty false)
if(EXISTS ${source}/.git) # not that of a repository around the copy
  ask_git(commit dirty)
endif()
set(tree "")
if(commit)
  set(tree "${commit}-clean")
  if(dirty)
    set(tree "${commit}-dirty")
  endif()
endif()
file(CONFIGURE OUTPUT ${written} @ONLY CONTENT
"// SPDX-License-Identifier: Apache-2.0
// Written at every build.
#include \"file/built_from.h\"

const char* const crossover::build::tree = \"@tree@\";
")
