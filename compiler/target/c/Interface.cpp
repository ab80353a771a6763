// Interface: see Interface.h. The files of text/ are those of a model whose prefix is `model`.

#include "compiler/target/c/Interface.h"

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

static std::string replaced(std::string text, llvm::StringRef from, llvm::StringRef to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

static std::string withPrefix(const std::string &text, const std::string &prefix) {
  return replaced(text, "model_", prefix + "_");
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

/// The text for a comment, which it must not end.
static std::string plain(llvm::StringRef text) {
  std::string result;
  for (unsigned char c : text)
    result += c < 32 || c > 126 || c == '*' || c == '\\' || c == '?' || c == '/' ? '_' : char(c);
  return result;
}

static std::string listOf(const std::vector<program::Io> &ios, bool isInput) {
  std::string text;
  for (const auto &[i, io] : llvm::enumerate(ios)) {
    text += " *   " + std::to_string(i) + " '" + plain(io.name) + "' " +
            elementTypeOf(io.dtype)->name + " [";
    for (const auto &[j, dim] : llvm::enumerate(io.dims))
      text += (j ? ", " : "") + plain(dim.text);
    text += io.shares == int32_t(i) && isInput ? "], which the run writes\n" : "]\n";
  }
  return text;
}

std::string declarationsOf(const program::Program &program, const std::string &prefix) {
  size_t rank = 1;
  for (const auto *ios : {&program.inputs, &program.outputs})
    for (const program::Io &io : *ios)
      rank = std::max(rank, io.dims.size());
  std::string text =
      replaced(kInterfaceText, "model_INPUTS = 1, model_OUTPUTS = 1, model_MAX_RANK = 2",
               "model_INPUTS = " + std::to_string(program.inputs.size()) +
                   ", model_OUTPUTS = " + std::to_string(program.outputs.size()) +
                   ", model_MAX_RANK = " + std::to_string(rank));
  text = withPrefix(text + "\n#ifndef model_INTERFACE_ONLY\n\n" + kTablesText, prefix);
  text = replaced(text, "'FILE'", "'" + plain(llvm::sys::path::filename(program.model)) + "'");
  text = replaced(text, " *   INPUTS\n", listOf(program.inputs, true));
  return replaced(text, " *   OUTPUTS\n", listOf(program.outputs, false));
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
  std::string text = "\n" + tableOf(program.inputs, "inputs") + tableOf(program.outputs, "outputs");
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
  return withPrefix(kEntriesText, prefix) + "\n#endif\n";
}

} // namespace heddle::c
