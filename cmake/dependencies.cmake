# SPDX-License-Identifier: Apache-2.0
# Libraries: a package where there is one, else its pinned source. The fallback is for people without
# packages; it needs a network and has not been tried by the maintainers' own tests.
include(FetchContent)

find_package(Threads REQUIRED)

find_package(benchmark 1.7 QUIET)
if(NOT benchmark_FOUND)
  message(STATUS "No package benchmark >= 1.7: fetching Google Benchmark's source")
  set(BENCHMARK_ENABLE_TESTING OFF)
  FetchContent_Declare(benchmark
    GIT_REPOSITORY https://github.com/google/benchmark.git
    GIT_TAG 344117638c8ff7e239044fd0fa7085839fc03021) # v1.8.3
  FetchContent_MakeAvailable(benchmark)
  set(benchmark_VERSION 1.8.3)
endif()

find_package(nlohmann_json 3.10 QUIET)
if(NOT nlohmann_json_FOUND)
  message(STATUS "No package nlohmann_json >= 3.10: fetching its source")
  FetchContent_Declare(nlohmann_json
    GIT_REPOSITORY https://github.com/nlohmann/json.git
    GIT_TAG 9cca280a4d0ccf0c08f47a99aa71d1b0e52f8d03) # v3.11.3
  FetchContent_MakeAvailable(nlohmann_json)
endif()

if(CROSSOVER_TWO_ONLY)
  return()
endif()
find_package(OpenMP REQUIRED COMPONENTS CXX)

find_package(hwy 1.0 QUIET)
if(NOT hwy_FOUND)
  message(STATUS "No package hwy >= 1.0: fetching Highway's source")
  set(HWY_ENABLE_CONTRIB OFF)
  set(HWY_ENABLE_EXAMPLES OFF)
  set(HWY_ENABLE_TESTS OFF)
  set(HWY_ENABLE_INSTALL OFF)
  FetchContent_Declare(highway
    GIT_REPOSITORY https://github.com/google/highway.git
    GIT_TAG 457c891775a7397bdb0376bb1031e6e027af1c48 # 1.2.0
    SYSTEM)
  FetchContent_MakeAvailable(highway)
  add_library(hwy::hwy ALIAS hwy)
endif()

# The Python package onednn-devel-cpu-gomp holds it as well: -DCMAKE_PREFIX_PATH=<virtual environment>. For a
# wheel pip has installed it somewhere that only Python knows.
if(SKBUILD)
  find_package(Python REQUIRED COMPONENTS Interpreter)
  execute_process(OUTPUT_VARIABLE dnnl_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
    COMMAND ${Python_EXECUTABLE} -c "from importlib.metadata import files
print(next(f.locate().resolve().parent for f in files('onednn-devel-cpu-gomp') if f.name == 'dnnl-config.cmake'))")
endif()
find_package(dnnl 3 CONFIG QUIET)
if(NOT dnnl_FOUND)
  message(STATUS "No package dnnl >= 3: fetching oneDNN's source (a long build)")
  set(DNNL_BUILD_TESTS OFF)
  set(DNNL_BUILD_EXAMPLES OFF)
  set(DNNL_CPU_RUNTIME OMP)
  FetchContent_Declare(onednn
    GIT_REPOSITORY https://github.com/oneapi-src/oneDNN.git
    GIT_TAG 04b180b9a58a78cf1a1cd2329671a5060c2be8de) # v3.2
  FetchContent_MakeAvailable(onednn)
  add_library(DNNL::dnnl ALIAS dnnl)
endif()
