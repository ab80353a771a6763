// Identifier: the name that a compiled model has in C.
#ifndef HEDDLE_PROGRAM_IDENTIFIER_H
#define HEDDLE_PROGRAM_IDENTIFIER_H

#include "compiler/program/Program.h"

namespace heddle::program {

/// "models/resnet50-v1.onnx": resnet50_v1. Always a C identifier; those that
/// begin with "h_" are a generated file's own, those with "_" the C compiler's.
std::string identifierOf(const Program &program);

} // namespace heddle::program

#endif // HEDDLE_PROGRAM_IDENTIFIER_H
