/* Text that ends where the caller's buffer does. */
typedef struct h_text {
  char *at, *end;
} h_text;

static void h_add(h_text *text, const char *more) {
  for (; *more && text->at < text->end; ++more)
    *text->at++ = *more;
  if (text->at)
    *text->at = 0;
}

static void h_add_number(h_text *text, int64_t value) {
  char digits[24], *at = digits + sizeof digits - 1;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  *at = 0;
  do
    *--at = (char)('0' + (int)(rest % 10));
  while (rest /= 10);
  if (value < 0)
    *--at = '-';
  h_add(text, at);
}

/* `message` with its one or two numbers. */
static void h_add_message(h_text *text, const char *message, int64_t value, int64_t limit) {
  int64_t numbers[2];
  int used = 0;
  numbers[0] = value;
  numbers[1] = limit;
  while (*message) {
    char letter[2];
    if (!strncmp(message, "%lld", 4)) {
      h_add_number(text, numbers[used++ ? 1 : 0]);
      message += 4;
      continue;
    }
    if (!strncmp(message, "%%", 2))
      ++message;
    letter[0] = *message++;
    letter[1] = 0;
    h_add(text, letter);
  }
}

/* Bytes of a tensor, or -1 where they leave int64_t. */
static int64_t h_bytes(int32_t element, int32_t rank, const int64_t *dims) {
  int64_t bytes = element;
  for (int32_t i = 0; i < rank; ++i)
    if (dims[i] == 0)
      return 0;
  for (int32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0 || dims[i] > INT64_MAX / 2 / bytes)
      return -1;
    bytes *= dims[i];
  }
  return bytes;
}

static int h_wrong(h_text *text, const h_io *io, const char *what) {
  h_add(text, "input '");
  h_add(text, io->name);
  h_add(text, what);
  return 1;
}

/* Whether the inputs are as declared; their sizes. */
static int h_bind(const h_tensor *inputs, int withData, int64_t *symbols, h_text *text) {
  const h_dim *dim = h_inputs_dims;
  for (int i = 0; i < h_symbol_count; ++i)
    symbols[i] = -1;
  for (int i = 0; i < h_input_count; ++i) {
    const h_io *io = &h_inputs[i];
    const h_tensor *input = &inputs[i];
    int fits = input->rank == io->rank;
    int64_t bytes;
    if (input->dtype != io->dtype) {
      h_wrong(text, io, "': its dtype is ");
      h_add_number(text, input->dtype);
      h_add(text, ", but ");
      h_add_number(text, io->dtype);
      h_add(text, " is allowed");
      return 1;
    }
    for (int32_t j = 0; fits && j < io->rank; ++j)
      fits = input->dims[j] >= 0 && (dim[j].value < 0 || dim[j].value == input->dims[j]);
    if (!fits) {
      h_wrong(text, io, "': its shape is [");
      for (int32_t j = 0; j < input->rank && j < model_MAX_RANK; ++j) {
        h_add(text, j ? ", " : "");
        h_add_number(text, input->dims[j]);
      }
      h_add(text, "], but ");
      h_add(text, io->shape);
      h_add(text, " is allowed");
      return 1;
    }
    bytes = h_bytes(io->bytes, io->rank, input->dims);
    if (bytes < 0)
      return h_wrong(text, io, "': it is larger than an address space");
    for (int32_t j = 0; j < io->rank; ++j, ++dim) {
      if (dim->symbol < 0)
        continue;
      if (symbols[dim->symbol] < 0)
        symbols[dim->symbol] = input->dims[j];
      if (symbols[dim->symbol] == input->dims[j])
        continue;
      h_wrong(text, io, "': '");
      h_add(text, h_symbols[dim->symbol]);
      h_add(text, "' is ");
      h_add_number(text, input->dims[j]);
      h_add(text, ", but ");
      h_add_number(text, symbols[dim->symbol]);
      h_add(text, " in another place; they must agree");
      return 1;
    }
    if (withData && bytes > 0 && (!input->data || input->bytes < bytes)) {
      h_wrong(text, io, "': its buffer has ");
      h_add_number(text, input->data ? input->bytes : 0);
      h_add(text, " bytes, but its shape needs ");
      h_add_number(text, bytes);
      return 1;
    }
  }
  return 0;
}

/* Whether every input has its data. One without elements needs none. */
static int h_has_data(const h_tensor *inputs) {
  for (int i = 0; i < h_input_count; ++i) {
    int64_t bytes = h_bytes(h_inputs[i].bytes, inputs[i].rank, inputs[i].dims);
    if (bytes && (!inputs[i].data || inputs[i].bytes < bytes))
      return 0;
  }
  return 1;
}

static int64_t h_rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* Adds to what the arena needs. */
static int h_grow(int64_t *bytes, int64_t more, h_text *text) {
  if (more >= 0 && more < INT64_MAX / 4 && *bytes < INT64_MAX / 4) {
    *bytes = h_rounded(*bytes + more);
    return 0;
  }
  h_add(text, "a run with these sizes needs more memory than an address space has");
  return 1;
}

/* Bytes of the arena's first part, which the program divides, and of all of it. */
static int h_plan(const h_tensor *inputs, const h_tensor *outputs, int withData, int64_t *symbols,
                  int64_t *dims, int64_t *first, int64_t *all, h_text *text) {
  int64_t *dim = dims, values[2];
  unsigned char *ins[h_input_count + 1];
  h_run run;
  uint32_t failed;
  if (h_bind(inputs, withData, symbols, text))
    return 1;
  memset(&run, 0, sizeof run);
  run.symbols = (unsigned char *)symbols;
  run.inputs = (unsigned char *)ins;
  for (int i = 0; i < h_input_count; ++i)
    ins[i] = (unsigned char *)inputs[i].data;
  if ((withData || h_has_data(inputs)) && h_heddle_program_bind((unsigned char *)&run)) {
    h_add_message(text, h_messages[run.status - 1], run.value, run.limit);
    return 1;
  }
  *first = 0;
  failed = h_heddle_program_sizes((unsigned char *)symbols, (unsigned char *)first,
                                  (unsigned char *)dims, (unsigned char *)values);
  if (failed) {
    h_add_message(text, h_messages[failed - 1], values[0], values[1]);
    return 1;
  }
  for (int i = 0; i < h_symbol_count; ++i)
    symbols[i] = symbols[i] < 0 ? 0 : symbols[i];
  *all = 0;
  if (h_grow(all, *first, text))
    return 1;
  *first = *all;
  if (h_grow(all, (int64_t)h_heddle_program_scratch((unsigned char *)&run) + 63, text))
    return 1;
  for (int i = 0; i < h_output_count; dim += h_outputs[i++].rank) {
    int isKnown = 1;
    int64_t bytes;
    for (int32_t j = 0; j < h_outputs[i].rank; ++j)
      isKnown &= dim[j] >= 0;
    if (!isKnown)
      continue;
    bytes = h_bytes(h_outputs[i].bytes, h_outputs[i].rank, dim);
    if (!outputs[i].data) {
      if (h_grow(all, bytes < 0 ? bytes : bytes + 63, text))
        return 1;
    } else if (bytes < 0 || outputs[i].bytes < bytes) {
      h_add(text, "output '");
      h_add(text, h_outputs[i].name);
      h_add(text, "': its buffer has ");
      h_add_number(text, outputs[i].bytes);
      h_add(text, " bytes, but it needs ");
      h_add_number(text, bytes);
      return 1;
    }
  }
  return 0;
}

int model_arena_bytes(const model_tensor *inputs, const model_tensor *outputs, int64_t *bytes,
                      char *message) {
  int64_t symbols[h_symbol_count + 1], dims[h_output_dim_count], first;
  h_text text;
  text.at = message;
  text.end = message ? message + model_MESSAGE_BYTES - 1 : NULL;
  *bytes = 0;
  return h_plan(inputs, outputs, 0, symbols, dims, &first, bytes, &text);
}

/* Where the outputs go: the caller's buffers, or the arena. */
static void h_place(h_run *run, h_tensor *outputs, unsigned char **data, const int64_t *dim) {
  for (int i = 0; i < h_output_count; dim += h_outputs[i++].rank) {
    int isKnown = 1;
    int64_t bytes;
    data[i] = NULL;
    outputs[i].result = outputs[i].data;
    for (int32_t j = 0; j < h_outputs[i].rank; ++j)
      isKnown &= dim[j] >= 0;
    if (!isKnown)
      continue;
    bytes = h_bytes(h_outputs[i].bytes, h_outputs[i].rank, dim);
    if (!outputs[i].data) {
      outputs[i].result = run->next;
      run->next += h_rounded(bytes);
    }
    data[i] = (unsigned char *)outputs[i].result;
  }
}

/* Whether a tensor of the caller's has memory of the arena, as results of the run before do. */
static int h_lies_in(const h_tensor *tensor, const char *side, const char *name, const void *arena,
                     int64_t arena_bytes, h_text *text) {
  uintptr_t data = (uintptr_t)tensor->data, first = (uintptr_t)arena;
  if (!data || tensor->bytes <= 0 || arena_bytes <= 0 || data >= first + (uint64_t)arena_bytes ||
      first >= data + (uint64_t)tensor->bytes)
    return 0;
  h_add(text, side);
  h_add(text, name);
  h_add(text, "': its buffer lies in the arena, which the run overwrites; copy it out of there");
  return 1;
}

int model_run(const model_tensor *inputs, model_tensor *outputs, void *arena, int64_t arena_bytes,
              char *message) {
  return model_run_seeded(inputs, outputs, arena, arena_bytes, 0, message);
}

int model_run_seeded(const model_tensor *inputs, model_tensor *outputs, void *arena,
                     int64_t arena_bytes, uint64_t seed, char *message) {
  int64_t symbols[h_symbol_count + 1], dims[h_output_dim_count], first, all, *dim = dims;
  unsigned char *ins[h_input_count + 1], *outs[h_output_count + 1], nothing[8] = {0};
  h_run run;
  h_text text;
  text.at = message;
  text.end = message ? message + model_MESSAGE_BYTES - 1 : NULL;
  if (h_plan(inputs, outputs, 1, symbols, dims, &first, &all, &text))
    return 1;
  if (arena_bytes < all || (all && !arena)) {
    h_add(&text, "the arena has ");
    h_add_number(&text, arena ? arena_bytes : 0);
    h_add(&text, " bytes, but a run with these inputs needs ");
    h_add_number(&text, all);
    return 1;
  }
  for (int i = 0; i < h_input_count; ++i)
    if (h_lies_in(&inputs[i], "input '", h_inputs[i].name, arena, arena_bytes, &text))
      return 1;
  for (int i = 0; i < h_output_count; ++i)
    if (h_lies_in(&outputs[i], "output '", h_outputs[i].name, arena, arena_bytes, &text))
      return 1;
  memset(&run, 0, sizeof run);
  run.arena = (unsigned char *)arena;
  run.next = run.arena + first;
  run.end = run.arena + arena_bytes;
  run.given = outputs;
  run.seed = seed;
  run.inputs = (unsigned char *)ins;
  run.outputs = (unsigned char *)outs;
  run.symbols = (unsigned char *)symbols;
  run.output_dims = (unsigned char *)dims;
  run.weights = (unsigned char *)(uintptr_t)h_weights;
  for (int i = 0; i < h_input_count; ++i)
    ins[i] = inputs[i].data ? (unsigned char *)inputs[i].data : nothing;
  h_place(&run, outputs, outs, dims);
  h_heddle_program_run((unsigned char *)&run);
  if (run.status == H_NO_MEMORY) {
    h_add_message(&text,
                  "the arena is too small: sizes known only at run time need %lld bytes more, of "
                  "which it has %lld",
                  run.value, run.limit);
  } else if (run.status == H_SMALL_OUTPUT) {
    h_add_message(&text, "an output needs %lld bytes, but its buffer has %lld", run.value,
                  run.limit);
  } else if (run.status) {
    h_add_message(&text, h_messages[run.status - 1], run.value, run.limit);
  }
  if (run.status)
    return 1;
  for (int i = 0; i < h_output_count; ++i) {
    outputs[i].dtype = h_outputs[i].dtype;
    outputs[i].rank = h_outputs[i].rank;
    for (int32_t j = 0; j < h_outputs[i].rank; ++j)
      outputs[i].dims[j] = *dim++;
  }
  return 0;
}
