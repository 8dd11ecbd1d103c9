# SPDX-License-Identifier: Apache-2.0
# Whether a CUDA compiler builds a program with cuBLASLt here, and where that library lies: where nvcc
# looks by itself, beside it under a versioned name, or in a Python package (nvidia-cublas, as PyTorch
# brings it), which has versioned names only: libcublasLt.so.13.

# Folders of Python packages: of the interpreter on the PATH, of an activated environment, of prefixes.
function(crossover_site_packages folders)
  set(all "")
  find_program(python NAMES python3 NO_CACHE)
  if(python)
    execute_process(COMMAND ${python} -c
      "import site, sysconfig; p = sysconfig.get_paths(); print(';'.join([p['purelib'], p['platlib'], *site.getsitepackages(), site.getusersitepackages()]), end='')"
      OUTPUT_VARIABLE all ERROR_QUIET)
  endif()
  foreach(prefix IN LISTS CMAKE_PREFIX_PATH ITEMS $ENV{VIRTUAL_ENV})
    file(GLOB found "${prefix}/lib/python3*/site-packages")
    list(APPEND all ${found})
  endforeach()
  list(REMOVE_DUPLICATES all)
  set(${folders} "${all}" PARENT_SCOPE)
endfunction()

# Pairs library|folder of its headers, in the order of preference.
function(crossover_cublaslt_candidates nvcc version candidates)
  string(REGEX MATCH "^[0-9]+" major ${version})
  file(REAL_PATH "${nvcc}" root)
  cmake_path(GET root PARENT_PATH root)
  cmake_path(GET root PARENT_PATH root)
  set(packages ${root})
  crossover_site_packages(sites)
  foreach(site IN LISTS sites)
    list(APPEND packages ${site}/nvidia/cu${major} ${site}/nvidia/cublas)
  endforeach()
  set(found "")
  foreach(package IN LISTS packages)
    foreach(folder lib lib64)
      set(library ${package}/${folder}/libcublasLt.so.${major})
      if(EXISTS ${library})
        list(APPEND found "${library}|${package}/include")
        break()
      endif()
    endforeach()
  endforeach()
  set(${candidates} "${found}" PARENT_SCOPE)
endfunction()

# What tells nvcc the compiler that CMake will give it.
function(crossover_host_compiler flags)
  set(${flags} "" PARENT_SCOPE)
  if(CMAKE_CUDA_HOST_COMPILER)
    set(${flags} -ccbin ${CMAKE_CUDA_HOST_COMPILER} PARENT_SCOPE)
  elseif(DEFINED ENV{CUDAHOSTCXX})
    set(${flags} -ccbin $ENV{CUDAHOSTCXX} PARENT_SCOPE)
  endif()
endfunction()

# Compiles and links a kernel and a call of cuBLASLt; `error` is the compiler's first, empty if it works.
function(crossover_try_cublaslt nvcc library headers error)
  set(folder ${PROJECT_BINARY_DIR}/CMakeFiles/try_cublaslt)
  file(WRITE ${folder}/try.cu
"#include <cublasLt.h>
__global__ void kernel() {}
int main() {
  kernel<<<1, 1>>>();
  return cublasLtGetVersion() == 0 ? 1 : 0;
}
")
  set(flags -std=c++20)
  if(library)
    list(APPEND flags -isystem ${headers} -Xlinker ${library})
  else()
    list(APPEND flags -lcublasLt)
  endif()
  crossover_host_compiler(host)
  separate_arguments(own UNIX_COMMAND "$ENV{CUDAFLAGS} ${CMAKE_CUDA_FLAGS}")
  execute_process(COMMAND ${nvcc} ${own} -o ${folder}/try ${folder}/try.cu ${flags} ${host}
    OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
  set(${error} "" PARENT_SCOPE)
  if(failed)
    string(REGEX MATCH "[^\n]*([Ee]rror|fatal|cannot find)[^\n]*" first "${said}")
    string(STRIP "${first}" first)
    if(NOT first)
      set(first "${failed}")
    endif()
    set(${error} "${first}" PARENT_SCOPE)
  endif()
endfunction()

# `library` and `headers` stay empty where nvcc finds cuBLASLt by itself; `reason` where all is well.
function(crossover_find_cublaslt nvcc version library headers reason)
  set(${library} "" PARENT_SCOPE)
  set(${headers} "" PARENT_SCOPE)
  set(${reason} "" PARENT_SCOPE)
  crossover_try_cublaslt(${nvcc} "" "" error)
  if(NOT error)
    return()
  endif()
  set(last "")
  crossover_cublaslt_candidates(${nvcc} ${version} candidates)
  foreach(candidate IN LISTS candidates)
    string(REGEX MATCH "^(.*)\\|(.*)$" pair "${candidate}")
    set(file ${CMAKE_MATCH_1})
    # Its own headers alone: packages may share a folder with those of another CUDA.
    set(folder ${PROJECT_BINARY_DIR}/CMakeFiles/cublaslt_headers)
    file(REMOVE_RECURSE ${folder})
    file(GLOB own "${CMAKE_MATCH_2}/cublas*.h")
    file(COPY ${own} DESTINATION ${folder})
    crossover_try_cublaslt(${nvcc} ${file} ${folder} last)
    if(NOT last)
      set(${library} ${file} PARENT_SCOPE)
      set(${headers} ${folder} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  string(REGEX MATCH "^[0-9]+" major ${version})
  if(last)
    set(${reason} "${nvcc} builds no program here (${last})" PARENT_SCOPE)
  elseif(error MATCHES "cublasLt")
    set(${reason} "cublasLt of CUDA ${major} is neither in the toolkit of ${nvcc} nor in a Python package (nvidia-cublas)"
        PARENT_SCOPE)
  else()
    set(${reason} "${nvcc} builds no program here (${error})" PARENT_SCOPE)
  endif()
endfunction()
