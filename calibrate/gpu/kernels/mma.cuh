// SPDX-License-Identifier: Apache-2.0
// A warp's tensor core operations, for compute capability 8.0 and later: PTX
// ISA, "Warp-level matrix instructions" and "cp.async". Lane l has group g = l
// / 4 and position p = l % 4 in the fragments of mma.m16n8k16:
//   a[0] row g, columns 2 p and 2 p + 1    a[1] row g + 8
//   a[2], a[3] the same 8 columns further
//   b[0] rows 2 p and 2 p + 1 of column g  b[1] 8 rows further
//   d[0], d[1] row g, columns 2 p and 2 p + 1; d[2], d[3] row g + 8
#ifndef WEIR_CALIBRATE_GPU_KERNELS_MMA_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_MMA_CUH_

#include <type_traits>

#include "calibrate/gpu/kernels/device.cuh"

namespace weir::calibrate {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define WEIR_NO_ASYNC_MMA 1  // launchers refuse such devices
#endif

// d[16, 8] += a[16, 16] b[16, 8], fp32 sums.
template <typename Half>
__device__ __forceinline__ void Mma(float (&d)[4], const uint32_t (&a)[4],
                                    uint32_t b0, uint32_t b1) {
#if defined(WEIR_NO_ASYNC_MMA)
  __trap();
#elif defined(__CUDACC__)
  if constexpr (std::is_same_v<Half, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
#else
  emulator::Mma<Half>(d, a, b0, b1);
#endif
}

// An address in shared memory, in bytes: 32 bits for nvcc, so that it takes one
// register.
#ifdef __CUDACC__
using SharedAddress = uint32_t;
__device__ __forceinline__ SharedAddress AddressOf(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}
#else
using SharedAddress = uintptr_t;
inline SharedAddress AddressOf(const void* shared) {
  return reinterpret_cast<uintptr_t>(shared);
}
#endif

// Loads four 8 x 8 matrices; lanes 8 i to 8 i + 7 have the addresses of the
// 16-byte rows of the i-th. r[i] of lane l: row l / 4, columns 2 (l % 4) and
// the next.
__device__ __forceinline__ void LoadMatrix4(uint32_t (&r)[4],
                                            SharedAddress row) {
#if defined(WEIR_NO_ASYNC_MMA)
  __trap();
#elif defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
#else
  emulator::LoadMatrix4(r, reinterpret_cast<const void*>(row), false);
#endif
}
// Loads the transposed matrices.
__device__ __forceinline__ void LoadMatrix4Transposed(uint32_t (&r)[4],
                                                      SharedAddress row) {
#if defined(WEIR_NO_ASYNC_MMA)
  __trap();
#elif defined(__CUDACC__)
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(row)
      : "memory");
#else
  emulator::LoadMatrix4(r, reinterpret_cast<const void*>(row), true);
#endif
}

// Copies kBytes (4 or 16) to shared memory, bypassing registers; writes zeros
// if not `valid` (`global` is then not read, but must be a valid address).
template <int kBytes>
__device__ __forceinline__ void CopyAsync(SharedAddress shared,
                                          const void* global, bool valid) {
  static_assert(kBytes == 4 || kBytes == 16);
#if defined(WEIR_NO_ASYNC_MMA)
  __trap();
#elif defined(__CUDACC__)
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared),
                 "l"(__cvta_generic_to_global(global)), "r"(valid ? 16 : 0)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared),
                 "l"(__cvta_generic_to_global(global)), "r"(valid ? 4 : 0)
                 : "memory");
  }
#else
  emulator::CopyAsync(reinterpret_cast<void*>(shared), global, kBytes, valid);
#endif
}
__device__ __forceinline__ void CommitCopies() {
#if defined(WEIR_NO_ASYNC_MMA)
  __trap();
#elif defined(__CUDACC__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  emulator::CommitCopies();
#endif
}
// Waits for all but the last kPending groups of this thread.
template <int kPending>
__device__ __forceinline__ void WaitCopies() {
#if defined(WEIR_NO_ASYNC_MMA)
  __trap();
#elif defined(__CUDACC__)
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#else
  emulator::WaitCopies(kPending);
#endif
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_MMA_CUH_
