# SPDX-License-Identifier: Apache-2.0
# NCCL 2, for sums over several GPUs: where the compiler looks, in the toolkit, or in a Python package
# (nvidia-nccl-cu13). Sets CROSSOVER_HAS_NCCL and makes the target crossover_nccl, or says in CROSSOVER_NO_NCCL
# why there is none.
set(CROSSOVER_NCCL AUTO CACHE STRING
    "Sums over several GPUs: AUTO (where NCCL 2 is found), ON (required) or OFF")
set_property(CACHE CROSSOVER_NCCL PROPERTY STRINGS AUTO ON OFF)
set(CROSSOVER_HAS_NCCL FALSE)

# `root` is the toolkit's, `major` CUDA's version. Of Python packages only those for the same CUDA.
function(crossover_find_nccl root major library headers reason)
  set(roots ${root} ${CMAKE_PREFIX_PATH})
  crossover_site_packages(sites)
  foreach(site IN LISTS sites)
    file(GLOB package "${site}/nvidia_nccl_cu${major}-*.dist-info")
    if(package)
      list(APPEND roots ${site}/nvidia/nccl)
    endif()
  endforeach()
  set(${reason} "" PARENT_SCOPE)
  find_path(nccl_headers nccl.h HINTS ENV NCCL_ROOT PATHS ${roots} PATH_SUFFIXES include NO_CACHE)
  find_library(nccl_library NAMES nccl libnccl.so.2 NAMES_PER_DIR HINTS ENV NCCL_ROOT PATHS ${roots}
    PATH_SUFFIXES lib lib64 NO_CACHE)
  if(NOT nccl_headers OR NOT nccl_library)
    set(${reason} "it is neither where the compiler looks, nor in the CUDA toolkit, nor in a Python package (nvidia-nccl-cu${major})"
        PARENT_SCOPE)
    return()
  endif()
  file(STRINGS ${nccl_headers}/nccl.h version REGEX "#define NCCL_VERSION_CODE ")
  string(REGEX REPLACE "[^0-9]" "" version "${version}")
  if(version LESS 21300) # the first that tells what went wrong
    set(${reason} "${nccl_headers} is older than 2.13" PARENT_SCOPE)
    return()
  endif()
  set(${library} ${nccl_library} PARENT_SCOPE)
  set(${headers} ${nccl_headers} PARENT_SCOPE)
endfunction()

# After the toolkit is known.
function(crossover_add_nccl nvcc version)
  file(REAL_PATH "${nvcc}" root)
  cmake_path(GET root PARENT_PATH root)
  cmake_path(GET root PARENT_PATH root)
  string(REGEX MATCH "^[0-9]+" major ${version})
  if(NOT CROSSOVER_NCCL)
    set(CROSSOVER_NO_NCCL "CROSSOVER_NCCL=${CROSSOVER_NCCL}" PARENT_SCOPE)
    return()
  endif()
  crossover_find_nccl("${root}" ${major} library headers reason)
  set(CROSSOVER_NO_NCCL "${reason}" PARENT_SCOPE)
  if(reason)
    if(NOT CROSSOVER_NCCL STREQUAL "AUTO")
      message(FATAL_ERROR "CROSSOVER_NCCL=${CROSSOVER_NCCL}, but ${reason}.")
    endif()
    message(STATUS "No NCCL: ${reason}")
    return()
  endif()
  add_library(crossover_nccl INTERFACE IMPORTED GLOBAL)
  target_link_libraries(crossover_nccl INTERFACE ${library})
  target_include_directories(crossover_nccl SYSTEM INTERFACE ${headers})
  set(CROSSOVER_HAS_NCCL TRUE PARENT_SCOPE)
  message(STATUS "NCCL: ${library}")
endfunction()
