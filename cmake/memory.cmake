# SPDX-License-Identifier: Apache-2.0
# Where memory is short fewer sources are compiled as one, and fewer of these at once: a compile for which there is
# none is ended by the kernel, amid the build. -Dcrossover_memory=MIB: as if the machine had so much.
if(NOT crossover_memory)
  cmake_host_system_information(RESULT crossover_memory QUERY TOTAL_PHYSICAL_MEMORY) # MiB
  foreach(of_container /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes) # cgroup 2, and 1
    if(EXISTS ${of_container})
      file(READ ${of_container} limit)
      if(limit MATCHES "^[0-9]+")
        math(EXPR limit "${CMAKE_MATCH_0} >> 20")
        if(limit LESS crossover_memory)
          set(crossover_memory ${limit})
        endif()
      endif()
    endif()
  endforeach()
endif()
set(memory_of_compile 1600) # MiB, of a batch as presets have it
if(crossover_memory LESS 6000 AND CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
  set(memory_of_compile 1000)
endif()
cmake_host_system_information(RESULT compiles QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR that_fit "${crossover_memory} / ${memory_of_compile}")
if(that_fit LESS 1)
  message(WARNING "${crossover_memory} MiB of memory: a compile takes up to ${memory_of_compile} MiB, and more than "
                  "there is ends it (\"Killed\"); add memory or swap")
  set(that_fit 1)
endif()
if(that_fit LESS compiles)
  message(STATUS "${crossover_memory} MiB of memory: ${that_fit} compile(s) at once, each of up to "
                 "${CMAKE_UNITY_BUILD_BATCH_SIZE} sources")
  set_property(GLOBAL PROPERTY JOB_POOLS compile=${that_fit})
  set(CMAKE_JOB_POOL_COMPILE compile)
endif()
