/* An emulated CUDA device: its memory, the threads of a launch, and a watch over every access.

   Memory is one arena that is never handed out twice, so an address beyond an array or in a
   freed one is known for what it is. Each byte has a state (free, empty, written) and each
   access leaves who was there in which phase: between two barriers no thread may touch what
   another one writes. A barrier of a block orders the threads of that block alone: what another
   block has written since the last barrier of the grid, or since the launch, is a race. Threads are
   contexts of their own, which a barrier switches. Blocks run one after the other; in a cooperative
   launch, from one barrier of the grid to the next. The last bytes of the arena are the shared memory
   of the block that runs; others keep a copy of theirs. Kernels are compiled by retarget.py, which
   puts a call of emu_load or emu_store before each load and store. */

#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define ARENA ((size_t)8 << 30)
#define ARENA_AT ((char *)0x100000000000)
#define SHARED ((size_t)256 << 10) /* shared memory, as in retarget.py */
#define STACK ((size_t)256 << 10)
#define GAP 256 /* bytes between two arrays that belong to none */
#define SECTOR 32
#define WARP 32
#define MOST_FAULTS 32
enum { FREE, EMPTY, WRITTEN };
enum { IN_ORDER, REVERSED, SHUFFLED };
enum { READY, AT_BLOCK, AT_GRID, DONE }; /* of a thread: goes on, waits for its block or for all, ended */
enum { SEVERAL = 0xffffffffu, ATOMIC = 0xfffffffeu, OF_BLOCKS = 0xfffffffdu };

typedef struct { uint32_t writer, written_in, reader, read_in, block; } Visit; /* the reader's block */
typedef struct { uint64_t read_by, written_by; } Sector;
typedef struct {
  uint64_t threads, barriers, block_barriers, loads, stores, read, written; /* the last two in bytes */
  uint64_t sectors_read, sectors_written, shared, busy; /* once a warp and phase; bytes; threads that write */
} Counts;
typedef struct { ucontext_t context; uint32_t id; int state, vote, wrote; } Thread;
typedef struct { char *bytes; uint8_t *states; Visit *visits; int votes; } Block; /* its shared memory */
typedef void (*Kernel)(void **);

static char *arena, *stacks;
static uint8_t *states;
static Visit *visits;
static Sector *sectors;
static size_t used;
static Counts counts;
static Kernel kernel;
static void **arguments;
static Thread *threads, *running;
static Block *blocks;
static ucontext_t scheduler;
static uint32_t me, block_size, n_blocks, phase, epoch; /* the first phase since all threads met */
static size_t shared_size, dynamic_size;
static int is_cooperative, is_stopped;
static char faults[MOST_FAULTS][240];
static uint64_t n_faults;

static void *reserve(size_t n, void *at) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0);
  void *found = mmap(at, n, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (found == MAP_FAILED) { perror("emulated device: no address space"); exit(1); }
  return found;
}

__attribute__((constructor)) static void begin(void) {
  arena = reserve(ARENA, ARENA_AT);
  states = reserve(ARENA, 0);
  visits = reserve(ARENA * sizeof(Visit), 0);
  sectors = reserve(ARENA / SECTOR * sizeof(Sector), 0);
}

/* Memory */

static int in_arena(const char *p) { return p >= arena && p < arena + ARENA; }

char *emu_alloc(size_t n) {
  size_t whole = (n + GAP - 1) / GAP * GAP + GAP;
  if (used + whole > ARENA - SHARED) return 0;
  char *found = arena + used;
  used += whole;
  memset(found, 0xff, n); /* NaN, and no index */
  memset(states + (found - arena), EMPTY, n);
  return found;
}

/* Give whole pages back: nobody is there again. */
static void drop(void *from, size_t n) {
  uintptr_t page = 4096, first = ((uintptr_t)from + page - 1) / page * page, end = ((uintptr_t)from + n) / page * page;
  if (end > first) madvise((void *)first, end - first, MADV_DONTNEED);
}

void emu_free(char *p, size_t n) {
  if (!in_arena(p)) return;
  memset(states + (p - arena), FREE, n);
  drop(p, n);
  drop(states + (p - arena), n);
  drop(visits + (p - arena), n * sizeof(Visit));
  drop(sectors + (p - arena) / SECTOR, n / SECTOR * sizeof(Sector));
}

/* What the host writes. */
void emu_fill(char *p, size_t n) { if (in_arena(p)) memset(states + (p - arena), WRITTEN, n); }

uint8_t *emu_states(char *p) { return in_arena(p) ? states + (p - arena) : 0; }

/* Faults */

static void fault(const char *what, const char *p, uint64_t n, const char *more, uint32_t other) {
  if (n_faults++ >= MOST_FAULTS) return;
  char *text = faults[n_faults - 1];
  int end = snprintf(text, sizeof faults[0], "%s, %llu bytes at %+lld, thread %u of block %u, after %llu barriers",
                     what, (unsigned long long)n, (long long)(p - arena), me % block_size, me / block_size,
                     (unsigned long long)counts.barriers);
  if (more && other >= OF_BLOCKS) snprintf(text + end, sizeof faults[0] - end, "; %s several threads", more);
  else if (more) snprintf(text + end, sizeof faults[0] - end, "; %s thread %u of block %u", more,
                          (other - 1) % block_size, (other - 1) / block_size);
}

uint64_t emu_faults(void) { return n_faults; }
const char *emu_fault(uint64_t k) { return k < MOST_FAULTS ? faults[k] : ""; }
void emu_forget_faults(void) { n_faults = 0; }

/* What kernels call */

static int on_stack(const char *p) {
  uintptr_t here = (uintptr_t)__builtin_frame_address(0), there = (uintptr_t)p;
  return there > here - STACK && there < here + ((size_t)8 << 20);
}

static int is_mine(const char *p, uint64_t n, const char *what) {
  if (!in_arena(p)) {
    if (on_stack(p)) return 0;
    fault(what, p, n, 0, 0);
    is_stopped = 1; /* the access itself would end the process */
    setcontext(&scheduler);
  }
  uint8_t *state = states + (p - arena);
  if (state[0] == FREE || state[n - 1] == FREE) { fault(what, p, n, 0, 0); return 0; }
  return 1;
}

/* Whether an access in a phase by a thread, 1 and up, is unordered with one of this thread now. */
static int is_apart(uint32_t in, uint32_t thread) {
  if (in < epoch) return 0;
  if (thread >= OF_BLOCKS) return in == phase || thread == OF_BLOCKS;
  return in == phase ? thread != me + 1 : (thread - 1) / block_size != me / block_size;
}

/* Whether it is shared memory, whose traffic is counted apart. */
static int is_shared(const char *p, uint64_t n) {
  if (p < arena + ARENA - SHARED) return 0;
  counts.shared += n;
  return 1;
}

static Sector *sector_of(const char *p) { return sectors + (p - arena) / SECTOR; }
static uint64_t my_warp(void) { return ((uint64_t)phase << 32) | (me / block_size << 12) | me % block_size / WARP; }

void emu_load(const char *p, uint64_t n) {
  for (; n > 8; p += 8, n -= 8) emu_load(p, 8); /* a copy */
  if (!is_mine(p, n, "reads what is in no array")) return;
  uint8_t *state = states + (p - arena);
  for (uint64_t i = 0; i < n; i++)
    if (state[i] == EMPTY) { fault("reads what nobody wrote", p, n, 0, 0); break; }
  Visit *v = visits + (p - arena);
  if (is_apart(v->written_in, v->writer)) fault("race: reads", p, n, "written by", v->writer);
  if (v->read_in < epoch) v->reader = me + 1;
  else if (v->read_in == phase && v->reader != OF_BLOCKS) v->reader = v->reader == me + 1 ? me + 1 : SEVERAL;
  else if (v->reader == SEVERAL ? v->block != me / block_size : is_apart(v->read_in, v->reader)) v->reader = OF_BLOCKS;
  else v->reader = me + 1;
  v->read_in = phase, v->block = me / block_size;
  if (is_shared(p, n)) return;
  counts.loads++;
  counts.read += n;
  Sector *s = sector_of(p);
  if (s->read_by != my_warp()) { s->read_by = my_warp(); counts.sectors_read++; }
}

/* Whether another thread has read since it met this one. */
static int was_read(const Visit *v) {
  return v->reader == SEVERAL && v->read_in >= epoch && v->block != me / block_size ? 1 : is_apart(v->read_in, v->reader);
}

void emu_store(const char *p, uint64_t n) {
  for (; n > 8; p += 8, n -= 8) emu_store(p, 8);
  if (!is_mine(p, n, "writes what is in no array")) return;
  memset(states + (p - arena), WRITTEN, n);
  Visit *v = visits + (p - arena);
  if (is_apart(v->written_in, v->writer)) fault("race: writes", p, n, "written by", v->writer);
  if (was_read(v)) fault("race: writes", p, n, "read by", v->reader);
  v->written_in = phase;
  v->writer = me + 1;
  running->wrote = 1;
  if (is_shared(p, n)) return;
  counts.stores++;
  counts.written += n;
  Sector *s = sector_of(p);
  if (s->written_by != my_warp()) { s->written_by = my_warp(); counts.sectors_written++; }
}

/* A read and write that no other thread can come between: no race among its like. */
void emu_atomic(const char *p, uint64_t n) {
  if (!is_mine(p, n, "changes what is in no array")) return;
  if (states[p - arena] == EMPTY) fault("changes what nobody wrote", p, n, 0, 0);
  memset(states + (p - arena), WRITTEN, n);
  Visit *v = visits + (p - arena);
  if (v->writer != ATOMIC && is_apart(v->written_in, v->writer)) fault("race: changes", p, n, "written by", v->writer);
  if (was_read(v)) fault("race: changes", p, n, "read by", v->reader);
  v->written_in = phase;
  v->writer = ATOMIC;
  if (is_shared(p, 2 * n)) return;
  counts.loads++, counts.stores++;
  counts.read += n, counts.written += n;
}

#define REGISTERS(name, at_x, elsewhere) \
  int read_##name##_x(void) __asm__("emu.nvvm.read.ptx.sreg." #name ".x"); \
  int read_##name##_x(void) { return at_x; } \
  int read_##name##_y(void) __asm__("emu.nvvm.read.ptx.sreg." #name ".y"); \
  int read_##name##_y(void) { return elsewhere; } \
  int read_##name##_z(void) __asm__("emu.nvvm.read.ptx.sreg." #name ".z"); \
  int read_##name##_z(void) { return elsewhere; }
REGISTERS(tid, me % block_size, 0)
REGISTERS(ctaid, me / block_size, 0)
REGISTERS(ntid, block_size, 1)
REGISTERS(nctaid, n_blocks, 1)

uint64_t cudaCGGetIntrinsicHandle(uint32_t scope) {
  if (!is_cooperative) fault("a barrier of the grid in a launch that is not cooperative", arena, 0, 0, 0);
  return scope;
}

static void wait_at(int barrier) {
  Thread *self = running;
  self->state = barrier;
  swapcontext(&self->context, &scheduler);
  me = self->id;
}

uint32_t cudaCGSynchronize(uint64_t handle, uint32_t flags) {
  (void)handle, (void)flags;
  if (is_cooperative) wait_at(AT_GRID);
  return 0;
}

void barrier0(void) __asm__("emu.nvvm.barrier0");
void barrier0(void) { wait_at(AT_BLOCK); }
void barrier_cta(int which) __asm__("emu.nvvm.barrier.cta.sync.aligned.all");
void barrier_cta(int which) { (void)which, wait_at(AT_BLOCK); }

/* A barrier of a block that returns in how many of its threads a number is not 0. */
static int count_votes(int vote) {
  running->vote = vote != 0;
  wait_at(AT_BLOCK);
  return blocks[is_cooperative ? me / block_size : 0].votes;
}
#define VOTE(name, result) \
  int vote_##name(int vote) __asm__("emu.nvvm.barrier0." #name); \
  int vote_##name(int vote) { int n = count_votes(vote); return result; }
VOTE(popc, n) VOTE(or, n > 0) VOTE(and, n == (int)block_size)

int emu_dynamic_size(void) { return dynamic_size; }

/* Launches */

static void run_thread(void) {
  kernel(arguments);
  running->state = DONE; /* uc_link goes back to the scheduler */
}

static uint32_t *order_of(uint32_t n, int order, uint64_t seed) {
  uint32_t *found = malloc(n * sizeof *found);
  for (uint32_t i = 0; i < n; i++) found[i] = order == REVERSED ? n - 1 - i : i;
  for (uint32_t i = n - 1; order == SHUFFLED && i > 0; i--) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint32_t j = (seed >> 33) % (i + 1), other = found[j];
    found[j] = found[i];
    found[i] = other;
  }
  return found;
}

static char *window(void) { return arena + ARENA - SHARED; }

static void clear_shared(void) {
  memset(window(), 0xff, shared_size);
  memset(states + ARENA - SHARED, EMPTY, shared_size);
  memset(visits + ARENA - SHARED, 0, shared_size * sizeof(Visit));
}

static void exchange(void *a, void *b, size_t n) {
  char *x = a, *y = b;
  for (size_t i = 0; i < n; i++) { char other = x[i]; x[i] = y[i]; y[i] = other; }
}

/* Bring the shared memory of a block to its place, or back. */
static void exchange_shared(Block *b) {
  exchange(window(), b->bytes, shared_size);
  exchange(states + ARENA - SHARED, b->states, shared_size);
  exchange(visits + ARENA - SHARED, b->visits, shared_size * sizeof(Visit));
}

static uint32_t count_in(const Thread *own, int state) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < block_size; i++) found += own[i].state == state;
  return found;
}

static int deadlock(const char *what) { fault(what, arena, 0, 0, 0); return 0; }

/* Run the threads of a block until all have ended or wait for the grid; they take turns in the
   order, anew after each barrier. Returns 0 at a deadlock. */
static int run_block(Block *b, Thread *own, int order) {
  for (;;) {
    uint32_t *turns = order_of(block_size, order, phase);
    for (uint32_t k = 0; k < block_size; k++) {
      running = own + turns[k];
      me = running->id;
      if (running->state == READY && !is_stopped) swapcontext(&scheduler, &running->context);
    }
    free(turns);
    if (is_stopped) return 0;
    phase++;
    uint32_t waiting = count_in(own, AT_BLOCK);
    if (waiting == 0) return 1;
    if (waiting < block_size)
      return deadlock(count_in(own, DONE) ? "some threads ended while others wait at a barrier"
                                          : "some threads wait for their block, others for the grid");
    counts.block_barriers++;
    for (uint32_t i = b->votes = 0; i < block_size; i++) own[i].state = READY, b->votes += own[i].vote;
  }
}

/* Run n blocks that are there at the same time, the first of which is `first`. */
static int run_blocks(uint32_t first, uint32_t n, int order) {
  for (uint32_t i = 0; i < n * block_size; i++) {
    threads[i] = (Thread){.id = first * block_size + i};
    getcontext(&threads[i].context);
    threads[i].context.uc_stack.ss_sp = stacks + i * STACK;
    threads[i].context.uc_stack.ss_size = STACK;
    threads[i].context.uc_link = &scheduler;
    makecontext(&threads[i].context, run_thread, 0);
  }
  for (;;) {
    uint32_t *turns = order_of(n, order, phase), done = 0;
    for (uint32_t k = 0; k < n; k++) {
      Block *b = blocks + turns[k];
      if (n > 1) exchange_shared(b);
      int ended = run_block(b, threads + turns[k] * block_size, order);
      if (n > 1) exchange_shared(b);
      if (!ended) return 0;
    }
    free(turns);
    for (uint32_t i = 0; i < n * block_size; i++) done += threads[i].state == DONE;
    for (uint32_t i = 0; done == n * block_size && i < done; i++) counts.busy += threads[i].wrote;
    if (done == n * block_size) return 1;
    if (done) return deadlock("some threads ended while others wait at a barrier");
    for (uint32_t i = 0; i < n * block_size; i++) threads[i].state = READY;
    counts.barriers++;
    epoch = ++phase;
  }
}

int emu_launch(Kernel body, void **given, uint32_t grid, uint32_t block, size_t fixed, size_t dynamic, int cooperative,
               int order, Counts *out) {
  uint32_t n = cooperative ? grid : 1, *turns = order_of(grid, order, phase); /* blocks at a time */
  int ended = 1;
  counts = (Counts){.threads = grid * block};
  kernel = body, arguments = given, n_blocks = grid, block_size = block, is_cooperative = cooperative;
  shared_size = fixed + dynamic, dynamic_size = dynamic;
  epoch = ++phase, is_stopped = 0;
  stacks = reserve(n * block * STACK, 0);
  threads = calloc(n * block, sizeof *threads);
  blocks = calloc(n, sizeof *blocks);
  clear_shared();
  for (uint32_t k = 0; n > 1 && k < n; k++) {
    blocks[k] = (Block){malloc(shared_size), calloc(shared_size, 1), calloc(shared_size, sizeof(Visit)), 0};
    memset(blocks[k].states, EMPTY, shared_size);
  }
  for (uint32_t k = 0; k < grid / n && !is_stopped; k++) {
    ended &= run_blocks(cooperative ? 0 : turns[k], n, order);
    clear_shared();
  }
  memset(states + ARENA - SHARED, FREE, shared_size);
  for (uint32_t k = 0; k < n; k++) free(blocks[k].bytes), free(blocks[k].states), free(blocks[k].visits);
  munmap(stacks, n * block * STACK);
  free(threads);
  free(blocks);
  free(turns);
  *out = counts;
  return ended;
}

/* The driver is Python's (driver.py): this hands its functions out. */

static void *(*function_named)(const char *);
void emu_set_driver(void *(*named)(const char *)) { function_named = named; }

int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
  (void)version, (void)flags;
  *out = function_named && strncmp(name, "cuGetProcAddress", 16) ? function_named(name) : (void *)cuGetProcAddress_v2;
  if (status) *status = *out == 0;
  return 0;
}

/* libdevice, by the host's libm */

#define ONE(name) \
  double __nv_##name(double x) { return name(x); } \
  float __nv_##name##f(float x) { return name##f(x); }
#define TWO(name) \
  double __nv_##name(double x, double y) { return name(x, y); } \
  float __nv_##name##f(float x, float y) { return name##f(x, y); }
ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p) ONE(sqrt) ONE(cbrt)
ONE(sin) ONE(cos) ONE(tan) ONE(asin) ONE(acos) ONE(atan) ONE(sinh) ONE(cosh) ONE(tanh)
ONE(floor) ONE(ceil) ONE(trunc) ONE(rint) ONE(round) ONE(fabs)
TWO(pow) TWO(atan2) TWO(hypot) TWO(copysign) TWO(fmod) TWO(fmin) TWO(fmax)
int __nv_isnand(double x) { return isnan(x); }
int __nv_isnanf(float x) { return isnan(x); }
int __nv_isinfd(double x) { return isinf(x); }
int __nv_isinff(float x) { return isinf(x); }
int __nv_finitef(float x) { return isfinite(x); }
int __nv_isfinited(double x) { return isfinite(x); }
int __nv_abs(int x) { return abs(x); }
long long __nv_llabs(long long x) { return llabs(x); }
