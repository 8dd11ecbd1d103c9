# SPDX-License-Identifier: Apache-2.0
# The headers that NVRTC compiles when the program runs (src/cuda/plan/tailored_text.cpp), as text in one more header.
# By the names by which they are included.
set(headers "")
foreach(header
    include/crossover/host_device.h include/crossover/activation.h include/crossover/activations-inl.h
    include/crossover/scalar_maths.h include/crossover/operations/update_factors.h
    src/cuda/plan/launches/ordered_run.h src/cuda/plan/launches/tailored_shape.h
    src/cuda/kernels/../plan/launches/tailored_arguments.h
    src/cuda/kernels/tailored_sample.cuh src/cuda/kernels/tailored.cuh)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
  file(READ ${PROJECT_SOURCE_DIR}/${header} text)
  string(REGEX REPLACE "^include/|^src/cuda/kernels/|^src/cuda/plan/launches/" "" name ${header})
  string(APPEND headers "    TailoredHeader{\"${name}\", R\"text(${text})text\"},\n")
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/tailored_headers.h.in ${PROJECT_BINARY_DIR}/generated/tailored_headers.h @ONLY)
