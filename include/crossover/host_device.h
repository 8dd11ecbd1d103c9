// SPDX-License-Identifier: Apache-2.0
// What host and device compile alike.
#pragma once

#ifdef __CUDACC__
#define CROSSOVER_HOST_DEVICE __host__ __device__
#else
#define CROSSOVER_HOST_DEVICE
#endif
