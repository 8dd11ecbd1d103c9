# SPDX-License-Identifier: Apache-2.0
# Libraries for a GPU that the build can do without: where the compiler looks, in the toolkit, or in a Python package
# (nvidia-cudnn-cu13). For cudnn, and each of the others, sets CROSSOVER_HAS_CUDNN and makes the target
# crossover_cudnn, or says in CROSSOVER_NO_CUDNN why there is none.

# HEADER defines VERSION, at LEAST so much; one with less is called OLD. FRONTEND is a package of headers on top.
set(crossover_cudnn CALLED cuDNN RELEASE 9 FOR "Convolutions on a GPU"
    HEADER cudnn_version.h VERSION CUDNN_MAJOR LEAST 9 OLD "of version VERSION, older than 9" FRONTEND cudnn-frontend)
set(crossover_nccl CALLED NCCL RELEASE 2 FOR "Sums over several GPUs"
    HEADER nccl.h VERSION NCCL_VERSION_CODE LEAST 21300 OLD "older than 2.13") # which is the first that tells what went wrong

macro(crossover_read_facts library)
  cmake_parse_arguments(own "" "CALLED;RELEASE;FOR;HEADER;VERSION;LEAST;OLD;FRONTEND" "" ${crossover_${library}})
  string(TOUPPER ${library} name)
endmacro()

function(crossover_offer_cuda_library library)
  crossover_read_facts(${library})
  set(CROSSOVER_${name} AUTO CACHE STRING
      "${own_FOR}: AUTO (where ${own_CALLED} ${own_RELEASE} is found), ON (required) or OFF")
  set_property(CACHE CROSSOVER_${name} PROPERTY STRINGS AUTO ON OFF)
  set(CROSSOVER_HAS_${name} FALSE PARENT_SCOPE)
endfunction()
crossover_offer_cuda_library(cudnn)
crossover_offer_cuda_library(nccl)

# `root` is the toolkit's, `major` CUDA's version. Of Python packages only those for the same CUDA.
function(crossover_find_cuda_library library root major file headers reason)
  crossover_read_facts(${library})
  set(roots ${root} ${CMAKE_PREFIX_PATH})
  set(frontends ${roots})
  crossover_site_packages(sites)
  foreach(site IN LISTS sites)
    file(GLOB package "${site}/nvidia_${library}_cu${major}-*.dist-info")
    if(package)
      list(APPEND roots ${site}/nvidia/${library})
    endif()
    list(APPEND frontends ${site})
  endforeach()
  set(${reason} "" PARENT_SCOPE)
  find_path(found_headers ${own_HEADER} HINTS ENV ${name}_ROOT PATHS ${roots} PATH_SUFFIXES include NO_CACHE)
  find_library(found_file NAMES ${library} lib${library}.so.${own_RELEASE} NAMES_PER_DIR HINTS ENV ${name}_ROOT
    PATHS ${roots} PATH_SUFFIXES lib lib64 NO_CACHE)
  if(NOT found_headers OR NOT found_file)
    set(${reason} "it is neither where the compiler looks, nor in the CUDA toolkit, nor in a Python package (nvidia-${library}-cu${major})"
        PARENT_SCOPE)
    return()
  endif()
  file(STRINGS ${found_headers}/${own_HEADER} version REGEX "#define ${own_VERSION} ")
  string(REGEX REPLACE "[^0-9]" "" version "${version}")
  if(version LESS own_LEAST)
    string(REPLACE VERSION "${version}" old "${own_OLD}")
    set(${reason} "${found_headers} is ${old}" PARENT_SCOPE)
    return()
  endif()
  if(own_FRONTEND)
    string(REPLACE - _ header ${own_FRONTEND}.h)
    find_path(found_frontend ${header} HINTS ENV ${name}_ROOT PATHS ${frontends} PATH_SUFFIXES include NO_CACHE)
    if(NOT found_frontend)
      set(${reason} "the headers of ${own_FRONTEND} are missing (Python package nvidia-${own_FRONTEND})" PARENT_SCOPE)
      return()
    endif()
    list(APPEND found_headers ${found_frontend})
  endif()
  set(${file} ${found_file} PARENT_SCOPE)
  set(${headers} "${found_headers}" PARENT_SCOPE)
endfunction()

# After the toolkit is known.
function(crossover_add_cuda_library library nvcc version)
  crossover_read_facts(${library})
  file(REAL_PATH "${nvcc}" root)
  cmake_path(GET root PARENT_PATH root)
  cmake_path(GET root PARENT_PATH root)
  string(REGEX MATCH "^[0-9]+" major ${version})
  if(NOT CROSSOVER_${name})
    set(CROSSOVER_NO_${name} "CROSSOVER_${name}=${CROSSOVER_${name}}" PARENT_SCOPE)
    return()
  endif()
  crossover_find_cuda_library(${library} "${root}" ${major} file headers reason)
  set(CROSSOVER_NO_${name} "${reason}" PARENT_SCOPE)
  if(reason)
    if(NOT CROSSOVER_${name} STREQUAL "AUTO")
      message(FATAL_ERROR "CROSSOVER_${name}=${CROSSOVER_${name}}, but ${reason}.")
    endif()
    message(STATUS "No ${own_CALLED}: ${reason}")
    return()
  endif()
  add_library(crossover_${library} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(crossover_${library} PROPERTIES IMPORTED_LOCATION ${file})
  target_include_directories(crossover_${library} SYSTEM INTERFACE ${headers})
  set(CROSSOVER_HAS_${name} TRUE PARENT_SCOPE)
  message(STATUS "${own_CALLED}: ${file}")
endfunction()
