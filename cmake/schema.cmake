# SPDX-License-Identifier: Apache-2.0
# The rules of result files, which bench holds as well: what its readers would refuse it does not write.
set(schema_file ${CMAKE_CURRENT_LIST_DIR}/../plots/crossover_bench/files/schema.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${schema_file})
file(READ ${schema_file} crossover_schema)
configure_file(${CMAKE_CURRENT_LIST_DIR}/schema.h.in ${PROJECT_BINARY_DIR}/generated/schema_text.h @ONLY)
