// Gradient: derivatives of a value of the graph with respect to others, at values that the node is
// given.

#include "compiler/grad/Gradients.h"
#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"

using namespace mlir;

namespace heddle::onnx {

template <typename T> static T orRefuse(llvm::Expected<T> value) {
  if (!value)
    refuse(llvm::toString(value.takeError()));
  return std::move(*value);
}

/// Operands are values of the tensors that 'xs' and then 'zs' name. If an operand is that tensor
/// itself, values computed from it are used again.
static void importGradient(Node &n) {
  std::vector<std::string> names = n.getTexts("xs"), others = n.getTexts("zs");
  if (names.empty() || !n.hasAttribute("y"))
    refuse("the attributes 'xs' and 'y' must be given");
  size_t count = names.size();
  names.insert(names.end(), others.begin(), others.end());
  if (n.inputs() != names.size())
    refuse("'xs' and 'zs' name " + Twine(names.size()) + " tensors, but there are " +
           Twine(n.inputs()) + " inputs");
  grad::Substituted at{n.reader.lookup(n.getText("y", ""), n.scope), {}};
  SmallVector<Value> tensors;
  for (const std::string &name : names)
    tensors.push_back(n.reader.lookup(name, n.scope));
  for (size_t i = 0; i < names.size(); ++i)
    at.variables.push_back(n.in(i));
  if (at.variables != tensors)
    at = orRefuse(grad::substitute(n.builder, n.location, at.y, tensors, at.variables));
  // The zs are independent too: nothing is followed through them.
  SmallVector<Value> xs;
  for (auto [i, variable] : llvm::enumerate(at.variables))
    if (i < count || isa<FloatType>(elementOf(variable)))
      xs.push_back(variable);
  SmallVector<Value> slopes = orRefuse(grad::gradients(n.builder, n.location, at.y, xs));
  for (auto [i, slope] : llvm::enumerate(ArrayRef<Value>(slopes).take_front(count)))
    if (n.wants(i))
      n.set(i, slope);
}

OpRows gradientRows() {
  static const OpRow rows[] = {
      {"Gradient", kTraining, 1, 1, importGradient, false,
       "max(x, 0) has slope 0 at 0; sequences and casts of bits have no derivative"},
  };
  return rows;
}

} // namespace heddle::onnx
