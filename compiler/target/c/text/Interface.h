/* The model 'FILE' as C99, written by heddle. It needs libc and libm.
 *
 * Inputs:
 *   INPUTS
 * Outputs:
 *   OUTPUTS
 *
 * Fill in an array of inputs and one of outputs: of an input `data`, `bytes`, `dtype`, `rank` and
 * `dims`; of an output `data` and `bytes`, or NULL and 0 for one that shall lie in the arena; the
 * rest is 0. Then
 *
 * - model_arena_bytes says how much memory a run with these inputs needs (if all have data, with
 *   the sizes that values of inputs are; else without),
 * - model_run runs the model, and fills in all of the outputs but `data` and `bytes`, so that the
 *   same arrays serve the next run,
 * - model_run_seeded does so with a seed for the model's random numbers, which is 0 in model_run.
 *
 * Both return 0, or another number and a message. The arena is the caller's: memory of any
 * alignment, which the functions never free; what a run leaves in it is of no use but for outputs
 * that lie there, and these last until the next run in it. Outputs whose sizes are found only at
 * run time, and what the model makes of such sizes on its way, need more than model_arena_bytes
 * says. There are no other variables that change, so threads may run the model at once, each with
 * an arena of its own. Elements of fewer than 8 bits have a byte each. The machine has to be
 * little-endian.
 *
 * To have the declarations alone: define model_INTERFACE_ONLY, then include this file.
 */
#ifndef model_INTERFACE
#define model_INTERFACE

#include <stddef.h>
#include <stdint.h>

enum { model_INPUTS = 1, model_OUTPUTS = 1, model_MAX_RANK = 2, model_MESSAGE_BYTES = 512 };

typedef struct model_tensor {
  void *data;
  int64_t bytes; /* of the buffer */
  int32_t dtype; /* as onnx.TensorProto.DataType: 1 float32, 2 uint8, 3 int8, 7 int64 ... */
  int32_t rank;
  int64_t dims[model_MAX_RANK];
  void *result; /* where a run has put an output: `data`, or a place in the arena */
} model_tensor;

/* `message` has model_MESSAGE_BYTES bytes, or is NULL. */
int model_arena_bytes(const model_tensor *inputs, const model_tensor *outputs, int64_t *bytes,
                      char *message);
int model_run(const model_tensor *inputs, model_tensor *outputs, void *arena, int64_t arena_bytes,
              char *message);
int model_run_seeded(const model_tensor *inputs, model_tensor *outputs, void *arena,
                     int64_t arena_bytes, uint64_t seed, char *message);

#endif
