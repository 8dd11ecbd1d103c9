# SPDX-License-Identifier: Apache-2.0
# The library crossover::two, on the harness: for other projects, by FetchContent, or by find_package from what
# `cmake --install` makes of a build with CROSSOVER_TWO_ONLY.
add_library(crossover_two STATIC)
add_library(crossover::two ALIAS crossover_two)
crossover_sources(two_sources bench/two/*.cpp)
target_sources(crossover_two PRIVATE ${two_sources})
target_compile_features(crossover_two PUBLIC cxx_std_20)
target_include_directories(crossover_two PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_libraries(crossover_two PRIVATE crossover_harness compiled_fast)
if(NOT CROSSOVER_TWO_ONLY)
  set_target_properties(crossover_two PROPERTIES EXCLUDE_FROM_ALL ON)
  return()
endif()

# The same headers are read a few times, not by each source.
set_target_properties(crossover_base crossover_harness crossover_two PROPERTIES
  UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 40 POSITION_INDEPENDENT_CODE ON)
if(crossover_is_part)
  return()
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/crossover)
set_target_properties(crossover_two PROPERTIES EXPORT_NAME two)
install(TARGETS crossover_two crossover_harness crossover_base crossover_build_info crossover_options compiled_fast
  EXPORT crossover)
install(EXPORT crossover NAMESPACE crossover:: FILE crossoverTargets.cmake DESTINATION ${config})
install(FILES include/crossover/two.h include/crossover/two_compare.h include/crossover/two_cuda.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/crossover)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/crossoverConfig.cmake @ONLY CONTENT
"include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(benchmark)
find_dependency(nlohmann_json)
include(\${CMAKE_CURRENT_LIST_DIR}/crossoverTargets.cmake)
")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/crossoverConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/crossoverConfig.cmake ${PROJECT_BINARY_DIR}/crossoverConfigVersion.cmake
  DESTINATION ${config})
