# SPDX-License-Identifier: Apache-2.0
# For 64-bit Arm, compiled elsewhere: ./test --only=arm64. The compiler brings the C library's headers, the root that
# tools/arm64.py unpacks all other libraries, with one of C that is at least as new.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
get_filename_component(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}/../build/arm64-root ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,--allow-shlib-undefined) # what that one has alone
set(CMAKE_SKIP_BUILD_RPATH ON)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${CMAKE_FIND_ROOT_PATH}) # ctest's programs run on it
