# SPDX-License-Identifier: Apache-2.0
# Sources by pattern: a file that is added to a folder is compiled. The folders are what the configuration depends on,
# for a folder's time changes with what it holds. CONFIGURE_DEPENDS would look at every build, and then `ninja -n`,
# which tools ask what is left to do, could not say "nothing".
# crossover_sources(VARIABLE PATTERN... [EXCEPT FILE...]): files relative to the current folder.
function(crossover_sources variable)
  cmake_parse_arguments(PARSE_ARGV 1 these "" "" EXCEPT)
  file(GLOB found RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${these_UNPARSED_ARGUMENTS})
  if(these_EXCEPT)
    list(REMOVE_ITEM found ${these_EXCEPT})
  endif()
  foreach(pattern IN LISTS these_UNPARSED_ARGUMENTS)
    cmake_path(GET pattern PARENT_PATH folder)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()
