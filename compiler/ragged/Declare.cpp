// Declare: from the option of the command line to graph.row_lengths.

#include "compiler/graph/edit/Build.h"
#include "compiler/ragged/Ragged.h"

using namespace mlir;

namespace heddle::ragged {

using graph::Build;
using graph::Dim;
using graph::DimVector;

static std::string nameOf(func::FuncOp main, unsigned input) {
  auto name = main.getArgAttrOfType<StringAttr>(input, "graph.name");
  return name ? name.str() : "";
}

/// Symbols that are sizes of inputs as they are.
static llvm::SetVector<StringRef> symbolsOf(func::FuncOp main,
                                            SmallVectorImpl<std::string> &names) {
  for (BlockArgument input : main.getArguments())
    for (const Dim &dim : graph::dimsOf(input))
      if (auto name = dim.symbolName())
        names.push_back(*name);
  return {names.begin(), names.end()};
}

llvm::Error declare(ModuleOp module, StringRef text, bool packs) {
  auto refused = [&](const Twine &why) {
    return makeError(ErrorCode::Usage, "error: '--ragged " + text + "': " + why);
  };
  auto [sizes, source] = text.split('=');
  auto [of, size] = sizes.split(':');
  if (of.empty() || size.empty() || source.empty())
    return refused("must name two sizes and the input of lengths, such as batch:seq=lengths");
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main.getOps<graph::RowLengthsOp>().empty())
    return refused("the model is ragged already; one '--ragged' is possible");
  SmallVector<std::string> names;
  auto symbols = symbolsOf(main, names);
  for (StringRef name : {of, size})
    if (!symbols.contains(name))
      return refused("no input has a size '" + name + "'; " +
                     (symbols.empty()
                          ? "all sizes of inputs are constant; make one dynamic, such as with "
                            "--shape x=?x?"
                          : "there are: " + llvm::join(symbols, ", ")));
  if (of == size)
    return refused("a size cannot depend on itself");
  DimVector lengths = {Dim::symbol(of)}, mask = {Dim::symbol(of), Dim::symbol(size)};
  MLIRContext *context = module.getContext();
  Type i64 = IntegerType::get(context, 64);
  Builder attributes(context);
  BlockArgument input;
  for (BlockArgument each : main.getArguments())
    if (nameOf(main, each.getArgNumber()) == source)
      input = each;
  if (!input) {
    auto named = attributes.getDictionaryAttr(
        attributes.getNamedAttr("graph.name", attributes.getStringAttr(source)));
    unsigned last = main.getNumArguments();
    main.insertArgument(last, graph::tensorOf(context, lengths, i64), named, main.getLoc());
    input = main.getArgument(last);
  }
  DimVector given = graph::dimsOf(input);
  Type element = graph::elementOf(input);
  bool isMask = given == mask && element.isIntOrFloat();
  if (!isMask && !(given == lengths && element.isIntOrIndex()))
    return refused("the input '" + source + "' is neither integers [" + of + "] nor a mask [" + of +
                   ", " + size + "]; another name makes a new input of lengths");
  OpBuilder builder = OpBuilder::atBlockBegin(&main.getBody().front());
  Location loc = NameLoc::get(builder.getStringAttr(source));
  auto bind = builder.create<graph::RowLengthsOp>(loc, graph::tensorOf(context, lengths, i64),
                                                  input, size, of, packs);
  if (isMask)
    input.replaceAllUsesExcept(Build(builder, loc).full(given, element, 1), bind);
  return llvm::Error::success();
}

} // namespace heddle::ragged
