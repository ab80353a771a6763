/* custom.c: the service that calls an op of the user's own. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/library/custom.h"
#include "runtime/routine/routine.h"

#include <string.h>

static heddle_custom_tensor_t shown(const heddle_view_t *view) {
  heddle_custom_tensor_t tensor = {
      .dtype = (int32_t)view->dtype, .rank = (int32_t)view->rank, .data = view->data};
  memcpy(tensor.dims, view->dims, (size_t)view->rank * sizeof *view->dims);
  return tensor;
}

/* Asks for the shapes, makes room for the results, and has them computed. */
static heddle_custom_outcome_t run(heddle_call_t *call, const heddle_custom_op_t *op,
                                   heddle_custom_call_t *asked, heddle_view_t *results) {
  heddle_custom_outcome_t outcome = heddle_custom_shape(op, asked);
  for (int32_t i = 0; i < asked->output_count && !outcome.kind; ++i) {
    heddle_custom_tensor_t *output = &asked->outputs[i];
    if (output->dtype != results[i].dtype || output->rank != results[i].rank)
      return (heddle_custom_outcome_t){HEDDLE_CUSTOM_RESULT, i, output->rank};
    memcpy(results[i].dims, output->dims, (size_t)output->rank * sizeof *output->dims);
    output->data = heddle_routine_make(call, &results[i],
                                       heddle_custom_bytes(output) + HEDDLE_CUSTOM_GUARD, 1);
    if (!output->data)
      return outcome; /* which has been reported */
  }
  return outcome.kind ? outcome : heddle_custom_compute(op, asked);
}

void heddle_service_custom(heddle_call_t *call, int64_t *frame) {
  int64_t message = frame[0], results = frame[1], operands = frame[2];
  frame += 3;
  heddle_view_t *views = heddle_routine_alloc(call, results + 1, sizeof *views);
  heddle_custom_tensor_t *tensors =
      views ? heddle_routine_alloc(call, results + operands, sizeof *tensors) : NULL;
  if (!tensors)
    return;
  for (int64_t i = 0; i < results; ++i)
    views[i] = heddle_view_next(&frame);
  heddle_view_t about = heddle_view_next(&frame);
  for (int64_t i = 1; i < operands; ++i) {
    heddle_view_t operand = heddle_view_next(&frame);
    tensors[results + i] = shown(&operand);
  }
  const char *library = about.data, *domain = library + strlen(library) + 1,
             *name = domain + strlen(domain) + 1;
  heddle_custom_call_t asked = {name + strlen(name) + 1, tensors + results + 1, tensors,
                                (int32_t)operands - 1,   (int32_t)results,      NULL};
  const heddle_custom_op_t *op = heddle_custom_find(library, domain, name);
  heddle_custom_outcome_t outcome = {HEDDLE_CUSTOM_MISSING, 0, 0};
  if (op)
    outcome = run(call, op, &asked, views);
  if (outcome.kind)
    call->fail(call, message + outcome.kind - 1, outcome.value, outcome.limit);
}
