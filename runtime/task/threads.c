/* threads.c: the pool's own workers.
 *
 * Chunk i belongs to thread i, the caller being thread 0, so that data stays in its core's cache;
 * but who is done with his own takes what others have not begun, and the caller waits only for
 * chunks that were begun. So a worker that sleeps, or whose core is busy with something else, costs
 * its help and not a slice of the scheduler. pthreadpool's caller waits for every worker to answer:
 * milliseconds, when a worker was woken on the core where that caller spins (numbers in README.md).
 *
 * Workers spin for 50 us after a launch, then sleep on a futex. A scheduler may wake one on the
 * caller's core and leave it there: since the caller does the work alone, or the worker does its
 * part once the caller sleeps, nothing seems amiss. So the caller sends away who has not seen a
 * launch for 100 us, or has seen it on this core (README.md has figures).
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/status.h"
#include "runtime/base/tensor.h"
#include "runtime/task/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS 50000
#define LATE_NS 100000
#define MOST_LATE_NS 100000000
#define MOST_THREADS 4096
#define COUNT_BITS 16 /* of `job`, below the launch's number */

/* One chunk's state: 2 * launch while nobody has begun it, 2 * launch + 1 after. A worker that is
 * late by a launch expects another number, and so takes nothing. */
typedef struct slot {
  uint64_t state;
  uint64_t seen;     /* the last launch that thread i has noticed, */
  int64_t cpu;       /* and where it ran then */
  int64_t tid;       /* of thread i, once it runs */
  int64_t lateSince; /* the caller's: when the first launch began that thread i did not notice, */
  int64_t patience;  /* and for how long that may be so before it is sent away */
  int64_t awayFrom;  /* the core that it may not use for now, or -1 */
  cpu_set_t away;    /* and those that it may use meanwhile */
  struct thread_pool *pool;
} slot_t;

typedef struct thread_pool {
  heddle_pool_t base;
  slot_t *slots; /* one a thread */
  pthread_t *workers;
  int worker_count; /* started */
  pid_t process;    /* that has the workers: a child by fork has none, and no need of any */
  heddle_task_fn task;
  void *context;
  uint64_t job;  /* number of the launch << COUNT_BITS | its chunks */
  uint32_t done; /* chunks; futex: the caller sleeps on it when it has spun enough */
  uint32_t bell; /* futex: rings once per launch */
  int sleepers, stop;
  int isCallerAsleep;
} thread_pool_t;

static int64_t nowNs(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void rest(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Runs thread `index`'s chunk of launch `job`, then whatever nobody has begun. */
static void help(thread_pool_t *pool, uint64_t job, size_t index) {
  size_t count = job & ((1u << COUNT_BITS) - 1);
  uint64_t open = 2 * (job >> COUNT_BITS);
  for (size_t i = 0; i < count; ++i) {
    size_t chunk = (index + i) % count;
    uint64_t expected = open;
    if (!__atomic_compare_exchange_n(&pool->slots[chunk].state, &expected, open + 1, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    pool->task(pool->context, chunk); /* the launch cannot end while this chunk is not done */
    uint32_t done = __atomic_add_fetch(&pool->done, 1, __ATOMIC_SEQ_CST);
    if (done == count && __atomic_load_n(&pool->isCallerAsleep, __ATOMIC_SEQ_CST))
      syscall(SYS_futex, &pool->done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  }
}

/* Whether all chunks are done within the time that a thread spins. */
static bool isDoneSoon(thread_pool_t *pool, uint32_t count) {
  int64_t until = 0;
  for (int spins = 1; __atomic_load_n(&pool->done, __ATOMIC_ACQUIRE) != count; ++spins) {
    rest();
    if (spins % 64)
      continue;
    int64_t now = nowNs();
    if (!until)
      until = now + SPIN_NS;
    if (now > until)
      return false;
  }
  return true;
}

/* The caller's: until all chunks are done. The worker that it waits for may need this very core, so
 * it sleeps; where others want the core, too, each sched_yield would cost it a whole slice. */
static void awaitDone(thread_pool_t *pool, uint32_t count) {
  if (isDoneSoon(pool, count))
    return;
  __atomic_store_n(&pool->isCallerAsleep, 1, __ATOMIC_SEQ_CST);
  for (uint32_t done; (done = __atomic_load_n(&pool->done, __ATOMIC_SEQ_CST)) != count;)
    syscall(SYS_futex, &pool->done, FUTEX_WAIT_PRIVATE, done, NULL, NULL, 0);
  __atomic_store_n(&pool->isCallerAsleep, 0, __ATOMIC_RELAXED);
}

/* Until there is a launch after `last`, or the end of the pool. */
static uint64_t awaitJob(thread_pool_t *pool, uint64_t last) {
  uint64_t job = last;
  int64_t until = nowNs() + SPIN_NS;
  for (;;) {
    uint32_t bell = __atomic_load_n(&pool->bell, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 64; ++i) {
      job = __atomic_load_n(&pool->job, __ATOMIC_ACQUIRE);
      if (job != last || __atomic_load_n(&pool->stop, __ATOMIC_ACQUIRE))
        return job;
      rest();
    }
    if (nowNs() < until)
      continue;
    /* The caller rings after it stored the job and before it looks for sleepers, so either it sees
     * this one or the futex sees the new bell. */
    __atomic_add_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &pool->bell, FUTEX_WAIT_PRIVATE, bell, NULL, NULL, 0);
    __atomic_sub_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
  }
}

static void *work(void *data) {
  slot_t *slot = data;
  thread_pool_t *pool = slot->pool;
  __atomic_store_n(&slot->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
  for (uint64_t job = 0;;) {
    job = awaitJob(pool, job);
    if (__atomic_load_n(&pool->stop, __ATOMIC_ACQUIRE))
      return NULL;
    __atomic_store_n(&slot->cpu, sched_getcpu(), __ATOMIC_RELAXED);
    __atomic_store_n(&slot->seen, job >> COUNT_BITS, __ATOMIC_RELEASE);
    help(pool, job, (size_t)(slot - pool->slots));
  }
}

static void ring(thread_pool_t *pool, int wanted) {
  __atomic_add_fetch(&pool->bell, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST) > 0)
    syscall(SYS_futex, &pool->bell, FUTEX_WAKE_PRIVATE, wanted, NULL, NULL, 0);
}

/* To any other core than this one, from now until it is let back: one that sleeps is moved only
 * when it wakes. */
static void sendAway(slot_t *slot, pid_t tid, int here) {
  cpu_set_t others;
  if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(tid, sizeof others, &others) != 0)
    return;
  bool wasAllowed = CPU_ISSET(here, &others);
  CPU_CLR(here, &others);
  if (wasAllowed && CPU_COUNT(&others) > 0 && sched_setaffinity(tid, sizeof others, &others) == 0) {
    slot->awayFrom = here;
    slot->away = others;
  }
}

/* Unless somebody else has set its affinity meanwhile. */
static void letBack(slot_t *slot, pid_t tid) {
  cpu_set_t found;
  if (slot->awayFrom >= 0 && sched_getaffinity(tid, sizeof found, &found) == 0 &&
      CPU_EQUAL(&found, &slot->away)) {
    CPU_SET(slot->awayFrom, &found);
    sched_setaffinity(tid, sizeof found, &found);
  }
  slot->awayFrom = -1;
}

/* After launch `number`, which began at `start` on core `here`. */
static void lookForLate(thread_pool_t *pool, uint64_t number, size_t count, int64_t start,
                        int here) {
  for (size_t i = 1; i < count; ++i) {
    slot_t *slot = &pool->slots[i];
    pid_t tid = (pid_t)__atomic_load_n(&slot->tid, __ATOMIC_ACQUIRE);
    bool isSeen = __atomic_load_n(&slot->seen, __ATOMIC_ACQUIRE) == number;
    if (isSeen && __atomic_load_n(&slot->cpu, __ATOMIC_RELAXED) != here) {
      letBack(slot, tid);
      slot->lateSince = 0;
      slot->patience = LATE_NS;
      continue;
    }
    if (!slot->lateSince)
      slot->lateSince = start;
    int64_t now = nowNs();
    if (!tid || now - slot->lateSince < slot->patience)
      continue;
    if (slot->awayFrom >= 0)
      letBack(slot, tid);
    else
      sendAway(slot, tid, here);
    slot->lateSince = now;
    if (slot->patience < MOST_LATE_NS) /* where the machine is busy, that is no help */
      slot->patience *= 2;
  }
}

static void launch(heddle_pool_t *base, heddle_task_fn task, void *context, size_t count) {
  thread_pool_t *pool = (thread_pool_t *)base;
  uint64_t number = (pool->job >> COUNT_BITS) + 1;
  pool->task = task;
  pool->context = context;
  __atomic_store_n(&pool->done, 0u, __ATOMIC_RELAXED);
  for (size_t i = 0; i < count; ++i)
    __atomic_store_n(&pool->slots[i].state, 2 * number, __ATOMIC_RELEASE);
  uint64_t job = number << COUNT_BITS | count;
  int64_t start = nowNs();
  int here = sched_getcpu();
  __atomic_store_n(&pool->job, job, __ATOMIC_SEQ_CST);
  ring(pool, (int)count - 1);
  help(pool, job, 0);
  awaitDone(pool, (uint32_t)count);
  lookForLate(pool, number, count, start, here);
}

static int usableThreads(void) {
  cpu_set_t small;
  if (sched_getaffinity(0, sizeof small, &small) == 0)
    return CPU_COUNT(&small) > 0 ? CPU_COUNT(&small) : 1;
  for (int cpus = 2 * CPU_SETSIZE; cpus <= 1 << 20; cpus *= 2) { /* machines of more CPUs */
    cpu_set_t *set = CPU_ALLOC(cpus);
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    int count = set && sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0)
      return count;
  }
  return 1;
}

static void destroy(heddle_pool_t *base) {
  thread_pool_t *pool = (thread_pool_t *)base;
  __atomic_store_n(&pool->stop, 1, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&pool->bell, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &pool->bell, FUTEX_WAKE_PRIVATE, MOST_THREADS, NULL, NULL, 0);
  for (int i = 0; i < pool->worker_count && pool->process == getpid(); ++i)
    pthread_join(pool->workers[i], NULL);
  free(pool->slots);
  free(pool->workers);
  free(pool);
}

static bool startWorker(thread_pool_t *pool) {
  slot_t *slot = &pool->slots[pool->worker_count + 1];
  sigset_t all, before; /* signals are for the program's own threads */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&pool->workers[pool->worker_count], NULL, work, slot);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed)
    return false;
  pthread_setname_np(pool->workers[pool->worker_count++], "heddle");
  return true;
}

heddle_status_t *heddle_pool_create(int threads, heddle_pool_t **result) {
  if (threads < 0 || !result)
    return heddle_status_make(HEDDLE_USAGE,
                              "threads is %d, but must be 0 (all that the process may use) or more",
                              threads);
  int usable = usableThreads();
  if (threads == 0 || threads > usable)
    threads = usable < MOST_THREADS ? usable : MOST_THREADS;
  thread_pool_t *pool = calloc(1, sizeof *pool);
  bool isMade = pool != NULL;
  if (isMade) {
    pool->base = (heddle_pool_t){threads, true, 0, launch, destroy};
    pool->process = getpid();
    pool->slots = heddle_memory_allocate((int64_t)sizeof(slot_t) * threads);
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    isMade = pool->slots && pool->workers;
  }
  if (isMade)
    memset(pool->slots, 0, sizeof(slot_t) * (size_t)threads);
  for (int i = 0; isMade && i < threads; ++i) {
    pool->slots[i].patience = LATE_NS;
    pool->slots[i].awayFrom = -1;
    pool->slots[i].pool = pool;
  }
  while (isMade && pool->worker_count < threads - 1)
    isMade = startWorker(pool);
  if (!isMade) {
    if (pool)
      destroy(&pool->base);
    return heddle_status_make(HEDDLE_LIMIT, "cannot create a pool of %d threads", threads);
  }
  *result = &pool->base;
  return NULL;
}
