// Identifier: see Identifier.h.

#include "compiler/program/Identifier.h"

#include "llvm/Support/Path.h"

namespace heddle::program {

std::string identifierOf(const Program &program) {
  std::string name = llvm::sys::path::stem(program.model).str();
  for (char &c : name)
    if (!llvm::isAlnum(c) && c != '_')
      c = '_';
  llvm::StringRef start = name;
  bool isReserved = start.starts_with("_");
  for (llvm::StringRef ours : {"h", "heddle"}) // begin names of the generated code and of the API
    isReserved |= start == ours || start.starts_with((ours + "_").str());
  if (isReserved || name.empty() || llvm::isDigit(name[0]))
    name = "model_" + name;
  return name;
}

} // namespace heddle::program
