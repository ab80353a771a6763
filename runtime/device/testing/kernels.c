/* kernels.c: kernels as the compiler writes them (heddle_device_kernel_t), in C that clang makes
 * PTX of. SPDX-License-Identifier: Apache-2.0 */
#define KERNEL __attribute__((nvptx_kernel)) void
#define GLOBAL __attribute__((address_space(1)))
extern __attribute__((address_space(3))) float tile[];
#define FLOATS(address) ((GLOBAL float *)(address))

static long threadNumber(void) {
  return (long)__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}
static long threadCount(void) {
  return (long)__nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
}

typedef struct shift_words {
  long record, x, weights, y;
} shift_words_t;
typedef struct check_words {
  long record, x, limit;
} check_words_t;
typedef struct twice_words {
  long record, x, y;
} twice_words_t;
typedef struct mirror_words {
  long record, x, y, n;
} mirror_words_t;

/* y[i] = x[i] + weights[0] */
KERNEL shift(shift_words_t w, long tasks, long scratch, long bytes) {
  for (long i = threadNumber(); i < tasks; i += threadCount())
    FLOATS(w.y)[i] = FLOATS(w.x)[i] + *FLOATS(w.weights);
}

/* Fails with message 0, i and the limit where x[i] > limit. */
KERNEL check(check_words_t w, long tasks, long scratch, long bytes) {
  GLOBAL long *failure = (GLOBAL long *)w.record;
  for (long i = threadNumber(); i < tasks; i += threadCount()) {
    long none = 0;
    if (FLOATS(w.x)[i] > (float)w.limit &&
        __atomic_compare_exchange_n(failure, &none, 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      failure[1] = i;
      failure[2] = w.limit;
    }
  }
}

/* y[i] = 2 x[i], by way of the worker's own memory. */
KERNEL twice(twice_words_t w, long tasks, long scratch, long bytes) {
  volatile GLOBAL float *mine = FLOATS(scratch + threadNumber() * bytes);
  for (long i = threadNumber(); i < tasks; i += threadCount()) {
    mine[0] = FLOATS(w.x)[i];
    mine[1] = FLOATS(w.x)[i];
    FLOATS(w.y)[i] = mine[0] + mine[1];
  }
}

/* Turns each 64 of n elements round, in a block of 64 threads; of the last piece those whose
 * counterparts are there. */
KERNEL mirror(mirror_words_t w, long tasks, long scratch, long bytes) {
  long thread = __nvvm_read_ptx_sreg_tid_x();
  for (long task = __nvvm_read_ptx_sreg_ctaid_x(); task < tasks;
       task += __nvvm_read_ptx_sreg_nctaid_x()) {
    long i = task * 64 + thread, other = task * 64 + 63 - thread;
    if (i < w.n)
      tile[thread] = FLOATS(w.x)[i];
    __syncthreads();
    if (i < w.n)
      FLOATS(w.y)[i] = tile[other < w.n ? 63 - thread : thread];
    __syncthreads();
  }
}
