/* primitives.c: shapes and posts of a call as descriptors of oneDNN.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/library/primitives.h"

#include "runtime/base/tensor.h"

#include <stdlib.h>
#include <string.h>

/* DNNL_ARG_* of a function's own operands; those of posts follow them. */
static const struct {
  int count, arguments[4];
} kFunctions[HEDDLE_FUNCTION_COUNT] = {
    [HEDDLE_FUNCTION_MATMUL] = {3, {DNNL_ARG_DST, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS}},
    [HEDDLE_FUNCTION_CONVOLUTION] = {3, {DNNL_ARG_DST, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS}},
    [HEDDLE_FUNCTION_LAYER_NORM] = {4,
                                    {DNNL_ARG_DST, DNNL_ARG_SRC, DNNL_ARG_SCALE, DNNL_ARG_SHIFT}},
};

static dnnl_status_t describe(const heddle_onednn_t *dnnl, const heddle_operand_t *operand,
                              dnnl_memory_desc_t *desc) {
  return dnnl->dnnl_memory_desc_init_by_strides(desc, (int)operand->rank, operand->dims, dnnl_f32,
                                                operand->strides);
}

static dnnl_status_t appendPosts(const heddle_onednn_t *dnnl, const heddle_library_call_t *call,
                                 const dnnl_memory_desc_t *descs, dnnl_post_ops_t posts,
                                 heddle_prepared_t *prepared) {
  static const dnnl_alg_kind_t kBinary[HEDDLE_POST_COUNT] = {
      [HEDDLE_POST_ADD] = dnnl_binary_add,
      [HEDDLE_POST_SUB] = dnnl_binary_sub,
      [HEDDLE_POST_MUL] = dnnl_binary_mul,
      [HEDDLE_POST_DIV] = dnnl_binary_div,
  };
  int operand = kFunctions[call->function].count;
  dnnl_status_t status = dnnl_success;
  for (int i = 0; i < call->post_count && status == dnnl_success; ++i) {
    if (call->posts[i] == HEDDLE_POST_GELU) {
      status = dnnl->dnnl_post_ops_append_eltwise(posts, 1, dnnl_eltwise_gelu_erf, 0, 0);
      continue;
    }
    prepared->arguments[operand] = DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1;
    status = dnnl->dnnl_post_ops_append_binary(posts, kBinary[call->posts[i]], &descs[operand++]);
  }
  return status;
}

typedef union description {
  dnnl_matmul_desc_t matmul;
  dnnl_convolution_desc_t convolution;
  dnnl_layer_normalization_desc_t norm;
} description_t;

static dnnl_status_t describeFunction(const heddle_onednn_t *dnnl,
                                      const heddle_library_call_t *call, dnnl_memory_desc_t *wanted,
                                      description_t *made) {
  if (call->function == HEDDLE_FUNCTION_MATMUL)
    return dnnl->dnnl_matmul_desc_init(&made->matmul, &wanted[1], &wanted[2], NULL, &wanted[0]);
  if (call->function == HEDDLE_FUNCTION_LAYER_NORM)
    return dnnl->dnnl_layer_normalization_forward_desc_init(&made->norm, dnnl_forward_inference,
                                                            &wanted[1], NULL, (float)call->real,
                                                            dnnl_use_scale | dnnl_use_shift);
  dnnl_dims_t strides, low, high, dilations;
  for (int d = 0; d < call->number_count / 4; ++d) {
    strides[d] = call->numbers[4 * d];
    low[d] = call->numbers[4 * d + 1];
    high[d] = call->numbers[4 * d + 2];
    dilations[d] = call->numbers[4 * d + 3] - 1;
  }
  return dnnl->dnnl_dilated_convolution_forward_desc_init(
      &made->convolution, dnnl_forward_inference, dnnl_convolution_direct, &wanted[1], &wanted[2],
      NULL, &wanted[0], strides, dilations, low, high);
}

static dnnl_status_t execute(const heddle_onednn_t *dnnl, dnnl_primitive_t primitive, int count,
                             const dnnl_exec_arg_t *arguments) {
  dnnl_stream_t stream;
  dnnl_status_t status = dnnl->dnnl_stream_create(&stream, dnnl->engine, dnnl_stream_default_flags);
  if (status != dnnl_success)
    return status;
  status = dnnl->dnnl_primitive_execute(primitive, stream, count, arguments);
  if (status == dnnl_success)
    status = dnnl->dnnl_stream_wait(stream);
  dnnl->dnnl_stream_destroy(stream);
  return status;
}

static dnnl_status_t reorder(const heddle_onednn_t *dnnl, const dnnl_memory_desc_t *from,
                             void *source, const dnnl_memory_desc_t *to, void *target) {
  dnnl_primitive_desc_t description = NULL;
  dnnl_primitive_t primitive = NULL;
  dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
  dnnl_status_t status = dnnl->dnnl_reorder_primitive_desc_create(&description, from, dnnl->engine,
                                                                  to, dnnl->engine, NULL);
  if (status == dnnl_success)
    status = dnnl->dnnl_primitive_create(&primitive, description);
  if (status == dnnl_success)
    status = dnnl->dnnl_memory_create(&arguments[0].memory, from, dnnl->engine, source);
  if (status == dnnl_success)
    status = dnnl->dnnl_memory_create(&arguments[1].memory, to, dnnl->engine, target);
  if (status == dnnl_success)
    status = execute(dnnl, primitive, 2, arguments);
  for (int i = 0; i < 2; ++i)
    if (arguments[i].memory)
      dnnl->dnnl_memory_destroy(arguments[i].memory);
  if (primitive)
    dnnl->dnnl_primitive_destroy(primitive);
  if (description)
    dnnl->dnnl_primitive_desc_destroy(description);
  return status;
}

/* The weight in the layout of `desc`, which the first shape that wants it makes. */
static dnnl_status_t weightFor(const heddle_onednn_t *dnnl, const dnnl_memory_desc_t *plain,
                               void *source, int operand, const dnnl_memory_desc_t *desc,
                               heddle_weight_t **weights, void **result) {
  for (heddle_weight_t *known = *weights; known; known = known->next)
    if (known->operand == operand && dnnl->dnnl_memory_desc_equal(&known->desc, desc)) {
      *result = known->data;
      return dnnl_success;
    }
  heddle_weight_t *made = calloc(1, sizeof *made);
  if (made)
    made->data = heddle_memory_allocate((int64_t)dnnl->dnnl_memory_desc_get_size(desc));
  dnnl_status_t status =
      made && made->data ? reorder(dnnl, plain, source, desc, made->data) : dnnl_out_of_memory;
  if (status != dnnl_success) {
    if (made)
      free(made->data);
    free(made);
    return status;
  }
  made->operand = operand;
  made->desc = *desc;
  made->next = *weights;
  *weights = made;
  *result = made->data;
  return dnnl_success;
}

static dnnl_status_t createPrimitive(const heddle_onednn_t *dnnl, const description_t *function,
                                     dnnl_post_ops_t posts, dnnl_primitive_desc_t *description,
                                     dnnl_primitive_t *primitive) {
  dnnl_primitive_attr_t attributes;
  dnnl_status_t status = dnnl->dnnl_primitive_attr_create(&attributes);
  if (status != dnnl_success)
    return status;
  /* Memory of the run, so that any number of runs go on at once. */
  status = dnnl->dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
  if (status == dnnl_success)
    status = dnnl->dnnl_primitive_attr_set_post_ops(attributes, posts);
  if (status == dnnl_success)
    status =
        dnnl->dnnl_primitive_desc_create(description, function, attributes, dnnl->engine, NULL);
  if (status == dnnl_success)
    status = dnnl->dnnl_primitive_create(primitive, *description);
  dnnl->dnnl_primitive_attr_destroy(attributes);
  return status;
}

dnnl_status_t heddle_primitive_make(const heddle_onednn_t *dnnl, const heddle_library_call_t *call,
                                    const heddle_operand_t *operands, heddle_weight_t **weights,
                                    heddle_prepared_t *prepared) {
  dnnl_memory_desc_t wanted[HEDDLE_MOST_OPERANDS];
  dnnl_status_t status = dnnl_success;
  int own = kFunctions[call->function].count;
  memcpy(prepared->arguments, kFunctions[call->function].arguments, (size_t)own * sizeof(int));
  prepared->operand_count = call->operand_count;
  for (int i = 0; i < call->operand_count && status == dnnl_success; ++i) {
    status = describe(dnnl, &operands[i], &prepared->descs[i]);
    wanted[i] = prepared->descs[i];
  }
  bool isFree =
      call->function != HEDDLE_FUNCTION_LAYER_NORM && (call->constants & 4) && operands[2].data;
  if (isFree && status == dnnl_success)
    status = dnnl->dnnl_memory_desc_init_by_tag(&wanted[2], (int)operands[2].rank, operands[2].dims,
                                                dnnl_f32, dnnl_format_tag_any);
  dnnl_post_ops_t posts = NULL;
  description_t function;
  dnnl_primitive_desc_t description = NULL;
  if (status == dnnl_success)
    status = dnnl->dnnl_post_ops_create(&posts);
  if (status == dnnl_success)
    status = appendPosts(dnnl, call, wanted, posts, prepared);
  if (status == dnnl_success)
    status = describeFunction(dnnl, call, wanted, &function);
  if (status == dnnl_success)
    status = createPrimitive(dnnl, &function, posts, &description, &prepared->primitive);
  if (status == dnnl_success) {
    prepared->scratch =
        *dnnl->dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
    prepared->scratch_bytes = (int64_t)dnnl->dnnl_memory_desc_get_size(&prepared->scratch);
  }
  if (isFree && status == dnnl_success) {
    const dnnl_memory_desc_t *chosen =
        dnnl->dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0);
    if (!dnnl->dnnl_memory_desc_equal(chosen, &prepared->descs[2])) {
      status = weightFor(dnnl, &prepared->descs[2], operands[2].data, 2, chosen, weights,
                         &prepared->weights[2]);
      prepared->descs[2] = *chosen;
    }
  }
  if (description)
    dnnl->dnnl_primitive_desc_destroy(description);
  if (posts)
    dnnl->dnnl_post_ops_destroy(posts);
  return status;
}

dnnl_status_t heddle_primitive_run(const heddle_onednn_t *dnnl, const heddle_prepared_t *prepared,
                                   const heddle_operand_t *operands, char *scratch) {
  dnnl_exec_arg_t arguments[HEDDLE_MOST_OPERANDS + 1] = {{0}};
  int count = 0;
  dnnl_status_t status = dnnl_success;
  for (int i = 0; i < prepared->operand_count && status == dnnl_success; ++i) {
    void *data = prepared->weights[i] ? prepared->weights[i] : operands[i].data;
    arguments[count].arg = prepared->arguments[i];
    status =
        dnnl->dnnl_memory_create(&arguments[count].memory, &prepared->descs[i], dnnl->engine, data);
    count += status == dnnl_success;
  }
  if (prepared->scratch_bytes && status == dnnl_success) {
    arguments[count].arg = DNNL_ARG_SCRATCHPAD;
    status = dnnl->dnnl_memory_create(&arguments[count].memory, &prepared->scratch, dnnl->engine,
                                      scratch);
    count += status == dnnl_success;
  }
  if (status == dnnl_success)
    status = execute(dnnl, prepared->primitive, count, arguments);
  for (int i = 0; i < count; ++i)
    dnnl->dnnl_memory_destroy(arguments[i].memory);
  return status;
}
