// onednn: layers of oneDNN 2 for bench/kernels/onednn.py, and loops that time them and sessions of
// Heddle.
//
// A layer owns its tensors in whatever layouts the primitive likes best: plain data is brought into
// them once and taken out once, outside of what is timed. Loops are here so that no Python is.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <oneapi/dnnl/dnnl.h>

enum { MAX_TENSORS = 4, SPATIAL = 2 };

typedef struct layer {
  dnnl_primitive_t primitive;
  int count;
  dnnl_exec_arg_t tensors[MAX_TENSORS];
  dnnl_memory_desc_t plain[MAX_TENSORS]; // in the order of tensors: the layout of the caller's data
  char name[128];
} layer_t;

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static int open_engine(void) {
  return engine || (!dnnl_engine_create(&engine, dnnl_cpu, 0) &&
                    !dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
}

void layer_destroy(layer_t *layer) {
  for (int i = 0; i < layer->count; ++i)
    dnnl_memory_destroy(layer->tensors[i].memory);
  if (layer->primitive)
    dnnl_primitive_destroy(layer->primitive);
  free(layer);
}

static int add_tensor(layer_t *layer, int argument, const dnnl_memory_desc_t *liked,
                      const dnnl_memory_desc_t *plain) {
  dnnl_exec_arg_t *tensor = &layer->tensors[layer->count];
  tensor->arg = argument;
  if (dnnl_memory_create(&tensor->memory, liked, engine, DNNL_MEMORY_ALLOCATE))
    return 0;
  layer->plain[layer->count++] = *plain;
  return 1;
}

// Tensors: source, weights, result, and a bias where there is one. NULL: oneDNN has no such layer.
static layer_t *make_layer(const_dnnl_op_desc_t op, const dnnl_memory_desc_t plain[MAX_TENSORS],
                           int has_bias) {
  static const int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  static const dnnl_query_t queries[] = {dnnl_query_src_md, dnnl_query_weights_md,
                                         dnnl_query_dst_md};
  dnnl_primitive_desc_t description;
  if (dnnl_primitive_desc_create(&description, op, NULL, engine, NULL))
    return NULL;
  layer_t *layer = calloc(1, sizeof(*layer));
  const char *name = "";
  dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, &name);
  strncpy(layer->name, name, sizeof(layer->name) - 1);
  int ok = !dnnl_primitive_create(&layer->primitive, description);
  for (int i = 0; ok && i < 3; ++i)
    ok = add_tensor(layer, arguments[i], dnnl_primitive_desc_query_md(description, queries[i], 0),
                    &plain[i]);
  ok = ok && (!has_bias || add_tensor(layer, DNNL_ARG_BIAS, &plain[3], &plain[3]));
  dnnl_primitive_desc_destroy(description);
  if (ok)
    return layer;
  layer_destroy(layer);
  return NULL;
}

static int describe(dnnl_memory_desc_t *md, int rank, const int64_t *sizes, dnnl_format_tag_t tag) {
  return !dnnl_memory_desc_init_by_tag(md, rank, sizes, dnnl_f32, tag);
}

// A convolution with a bias. `images`, `filters` (oihw, or goihw where there are groups) and
// `results` are sizes; `layout` is that of images: 0 whatever oneDNN likes, 1 channels last.
layer_t *layer_convolution(const int64_t *images, const int64_t *filters, int filter_rank,
                           const int64_t *results, const int64_t *strides, const int64_t *dilations,
                           const int64_t *pads, int algorithm, int layout) {
  static const dnnl_alg_kind_t algorithms[] = {dnnl_convolution_direct, dnnl_convolution_winograd,
                                               dnnl_convolution_auto};
  dnnl_memory_desc_t plain[MAX_TENSORS], liked[MAX_TENSORS];
  dnnl_format_tag_t tag = layout ? dnnl_nhwc : dnnl_format_tag_any;
  int grouped = filter_rank == 2 + SPATIAL + 1;
  dnnl_dims_t gaps = {dilations[0] - 1, dilations[1] - 1};
  if (!open_engine() || !describe(&plain[0], 4, images, dnnl_nchw) ||
      !describe(&plain[1], filter_rank, filters, grouped ? dnnl_goihw : dnnl_oihw) ||
      !describe(&plain[2], 4, results, dnnl_nchw) || !describe(&plain[3], 1, &results[1], dnnl_x) ||
      !describe(&liked[0], 4, images, tag) ||
      !describe(&liked[1], filter_rank, filters, dnnl_format_tag_any) ||
      !describe(&liked[2], 4, results, tag))
    return NULL;
  dnnl_convolution_desc_t op;
  if (dnnl_dilated_convolution_forward_desc_init(&op, dnnl_forward_inference, algorithms[algorithm],
                                                 &liked[0], &liked[1], &plain[3], &liked[2],
                                                 strides, gaps, pads, pads + SPATIAL))
    return NULL;
  return make_layer(&op, plain, 1);
}

// results[m, n] = images[m, k] weights[k, n]. `form`: 0 the primitive matmul, 1 the inner product,
// each of plain sources and results; 2 and 3 the same with layouts that oneDNN likes for all.
layer_t *layer_matmul(int64_t m, int64_t k, int64_t n, int form) {
  const dnnl_dims_t source = {m, k}, weights = {k, n}, turned = {n, k}, result = {m, n};
  dnnl_memory_desc_t plain[MAX_TENSORS], liked[3];
  dnnl_format_tag_t tag = form > 1 ? dnnl_format_tag_any : dnnl_ab;
  int inner = form % 2;
  if (!open_engine() || !describe(&plain[0], 2, source, dnnl_ab) ||
      !describe(&plain[1], 2, inner ? turned : weights, inner ? dnnl_ba : dnnl_ab) ||
      !describe(&plain[2], 2, result, dnnl_ab) || !describe(&liked[0], 2, source, tag) ||
      !describe(&liked[1], 2, inner ? turned : weights, dnnl_format_tag_any) ||
      !describe(&liked[2], 2, result, tag))
    return NULL;
  dnnl_inner_product_desc_t product;
  dnnl_matmul_desc_t matmul;
  if (inner)
    return dnnl_inner_product_forward_desc_init(&product, dnnl_forward_inference, &liked[0],
                                                &liked[1], NULL, &liked[2])
               ? NULL
               : make_layer(&product, plain, 0);
  return dnnl_matmul_desc_init(&matmul, &liked[0], &liked[1], NULL, &liked[2])
             ? NULL
             : make_layer(&matmul, plain, 0);
}

const char *layer_name(const layer_t *layer) { return layer->name; }

// Copies plain data into tensor `index` (0 source, 1 weights, 3 bias), or the result (2) out of it.
int layer_copy(layer_t *layer, int index, float *data) {
  dnnl_memory_t plain, held = layer->tensors[index].memory;
  const dnnl_memory_desc_t *liked;
  dnnl_primitive_desc_t description;
  dnnl_primitive_t reorder;
  int is_result = index == 2;
  if (dnnl_memory_get_memory_desc(held, &liked) ||
      dnnl_memory_create(&plain, &layer->plain[index], engine, data))
    return 0;
  const dnnl_memory_desc_t *from = is_result ? liked : &layer->plain[index];
  const dnnl_memory_desc_t *to = is_result ? &layer->plain[index] : liked;
  if (dnnl_reorder_primitive_desc_create(&description, from, engine, to, engine, NULL) ||
      dnnl_primitive_create(&reorder, description))
    return 0;
  dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, is_result ? held : plain},
                                 {DNNL_ARG_TO, is_result ? plain : held}};
  int ok = !dnnl_primitive_execute(reorder, stream, 2, arguments) && !dnnl_stream_wait(stream);
  dnnl_primitive_destroy(reorder);
  dnnl_primitive_desc_destroy(description);
  dnnl_memory_destroy(plain);
  return ok;
}

// Times few, long runs by the thread's own time: other processes may have the core for a part of
// one. Reading it is a system call, too much beside a short run.
static clockid_t clock_for(int runs) {
  return runs < 100 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
}

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Runs the layer and keeps the seconds of each run; 0 when one fails.
int layer_time(layer_t *layer, int runs, double *seconds) {
  clockid_t clock = clock_for(runs);
  for (int i = 0; i < runs; ++i) {
    double begin = now(clock);
    if (dnnl_primitive_execute(layer->primitive, stream, layer->count, layer->tensors) ||
        dnnl_stream_wait(stream))
      return 0;
    seconds[i] = now(clock) - begin;
  }
  return 1;
}

// Times heddle_session_run, which the caller passes with its arguments.
typedef void *(*session_run_t)(void *, const void *, size_t, void *, size_t);

int session_time(session_run_t run, void *session, const void *inputs, size_t input_count,
                 void *outputs, size_t output_count, int runs, double *seconds) {
  clockid_t clock = clock_for(runs);
  for (int i = 0; i < runs; ++i) {
    double begin = now(clock);
    if (run(session, inputs, input_count, outputs, output_count))
      return 0;
    seconds[i] = now(clock) - begin;
  }
  return 1;
}
