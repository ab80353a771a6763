// Write: the forms in which a compiled model leaves the process.

#include "compiler/api/Status.h"
#include "compiler/pipeline/Pipeline.h"

namespace heddle {

llvm::Error writeKind(const Compiled &compiled, int threads, llvm::StringRef kind,
                      llvm::StringRef path) {
  std::string text;
  if (kind == "graph")
    text = compiled.graphText;
  else if (kind == "loops")
    text = compiled.loopsText;
  else if (kind == "plan")
    text = compiled.planJson;
  else
    return makeError(ErrorCode::Usage, "error: cannot write '" + kind +
                                           "'\nnote: known: so, o, h, ll, asm, plan, graph, loops");
  std::error_code problem;
  llvm::raw_fd_ostream stream(path, problem);
  if (problem)
    return makeError(ErrorCode::Usage, "error: cannot write '" + path + "': " + problem.message());
  stream << text;
  return llvm::Error::success();
}

} // namespace heddle
