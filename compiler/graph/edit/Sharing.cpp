// Sharing: kept as attributes of the results.

#include "compiler/graph/edit/Sharing.h"

using namespace mlir;

namespace heddle::graph {

static std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::optional<unsigned> numberOf(StringRef name, ArrayRef<std::string> names) {
  auto found = llvm::find(names, name);
  return found == names.end() ? std::nullopt : std::optional<unsigned>(found - names.begin());
}

std::string setShared(ModuleOp module, ArrayRef<std::string> pairs) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  auto nameOf = [](DictionaryAttr attributes) {
    auto name = attributes ? attributes.getAs<StringAttr>("graph.name") : StringAttr();
    return name ? name.str() : std::string();
  };
  std::vector<std::string> inputs, outputs;
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    inputs.push_back(nameOf(main.getArgAttrDict(i)));
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    outputs.push_back(nameOf(main.getResultAttrDict(i)));
  std::map<unsigned, std::string> taken; // inputs, by what
  for (const std::string &pair : pairs) {
    auto [output, input] = StringRef(pair).split('=');
    auto refused = [&, output = output, input = input](const Twine &why) {
      return ("'--in-place " + output + "=" + input + "': " + why).str();
    };
    if (input.empty())
      return "'--in-place " + pair + "' must be an output and an input, such as new_state=state";
    auto from = numberOf(output, outputs), to = numberOf(input, inputs);
    if (!from)
      return refused("there is no output '" + output +
                     "'; there are: " + llvm::join(outputs, ", "));
    if (!to)
      return refused("there is no input '" + input + "'; there are: " + llvm::join(inputs, ", "));
    Type made = main.getResultTypes()[*from], given = main.getArgumentTypes()[*to];
    Type element = cast<RankedTensorType>(made).getElementType();
    if (isa<ListType>(element) || isString(element))
      return refused("strings and sequences are always allocated by the run");
    if (made != given)
      return refused("the output is " + textOf(made) + ", but the input " + textOf(given) +
                     "; they must have one type and equal sizes");
    auto [other, isNew] = taken.try_emplace(*to, output);
    if (!isNew && other->second != output)
      return refused("the input is the place of output '" + other->second + "' already");
    main.setResultAttr(*from, kShares, Builder(module.getContext()).getI64IntegerAttr(*to));
  }
  return "";
}

} // namespace heddle::graph
