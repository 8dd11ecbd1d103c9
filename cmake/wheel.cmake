# SPDX-License-Identifier: Apache-2.0
# What a Python wheel (pyproject.toml) holds beside plots/crossover_bench: bench and oneDNN in the folder build, where
# run/build.py looks; the pages that texts name; and the licences of the libraries inside, which differ in place by
# system.
include(ExternalProject)
set(package crossover_bench)

set_target_properties(bench PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS bench DESTINATION ${package}/build)
# The loops that are no library's would be slower on later processors than a build for them is: so bench once more for
# each level of x86-64. run/build.py chooses. They have the GPU backend, too: who has a GPU has such a processor.
set(CROSSOVER_WHEEL_LEVELS v3 v4 CACHE STRING "The levels of x86-64 that have a bench of their own in the wheel")
set(CROSSOVER_WHEEL_CUDA AUTO CACHE STRING "The GPU backend of these: AUTO, ON or OFF, as CROSSOVER_CUDA has it")
cmake_path(GET Python_EXECUTABLE PARENT_PATH python_prefix) # whose packages bring cuDNN's headers
cmake_path(GET python_prefix PARENT_PATH python_prefix)
add_custom_target(wheel DEPENDS bench)
foreach(level IN LISTS CROSSOVER_WHEEL_LEVELS)
  ExternalProject_Add(bench_${level}
    PREFIX ${PROJECT_BINARY_DIR}/${level}
    SOURCE_DIR ${PROJECT_SOURCE_DIR}
    BINARY_DIR ${PROJECT_BINARY_DIR}/${level}/build
    DEPENDS bench
    CMAKE_ARGS -DCROSSOVER_PROCESSOR=x86-64-${level} -DCROSSOVER_NATIVE=OFF -DCROSSOVER_MPI=OFF
      -DCROSSOVER_CUDA=${CROSSOVER_WHEEL_CUDA} -DCROSSOVER_CUDA_GENERATIONS=every -DCROSSOVER_NCCL=OFF
      -DCMAKE_PREFIX_PATH=${python_prefix} -DCROSSOVER_TESTS=OFF
      -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE} -DCMAKE_UNITY_BUILD=${CMAKE_UNITY_BUILD}
      -DCMAKE_UNITY_BUILD_BATCH_SIZE=${CMAKE_UNITY_BUILD_BATCH_SIZE} -Ddnnl_DIR=${dnnl_DIR}
      -DFETCHCONTENT_SOURCE_DIR_BENCHMARK=${benchmark_SOURCE_DIR} # empty where it is installed
      -DFETCHCONTENT_SOURCE_DIR_NLOHMANN_JSON=${nlohmann_json_SOURCE_DIR}
      -DFETCHCONTENT_SOURCE_DIR_HIGHWAY=${highway_SOURCE_DIR} -DFETCHCONTENT_SOURCE_DIR_ONEDNN=${onednn_SOURCE_DIR}
      -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH=$ORIGIN
      -DCMAKE_EXE_LINKER_FLAGS=-s
    BUILD_COMMAND ${CMAKE_COMMAND} --build . --target bench
    BUILD_ALWAYS ON
    USES_TERMINAL_BUILD ON
    INSTALL_COMMAND "")
  add_dependencies(wheel bench_${level})
  install(PROGRAMS ${PROJECT_BINARY_DIR}/${level}/build/bench DESTINATION ${package}/build RENAME bench-${level})
endforeach()
get_target_property(onednn_type DNNL::dnnl TYPE)
if(onednn_type STREQUAL "SHARED_LIBRARY")
  install(FILES $<TARGET_FILE:DNNL::dnnl> DESTINATION ${package}/build RENAME libdnnl.so.3)
endif()
install(DIRECTORY docs DESTINATION ${package} FILES_MATCHING PATTERN "*.md")
install(FILES results/README.md DESTINATION ${package}/results)
install(FILES LICENSE requirements-peers.txt requirements-jax.txt requirements-onnxruntime.txt DESTINATION ${package})

function(crossover_licences library)
  file(GLOB texts ${ARGN})
  if(NOT texts)
    message(FATAL_ERROR "No text of ${library}'s licence for the wheel: none of ${ARGN}")
  endif()
  install(FILES ${texts} DESTINATION ${package}/licenses/${library})
endfunction()
set(fetched ${PROJECT_BINARY_DIR}/_deps)
set(documents /usr/share/doc)
crossover_licences(libgomp ${documents}/libgomp1/copyright /usr/share/common-licenses/GPL-3
  /usr/share/licenses/libgomp/* /usr/share/licenses/libgcc/*)
crossover_licences(benchmark ${documents}/libbenchmark-dev/copyright ${fetched}/benchmark-src/LICENSE)
crossover_licences(highway ${documents}/libhwy-dev/copyright ${fetched}/highway-src/LICENSE*)
crossover_licences(nlohmann_json ${documents}/nlohmann-json3-dev/copyright ${fetched}/nlohmann_json-src/LICENSE*)
crossover_licences(onednn ${dnnl_DIR}/../../../share/doc/onednn/*[ES] ${fetched}/onednn-src/*[ES])
