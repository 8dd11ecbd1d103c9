# SPDX-License-Identifier: Apache-2.0
# The sources of the program, but for main.cpp: tests link these. No CMakeLists.txt, because its
# build folder would have the name of the program.
target_sources(crossover_bench PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/aggregates.cpp
  ${CMAKE_CURRENT_LIST_DIR}/arguments.cpp
  ${CMAKE_CURRENT_LIST_DIR}/axes.cpp
  ${CMAKE_CURRENT_LIST_DIR}/benchmark_flags.cpp
  ${CMAKE_CURRENT_LIST_DIR}/budget.cpp
  ${CMAKE_CURRENT_LIST_DIR}/choices.cpp
  ${CMAKE_CURRENT_LIST_DIR}/context.cpp
  ${CMAKE_CURRENT_LIST_DIR}/copy.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cost.cpp
  ${CMAKE_CURRENT_LIST_DIR}/device.cpp
  ${CMAKE_CURRENT_LIST_DIR}/duration.cpp
  ${CMAKE_CURRENT_LIST_DIR}/earlier_run.cpp
  ${CMAKE_CURRENT_LIST_DIR}/epoch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/expected_seconds.cpp
  ${CMAKE_CURRENT_LIST_DIR}/families.cpp
  ${CMAKE_CURRENT_LIST_DIR}/flag.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gemm.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gpu_state.cpp
  ${CMAKE_CURRENT_LIST_DIR}/layer.cpp
  ${CMAKE_CURRENT_LIST_DIR}/minibatch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/minimum_work.cpp
  ${CMAKE_CURRENT_LIST_DIR}/networks.cpp
  ${CMAKE_CURRENT_LIST_DIR}/operation_rows.cpp
  ${CMAKE_CURRENT_LIST_DIR}/peak.cpp
  ${CMAKE_CURRENT_LIST_DIR}/planned_gpu.cpp
  ${CMAKE_CURRENT_LIST_DIR}/probe_row.cpp
  ${CMAKE_CURRENT_LIST_DIR}/profile_counters.cpp
  ${CMAKE_CURRENT_LIST_DIR}/reporter.cpp
  ${CMAKE_CURRENT_LIST_DIR}/require_memory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/result_file.cpp
  ${CMAKE_CURRENT_LIST_DIR}/row.cpp
  ${CMAKE_CURRENT_LIST_DIR}/row_json.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sampler.cpp
  ${CMAKE_CURRENT_LIST_DIR}/say.cpp
  ${CMAKE_CURRENT_LIST_DIR}/schedule.cpp
  ${CMAKE_CURRENT_LIST_DIR}/session.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sweeps.cpp
  ${CMAKE_CURRENT_LIST_DIR}/target.cpp
  ${CMAKE_CURRENT_LIST_DIR}/training.cpp
  ${CMAKE_CURRENT_LIST_DIR}/training_row.cpp
  ${CMAKE_CURRENT_LIST_DIR}/turns.cpp)
