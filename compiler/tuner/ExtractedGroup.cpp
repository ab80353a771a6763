// ExtractedGroup: sizes and legal numbers for what a group reads, and its program under a choice.

#include "compiler/tuner/ExtractedGroup.h"

#include "compiler/graph/edit/Sizes.h"
#include "compiler/plan/Versions.h"
#include "compiler/support/Error.h"
#include "compiler/trial/Numbers.h"
#include "compiler/trial/Rounded.h"

#include <cmath>

using namespace mlir;

namespace heddle::tuner {

using graph::Dim;

ExtractedGroup::ExtractedGroup(graph::GroupOp group)
    : cut(graph::cutOut(group, graph::ownConstant)) {
  graph::GroupOp copy = cut.group();
  copy.clearChoice();
  copy.removeRegionAttr();
  for (Type type : copy->getResultTypes())
    elements.push_back(cast<RankedTensorType>(type).getElementType());
}

static llvm::Error checkType(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  if (element.isSignlessIntOrFloat() || element.isUnsignedInteger())
    return llvm::Error::success();
  return makeError(ErrorCode::Refused,
                   "it reads or makes strings, lists or packed numbers, which have no random ones");
}

/// Every symbol gets a size.
void ExtractedGroup::addSizes(const trial::Sizes &given) {
  graph::substituteSymbols(*cut.module, [&](StringRef symbol) -> std::optional<Dim> {
    auto known = given.find(symbol.str());
    sizes.try_emplace(symbol.str(), known == given.end() ? kNominalSize : known->second);
    return std::nullopt;
  });
}

static std::optional<int64_t> valueOf(const Dim &dim, const trial::Sizes &sizes) {
  return dim.evaluate([&](StringRef symbol) -> std::optional<int64_t> {
    auto known = sizes.find(symbol.str());
    return known == sizes.end() ? std::nullopt : std::optional(known->second);
  });
}

/// A program's inputs have numbers and symbols as sizes, but a group may read a tensor of 2 * w +
/// 1: it gets one of a symbol of its own, seen as one of 2 * w + 1. A symbol that is no input's
/// size alone gets an input that says it.
void ExtractedGroup::makeInputsPlain() {
  func::FuncOp main = cut.main();
  MLIRContext *context = main.getContext();
  OpBuilder builder = OpBuilder::atBlockBegin(&main.getBody().front());
  std::map<std::string, Dim> plain; // keyed by the text of the symbol that replaces it
  std::vector<std::string> alone, symbols;
  for (auto &[name, size] : sizes)
    symbols.push_back(name);
  for (BlockArgument argument : main.getArguments()) {
    graph::DimVector dims = graph::dimsOf(argument);
    for (Dim &dim : dims) {
      if (auto name = dim.symbolName())
        alone.push_back(*name);
      if (dim.constant() || dim.symbolName())
        continue;
      auto [known, isNew] =
          plain.try_emplace(dim.str(), Dim::symbol("$input." + std::to_string(plain.size())));
      if (isNew)
        sizes[*known->second.symbolName()] = valueOf(dim, sizes).value_or(-1);
      dim = known->second;
    }
    auto type = cast<RankedTensorType>(argument.getType());
    auto plainType = graph::tensorOf(context, dims, type.getElementType());
    if (plainType == type)
      continue;
    argument.setType(plainType);
    auto seen = builder.create<graph::ReshapeOp>(main.getLoc(), type, argument);
    argument.replaceAllUsesExcept(seen, seen);
  }
  for (const std::string &symbol : symbols)
    if (!llvm::is_contained(alone, symbol))
      main.getBody().front().addArgument(
          graph::tensorOf(context, Dim::symbol(symbol), builder.getI8Type()), main.getLoc());
  main.setType(
      builder.getFunctionType(main.getBody().front().getArgumentTypes(), main.getResultTypes()));
}

/// Whether `argument` is among what `value` follows from, inside of the group.
static bool follows(Value value, Value argument, llvm::SmallPtrSetImpl<Operation *> &seen) {
  if (value == argument)
    return true;
  Operation *op = value.getDefiningOp();
  return op && seen.insert(op).second && llvm::any_of(op->getOperands(), [&](Value operand) {
           return follows(operand, argument, seen);
         });
}

/// The sizes that an op's indices must be below, and the indices.
static std::pair<Value, graph::DimVector> indexedBy(Operation *op) {
  auto sizeAt = [](Value tensor, int64_t axis) {
    graph::DimVector dims = graph::dimsOf(tensor);
    return graph::DimVector{dims[axis < 0 ? axis + dims.size() : axis]};
  };
  return llvm::TypeSwitch<Operation *, std::pair<Value, graph::DimVector>>(op)
      .Case<graph::GatherOp, graph::GatherElementsOp, graph::ScatterElementsOp>([&](auto each) {
        return std::pair<Value, graph::DimVector>(each.getIndices(),
                                                  sizeAt(each.getX(), each.getAxis()));
      })
      .Case<graph::GatherNdOp, graph::ScatterNdOp>([&](auto each) {
        return std::pair<Value, graph::DimVector>(each.getIndices(), graph::dimsOf(each.getX()));
      })
      .Default([](Operation *) { return std::pair<Value, graph::DimVector>(); });
}

/// Whole numbers of more than 8 bits are indices below the least size that they may have to be
/// below, else 0 or 1, which is right for most other things that they may be.
void addRanges(func::FuncOp main, const trial::Sizes &sizes) {
  Builder builder(main.getContext());
  for (BlockArgument argument : main.getArguments()) {
    Type element = graph::elementOf(argument);
    if (!element.isIntOrIndex() || element.getIntOrFloatBitWidth() <= 8)
      continue;
    int64_t most = 1;
    bool isIndex = false;
    main.walk([&](Operation *op) {
      auto [indices, dims] = indexedBy(op);
      llvm::SmallPtrSet<Operation *, 16> seen;
      if (!indices || !follows(indices, argument, seen))
        return;
      for (const Dim &dim : dims) {
        int64_t size = valueOf(dim, sizes).value_or(1);
        most = isIndex ? std::min(most, size - 1) : size - 1;
        isIndex = true;
      }
    });
    main.setArgAttr(argument.getArgNumber(), "heddle.range",
                    builder.getI64ArrayAttr({0, std::max<int64_t>(0, most)}));
  }
}

llvm::Expected<std::unique_ptr<ExtractedGroup>>
ExtractedGroup::make(graph::GroupOp group, const trial::Sizes &sizes, uint64_t seed) {
  std::unique_ptr<ExtractedGroup> subject(new ExtractedGroup(group));
  func::FuncOp main = subject->cut.main();
  for (TypeRange types : {TypeRange(main.getArgumentTypes()), TypeRange(main.getResultTypes())})
    for (Type type : types)
      if (llvm::Error error = checkType(type))
        return std::move(error);
  subject->addSizes(sizes);
  subject->makeInputsPlain();
  addRanges(main, subject->sizes);
  trial::Random random(seed);
  auto numbers = trial::randomInputs(main, subject->sizes, random);
  if (!numbers)
    return makeError(ErrorCode::Refused, "a size is negative, or a tensor is too large to try");
  subject->numbers = std::move(*numbers);
  return subject;
}

llvm::Expected<std::unique_ptr<trial::Program>>
ExtractedGroup::compile(const plan::Choice &choice, const CompileOptions &options) {
  OwningOpRef<ModuleOp> module = cut.module->clone();
  graph::GroupOp group;
  module->walk([&](graph::GroupOp each) { group = each; });
  if (llvm::Error error = plan::applyChoice(choice, group))
    return std::move(error);
  return trial::Program::borrow(*module->getContext(), std::move(module), options);
}

/// Compiles the ops as a model of their own, which rounds as they say.
const RoundedResults &ExtractedGroup::rounded(const CompileOptions &options, double seconds) {
  if (known)
    return *known;
  known.emplace();
  CompileOptions plain;
  plain.target = options.target;
  plain.threads = options.threads;
  plain.jobs = options.jobs;
  plain.keepsSubnormals = plain.isStrict = true;
  trial::RoundedGroup group = trial::roundedFactors(*cut.module);
  SmallVector<Type> types = elements;
  types.append(group.bounds, Float32Type::get(cut.module->getContext()));
  auto compute = [&]() -> llvm::Error {
    auto program = trial::Program::whole(*cut.module->getContext(), std::move(group.module), plain);
    if (!program)
      return program.takeError();
    auto results = (*program)->runApart(numbers, types, static_cast<int64_t>(std::ceil(seconds)));
    if (!results)
      return results.takeError();
    known->slack = trial::slackOf(ArrayRef(*results).drop_front(elements.size()));
    if (!std::isfinite(known->slack))
      return makeError(ErrorCode::Refused, "its sums are not finite");
    results->resize(elements.size());
    known->results = std::move(*results);
    return llvm::Error::success();
  };
  if (llvm::Error error = compute())
    known->problem = "its numbers in bf16 are not known: " + llvm::toString(std::move(error));
  return *known;
}

} // namespace heddle::tuner
