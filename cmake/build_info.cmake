# SPDX-License-Identifier: Apache-2.0
# What a result file says of the program that wrote it: compiler, flags, versions of what it times, and the
# commit at build time.
get_target_property(crossover_flags crossover_options INTERFACE_COMPILE_OPTIONS)
list(JOIN crossover_flags " " crossover_flags)
set(crossover_build_type_flags "${CMAKE_CXX_FLAGS_${upper_build_type}}")
# Which code is timed, by family and device.
set(code_versions_table ${PROJECT_SOURCE_DIR}/bench/file/code_versions.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${code_versions_table})
file(READ ${code_versions_table} code_versions_json)
string(JSON code_versions_last LENGTH "${code_versions_json}" versions)
math(EXPR code_versions_last "${code_versions_last} - 1")
set(crossover_code_versions "")
foreach(place RANGE ${code_versions_last})
  string(JSON key MEMBER "${code_versions_json}" versions ${place})
  string(JSON number GET "${code_versions_json}" versions ${key} number)
  string(APPEND crossover_code_versions "\n    {\"${key}\", ${number}},")
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/build_info.h.in
               ${PROJECT_BINARY_DIR}/generated/build_info.h @ONLY)

# Asked on every build, written only where it changed, so that an unchanged tree compiles nothing.
add_custom_target(crossover_commit
  COMMAND ${CMAKE_COMMAND} -D source=${PROJECT_SOURCE_DIR}
          -D written=${PROJECT_BINARY_DIR}/generated/built_from.cpp
          -P ${CMAKE_CURRENT_LIST_DIR}/commit.cmake
  BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/built_from.cpp
  COMMENT "")
add_library(crossover_build_info INTERFACE)
target_include_directories(crossover_build_info INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>)
add_dependencies(crossover_build_info crossover_commit)
