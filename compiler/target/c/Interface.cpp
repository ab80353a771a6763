// Interface: see Interface.h. `@` in the texts below stands for the model's prefix.

#include "compiler/target/c/Interface.h"

#include "llvm/Support/Path.h"

namespace heddle::c {

const ElementType *elementTypeOf(int32_t dtype) {
  static const std::map<int32_t, ElementType> types = {{1, {"float32", 4}},
                                                       {2, {"uint8", 1}},
                                                       {3, {"int8", 1}},
                                                       {4, {"uint16", 2}},
                                                       {5, {"int16", 2}},
                                                       {6, {"int32", 4}},
                                                       {7, {"int64", 8}},
                                                       {9, {"bool", 1}},
                                                       {10, {"float16", 2}},
                                                       {11, {"float64", 8}},
                                                       {12, {"uint32", 4}},
                                                       {13, {"uint64", 8}},
                                                       {16, {"bfloat16", 2}},
                                                       {17, {"float8e4m3fn", 1}},
                                                       {18, {"float8e4m3fnuz", 1}},
                                                       {19, {"float8e5m2", 1}},
                                                       {20, {"float8e5m2fnuz", 1}},
                                                       {21, {"uint4", 1}},
                                                       {22, {"int4", 1}},
                                                       {23, {"float4e2m1", 1}},
                                                       {25, {"uint2", 1}},
                                                       {26, {"int2", 1}}};
  auto found = types.find(dtype);
  return found == types.end() ? nullptr : &found->second;
}

static std::string withPrefix(llvm::StringRef text, const std::string &prefix) {
  std::string result;
  for (char c : text)
    if (c == '@')
      result += prefix;
    else
      result += c;
  return result;
}

/// A literal without trigraphs.
static std::string quoted(llvm::StringRef text) {
  std::string result = "\"";
  for (unsigned char c : text) {
    char octal[8];
    std::snprintf(octal, sizeof octal, "\\%03o", c);
    if (c == '"' || c == '\\' || c == '?')
      result += std::string("\\") + char(c);
    else if (c < 32 || c > 126)
      result += octal;
    else
      result += char(c);
  }
  return result + "\"";
}

/// For a comment, which it must not end.
static std::string plain(llvm::StringRef text) {
  std::string result;
  for (unsigned char c : text)
    result += c < 32 || c > 126 || c == '*' || c == '\\' || c == '?' || c == '/' ? '_' : char(c);
  return result;
}

static std::string listOf(const std::vector<program::Io> &ios) {
  std::string text;
  for (const auto &[i, io] : llvm::enumerate(ios)) {
    text += " *   " + std::to_string(i) + " '" + plain(io.name) + "' " +
            elementTypeOf(io.dtype)->name + " [";
    for (const auto &[j, dim] : llvm::enumerate(io.dims))
      text += (j ? ", " : "") + plain(dim.text);
    text += "]\n";
  }
  return text;
}

std::string declarationsOf(const program::Program &program, const std::string &prefix) {
  size_t rank = 1;
  for (const auto *ios : {&program.inputs, &program.outputs})
    for (const program::Io &io : *ios)
      rank = std::max(rank, io.dims.size());
  std::string name = plain(llvm::sys::path::filename(program.model));
  return withPrefix("/* The model '" + name +
                        "' as C99, written by heddle. It needs libc and libm.\n"
                        " *\n * Inputs:\n" +
                        listOf(program.inputs) + " * Outputs:\n" + listOf(program.outputs) + R"C( *
 * Fill in an array of inputs and one of outputs: of an input `data`, `bytes`, `dtype`, `rank` and
 * `dims`; of an output `data` and `bytes`, or NULL and 0 for one that shall lie in the arena; the
 * rest is 0. Then
 *
 *   @_arena_bytes  says how much memory a run with these inputs needs (if all have data, with the
 *                  sizes that values of inputs are; else without),
 *   @_run          runs the model, and fills in all of the outputs but `data` and `bytes`, so that
 *                  the same arrays serve the next run,
 *   @_run_seeded   does so with a seed for the model's random numbers, which is 0 in @_run.
 *
 * Both return 0, or another number and a message. The arena is the caller's: memory of any
 * alignment, which the functions never free; what a run leaves in it is of no use but for outputs
 * that lie there, and these last until the next run in it. Outputs whose sizes are found only at
 * run time, and what the model makes of such sizes on its way, need more than @_arena_bytes says.
 * There are no other variables that change, so threads may run the model at once, each with an
 * arena of its own.
 * Elements of fewer than 8 bits have a byte each. The machine has to be little-endian.
 *
 * To have the declarations alone: define @_INTERFACE_ONLY, then include this file.
 */
#ifndef @_INTERFACE
#define @_INTERFACE

#include <stddef.h>
#include <stdint.h>

enum { @_INPUTS = )C" + std::to_string(program.inputs.size()) +
                        ", @_OUTPUTS = " + std::to_string(program.outputs.size()) +
                        ", @_MAX_RANK = " + std::to_string(rank) + R"C(, @_MESSAGE_BYTES = 512 };

typedef struct @_tensor {
  void *data;
  int64_t bytes; /* of the buffer */
  int32_t dtype; /* as onnx.TensorProto.DataType: 1 float32, 2 uint8, 3 int8, 7 int64 ... */
  int32_t rank;
  int64_t dims[@_MAX_RANK];
  void *result; /* where a run has put an output: `data`, or a place in the arena */
} @_tensor;

/* `message` has @_MESSAGE_BYTES bytes, or is NULL. */
int @_arena_bytes(const @_tensor *inputs, const @_tensor *outputs, int64_t *bytes,
  char *message);
int @_run(const @_tensor *inputs, @_tensor *outputs, void *arena, int64_t arena_bytes,
  char *message);
int @_run_seeded(const @_tensor *inputs, @_tensor *outputs, void *arena, int64_t arena_bytes,
  uint64_t seed, char *message);

#endif

#ifndef @_INTERFACE_ONLY

#include <math.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "the weights are those of a little-endian machine"
#endif
#endif

enum { h_input_count = @_INPUTS, h_output_count = @_OUTPUTS };
typedef @_tensor h_tensor;
)C",
                    prefix);
}

static std::string weightsOf(const program::Weights &weights) {
  std::vector<char> bytes((weights.size + 7) / 8 * 8 + 8);
  for (const program::Weights::Piece &piece : weights.pieces)
    llvm::copy(piece.bytes, bytes.begin() + piece.offset);
  std::string text = "static const uint64_t h_weights[] = {";
  for (size_t i = 0; i + 8 < bytes.size() || i == 0; i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    char number[32];
    std::snprintf(number, sizeof number, "%s0x%llxu", i ? (i % 64 ? "," : ",\n") : "\n",
                  static_cast<unsigned long long>(word));
    text += number;
  }
  return text + "};\n\n";
}

static std::string tableOf(const std::vector<program::Io> &ios, const std::string &name) {
  std::string rows, dims;
  for (const program::Io &io : ios) {
    std::string shape;
    for (const program::IoDim &dim : io.dims) {
      shape += (shape.empty() ? "" : ", ") + dim.text;
      dims += "  {" + std::to_string(dim.value) + ", " + std::to_string(dim.symbol) + "},\n";
    }
    rows += "  {" + quoted(io.name) + ", " + quoted("[" + shape + "]") + ", " +
            std::to_string(io.dtype) + ", " + std::to_string(io.dims.size()) + ", " +
            std::to_string(elementTypeOf(io.dtype)->bytes) + "},\n";
  }
  std::string text =
      "static const h_io h_" + name + "[] = {\n" + rows + "  {\"\", \"\", 0, 0, 0}};\n";
  if (name == "inputs") // those of outputs come from the program
    text += "static const h_dim h_inputs_dims[] = {\n" + dims + "  {0, -1}};\n";
  return text;
}

std::string tablesOf(const program::Program &program) {
  std::string text = R"C(
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

)C";
  text += tableOf(program.inputs, "inputs") + tableOf(program.outputs, "outputs");
  text += "static const char *const h_messages[] = {\n";
  for (const std::string &message : program.messages)
    text += "  " + quoted(message) + ",\n";
  text += "  \"\"};\n";
  text += "static const char *const h_symbols[] = {\n";
  size_t outputs = 1;
  for (const program::Io &io : program.outputs)
    outputs += io.dims.size();
  for (const std::string &symbol : program.symbols)
    text += "  " + quoted(symbol) + ",\n";
  text += "  \"\"};\nenum { h_symbol_count = " + std::to_string(program.symbols.size()) +
          ", h_output_dim_count = " + std::to_string(outputs) + " };\n";
  return text + weightsOf(program.weights);
}

std::string entriesOf(const std::string &prefix) {
  return withPrefix(R"C(
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
      for (int32_t j = 0; j < input->rank && j < @_MAX_RANK; ++j) {
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

int @_arena_bytes(const @_tensor *inputs, const @_tensor *outputs, int64_t *bytes,
  char *message) {
  int64_t symbols[h_symbol_count + 1], dims[h_output_dim_count], first;
  h_text text;
  text.at = message;
  text.end = message ? message + @_MESSAGE_BYTES - 1 : NULL;
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

int @_run(const @_tensor *inputs, @_tensor *outputs, void *arena, int64_t arena_bytes,
  char *message) {
  return @_run_seeded(inputs, outputs, arena, arena_bytes, 0, message);
}

int @_run_seeded(const @_tensor *inputs, @_tensor *outputs, void *arena, int64_t arena_bytes,
  uint64_t seed, char *message) {
  int64_t symbols[h_symbol_count + 1], dims[h_output_dim_count], first, all, *dim = dims;
  unsigned char *ins[h_input_count + 1], *outs[h_output_count + 1], nothing[8] = {0};
  h_run run;
  h_text text;
  text.at = message;
  text.end = message ? message + @_MESSAGE_BYTES - 1 : NULL;
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

#endif
)C",
                    prefix);
}

} // namespace heddle::c
