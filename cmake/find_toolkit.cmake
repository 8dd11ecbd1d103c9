# SPDX-License-Identifier: Apache-2.0
# Which CUDA toolkit. The build includes this file; ./run and ./test ask `cmake -P` with it, which
# prints one line: compiler|version|reason why there is none.
cmake_minimum_required(VERSION 3.25)

# The reason why there is none, into `reason`; empty where `compiler` of `version` will do.
function(crossover_find_toolkit compiler version reason)
  # CUDACXX and CMAKE_CUDA_COMPILER as CMake itself takes them, then the PATH, then the usual prefix.
  if(CMAKE_CUDA_COMPILER)
    set(nvcc "${CMAKE_CUDA_COMPILER}")
  elseif(DEFINED ENV{CUDACXX})
    set(nvcc "$ENV{CUDACXX}")
  else()
    find_program(CROSSOVER_NVCC nvcc PATHS /usr/local/cuda/bin)
    mark_as_advanced(CROSSOVER_NVCC)
    set(nvcc "${CROSSOVER_NVCC}")
  endif()
  set(${reason} "" PARENT_SCOPE)
  if(NOT nvcc)
    set(${reason} "no nvcc was found on the PATH, in CUDACXX, or under /usr/local/cuda" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR NOT text MATCHES "release ([0-9]+\\.[0-9]+)")
    set(${reason} "${nvcc} does not tell its version" PARENT_SCOPE)
    return()
  endif()
  if(CMAKE_MATCH_1 VERSION_LESS 12)
    set(${reason} "${nvcc} is of CUDA ${CMAKE_MATCH_1}, older than 12" PARENT_SCOPE)
    return()
  endif()
  set(${compiler} "${nvcc}" PARENT_SCOPE)
  set(${version} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  crossover_find_toolkit(found_compiler found_version found_reason)
  message(NOTICE "${found_compiler}|${found_version}|${found_reason}")
endif()
