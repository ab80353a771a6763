/* custom_op.c: ops of a user's own, right and wrong ones, as custom_op_test.py builds them. */
#include <heddle/custom_op.h>

#include <stdlib.h>
#include <string.h>

static int64_t count(const heddle_custom_tensor_t *tensor) {
  int64_t all = 1;
  for (int32_t i = 0; i < tensor->rank; ++i)
    all *= tensor->dims[i];
  return all;
}

static int32_t sameShape(heddle_custom_call_t *call) {
  if (call->input_count != 1 || call->inputs[0].dtype != HEDDLE_FLOAT32)
    return 7;
  call->outputs[0] = call->inputs[0];
  return 0;
}

static int32_t scale(heddle_custom_call_t *call) {
  const char *text = strstr(call->attributes, "factor=");
  float factor = text ? strtof(text + strlen("factor="), NULL) : 1;
  const float *x = call->inputs[0].data;
  float *y = call->outputs[0].data;
  for (int64_t i = 0, all = count(call->inputs); i < all; ++i)
    y[i] = x[i] * factor;
  return 0;
}

/* Each row twice, and how many elements there are now. */
static int32_t doubledShape(heddle_custom_call_t *call) {
  call->outputs[0] = call->inputs[0];
  call->outputs[0].dims[0] *= 2;
  call->outputs[1] = (heddle_custom_tensor_t){.dtype = HEDDLE_INT64, .rank = 0};
  return 0;
}

static int32_t doubled(heddle_custom_call_t *call) {
  int64_t all = count(call->inputs), rows = call->inputs[0].dims[0], row = rows ? all / rows : 0;
  const float *x = call->inputs[0].data;
  float *y = call->outputs[0].data;
  for (int64_t i = 0; i < 2 * rows; ++i)
    memcpy(y + i * row, x + i / 2 * row, (size_t)row * sizeof *y);
  *(int64_t *)call->outputs[1].data = 2 * all;
  return 0;
}

static int32_t negativeShape(heddle_custom_call_t *call) {
  call->outputs[0] = call->inputs[0];
  call->outputs[0].dims[0] = -2;
  return 0;
}

static int32_t hugeShape(heddle_custom_call_t *call) {
  call->outputs[0] = call->inputs[0];
  call->outputs[0].dims[0] = INT64_C(1) << 62;
  return 0;
}

static int32_t stringShape(heddle_custom_call_t *call) {
  call->outputs[0] = call->inputs[0];
  call->outputs[0].dtype = HEDDLE_STRING;
  return 0;
}

/* Tells the run another rank than the compiler, which asks with large sizes. */
static int32_t fickleShape(heddle_custom_call_t *call) {
  call->outputs[0] = call->inputs[0];
  if (call->inputs[0].dims[0] < 1000)
    call->outputs[0].rank = 1;
  return 0;
}

static int32_t fails(heddle_custom_call_t *call) {
  (void)call;
  return 9;
}

static int32_t overruns(heddle_custom_call_t *call) {
  scale(call);
  ((float *)call->outputs[0].data)[count(call->outputs)] = 1;
  return 0;
}

static int32_t truthShape(heddle_custom_call_t *call) {
  call->outputs[0] = call->inputs[0];
  call->outputs[0].dtype = HEDDLE_BOOL;
  return 0;
}

static int32_t truth(heddle_custom_call_t *call) {
  memset(call->outputs[0].data, 0xff, (size_t)count(call->outputs));
  return 0;
}

#define OP(name, shape, compute)                                                                   \
  static const heddle_custom_op_t op##name = {                                                     \
      HEDDLE_CUSTOM_OP_VERSION, "org.example", #name, shape, compute, NULL};
OP(Scale, sameShape, scale)
OP(Doubled, doubledShape, doubled)
OP(Negative, negativeShape, scale)
OP(Huge, hugeShape, scale)
OP(Text, stringShape, scale)
OP(Fickle, fickleShape, scale)
OP(Fails, sameShape, fails)
OP(Overruns, sameShape, overruns)
OP(Truth, truthShape, truth)

const heddle_custom_op_t *const heddle_custom_ops[] = {
    &opScale,  &opDoubled, &opNegative, &opHuge,  &opText,
    &opFickle, &opFails,   &opOverruns, &opTruth, NULL};
