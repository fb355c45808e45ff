/* An emulated CUDA device: its memory, the threads of a launch, and a watch over every access.

   Memory is one arena that is never handed out twice, so an address beyond an array or in a
   freed one is known for what it is. Each byte has a state (free, empty, written) and each
   access leaves who was there in which phase: between two barriers no thread may touch what
   another one writes. A barrier of a block orders the threads of that block alone: what another
   block has written since the last barrier of the grid, or since the launch, is a race. Threads are
   contexts of their own, which a barrier switches. Blocks run one after the other, but together in a
   cooperative launch. Kernels are compiled by retarget.py, which puts a call of emu_load or
   emu_store before each load and store. */

#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define ARENA ((size_t)8 << 30)
#define STACK ((size_t)256 << 10)
#define GAP 256 /* bytes between two arrays that belong to none */
#define SECTOR 32
#define WARP 32
#define MOST_FAULTS 32
enum { FREE, EMPTY, WRITTEN };
enum { IN_ORDER, REVERSED, SHUFFLED };
enum { SEVERAL = 0xffffffffu, ATOMIC = 0xfffffffeu, OF_BLOCKS = 0xfffffffdu };

typedef struct { uint32_t writer, written_in, reader, read_in, block; } Visit; /* the reader's block */
typedef struct { uint64_t read_by, written_by; } Sector;
typedef struct {
  uint64_t threads, barriers, loads, stores, read, written; /* the last two in bytes */
  uint64_t sectors_read, sectors_written; /* once a warp and phase */
} Counts;
typedef struct { ucontext_t context; uint32_t id; int done; } Thread;
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
static ucontext_t scheduler;
static uint32_t me, block_size, n_blocks, phase, epoch; /* the first phase since all threads met */
static int is_cooperative;
static char faults[MOST_FAULTS][240];
static uint64_t n_faults;

static void *reserve(size_t n) {
  void *found = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) { perror("emulated device: no address space"); exit(1); }
  return found;
}

__attribute__((constructor)) static void begin(void) {
  arena = reserve(ARENA);
  states = reserve(ARENA);
  visits = reserve(ARENA * sizeof(Visit));
  sectors = reserve(ARENA / SECTOR * sizeof(Sector));
}

/* Memory */

static int in_arena(const char *p) { return p >= arena && p < arena + ARENA; }

char *emu_alloc(size_t n) {
  size_t whole = (n + GAP - 1) / GAP * GAP + GAP;
  if (used + whole > ARENA) return 0;
  char *found = arena + used;
  used += whole;
  memset(found, 0xff, n); /* NaN, and no index */
  memset(states + (found - arena), EMPTY, n);
  return found;
}

void emu_free(char *p, size_t n) { if (in_arena(p)) memset(states + (p - arena), FREE, n); }

/* What the host writes. */
void emu_fill(char *p, size_t n) { if (in_arena(p)) memset(states + (p - arena), WRITTEN, n); }

uint8_t *emu_states(char *p) { return in_arena(p) ? states + (p - arena) : 0; }

/* Whether all of it belongs to an array. */
int emu_is_allocated(char *p, size_t n) {
  return n == 0 || (in_arena(p) && in_arena(p + n - 1) && !memchr(states + (p - arena), FREE, n));
}

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
    if (!on_stack(p)) fault(what, p, n, 0, 0);
    return 0;
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

static void wait_for_others(void) {
  Thread *self = running;
  swapcontext(&self->context, &scheduler);
  me = self->id;
}

uint32_t cudaCGSynchronize(uint64_t handle, uint32_t flags) {
  (void)handle, (void)flags;
  if (is_cooperative) wait_for_others();
  return 0;
}

static void barrier_of_block(void) {
  if (is_cooperative) fault("a barrier of a block in a cooperative launch, which is not emulated", arena, 0, 0, 0);
  else wait_for_others();
}

void barrier0(void) __asm__("emu.nvvm.barrier0");
void barrier0(void) { barrier_of_block(); }
void barrier_cta(int which) __asm__("emu.nvvm.barrier.cta.sync.aligned.all");
void barrier_cta(int which) { (void)which, barrier_of_block(); }

/* Launches */

static void run_thread(void) {
  kernel(arguments);
  running->done = 1; /* uc_link goes back to the scheduler */
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

/* Run n threads, the first of which is `first`, from barrier to barrier; they take turns in the
   order, anew after each. Returns 0 at a deadlock. */
static int run_threads(uint32_t first, uint32_t n, int order) {
  uint32_t done = 0;
  for (uint32_t i = 0; i < n; i++) {
    threads[i] = (Thread){.id = first + i};
    getcontext(&threads[i].context);
    threads[i].context.uc_stack.ss_sp = stacks + i * STACK;
    threads[i].context.uc_stack.ss_size = STACK;
    threads[i].context.uc_link = &scheduler;
    makecontext(&threads[i].context, run_thread, 0);
  }
  for (;;) {
    uint32_t *turns = order_of(n, order, phase);
    for (uint32_t k = 0; k < n; k++) {
      running = &threads[turns[k]];
      me = running->id;
      if (!running->done) swapcontext(&scheduler, &running->context);
    }
    free(turns);
    for (uint32_t i = done = 0; i < n; i++) done += threads[i].done;
    phase++;
    if (is_cooperative) epoch = phase;
    if (done) break;
    counts.barriers++;
  }
  if (done < n) fault("some threads ended while others wait at a barrier", arena, 0, 0, 0);
  return done == n;
}

int emu_launch(Kernel body, void **given, uint32_t grid, uint32_t block, int cooperative, int order, Counts *out) {
  uint32_t n = cooperative ? grid * block : block, *turns = order_of(grid, order, phase);
  int ended = 1;
  counts = (Counts){.threads = grid * block};
  kernel = body, arguments = given, n_blocks = grid, block_size = block, is_cooperative = cooperative;
  epoch = ++phase;
  stacks = reserve(n * STACK);
  threads = calloc(n, sizeof *threads);
  for (uint32_t k = 0; k < (cooperative ? 1 : grid); k++) ended &= run_threads(cooperative ? 0 : turns[k] * block, n, order);
  munmap(stacks, n * STACK);
  free(threads);
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
