// Interface: the file around the functions: its entries, inputs and outputs, and the weights.
#ifndef HEDDLE_TARGET_C_INTERFACE_H
#define HEDDLE_TARGET_C_INTERFACE_H

#include "compiler/program/Program.h"

namespace heddle::c {

struct ElementType {
  const char *name; // "float32"
  int64_t bytes;    // size of a caller's element; one of fewer bits takes a byte
};
/// The type of a number of onnx.TensorProto.DataType; null if C has none for it.
const ElementType *elementTypeOf(int32_t dtype);

/// The files of text/.
extern const char *const kInterfaceText, *const kTablesText, *const kEntriesText;

/// The comment that says how to use the file, the declarations, and types of the tables.
std::string declarationsOf(const program::Program &program, const std::string &prefix);
/// Tables that the functions read.
std::string tablesOf(const program::Program &program);
/// The definitions of the declared functions. They call h_heddle_program_*.
std::string entriesOf(const std::string &prefix);

} // namespace heddle::c

#endif // HEDDLE_TARGET_C_INTERFACE_H
