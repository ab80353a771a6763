/* Types of the tables and of a run. */
#include <math.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "the weights are those of a little-endian machine"
#endif
#endif

enum { h_input_count = model_INPUTS, h_output_count = model_OUTPUTS };
typedef model_tensor h_tensor;

typedef struct h_io {
  const char *name, *shape;
  int32_t dtype, rank, bytes;
} h_io;

typedef struct h_dim {
  int64_t value, symbol; /* value: -1 where it is not constant; symbol: -1 where it has no name */
} h_dim;

/* One run; the program has its address. */
typedef struct h_run {
  unsigned char *arena, *inputs, *outputs, *symbols, *output_dims, *weights;
  unsigned char *next, *end; /* of what is free in the arena */
  h_tensor *given;           /* outputs */
  uint64_t seed;             /* of random numbers */
  int32_t status;            /* 0, 1 + the number of a message, or one of those below */
  int64_t value, limit;
} h_run;

enum { H_NO_MEMORY = -1, H_SMALL_OUTPUT = -2 };
