// Words: names of nodes and operators from locations, as the importer writes them
// (onnx/Reader.cpp).

#include "compiler/graph/edit/Words.h"

using namespace mlir;

namespace heddle::graph {

/// The first named part that has another one inside, which begins with its operator: `Gemm(x, w)`.
static std::string operatorOf(Location location) {
  if (auto named = dyn_cast<NameLoc>(location))
    if (auto about = dyn_cast<NameLoc>(named.getChildLoc()))
      return about.getName().getValue().split('(').first.str();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (!sourceName(part).empty())
        return operatorOf(part);
  return "";
}

std::string nodeText(Location location) {
  std::string op = operatorOf(location);
  return "node '" + sourceName(location) + "'" + (op.empty() ? "" : " (" + op + ")");
}

std::string plainly(StringRef message) {
  if (message.starts_with("'graph."))
    message = message.substr(message.find("' op ") + 5);
  StringRef text = message.drop_while(llvm::isUpper);
  StringRef rest = text.drop_while(llvm::isDigit);
  bool isLabel = text.size() < message.size() && rest.size() < text.size();
  if (isLabel && rest.consume_front(": "))
    message = rest;
  return message.str();
}

} // namespace heddle::graph
