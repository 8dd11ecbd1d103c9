# SPDX-License-Identifier: Apache-2.0
# The sources of the program, but for main.cpp: tests link these. No CMakeLists.txt, because its
# build folder would have the name of the program.
file(GLOB_RECURSE bench_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
list(FILTER bench_sources EXCLUDE REGEX /main\.cpp$)
target_sources(crossover_bench PRIVATE ${bench_sources})
