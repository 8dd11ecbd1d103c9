// SPDX-License-Identifier: Apache-2.0
// AddressSanitizer's manual annotations; nothing in a build without it.
#pragma once

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) (static_cast<void>(address))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) (static_cast<void>(address))
#endif
