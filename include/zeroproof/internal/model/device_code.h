#pragma once

// Marks a function that kernels call as well as the host: empty for a compiler that knows no
// devices. The one place where the two compilers differ.
#ifdef __CUDACC__
#define ZP_HOST_DEVICE __host__ __device__
#else
#define ZP_HOST_DEVICE
#endif
