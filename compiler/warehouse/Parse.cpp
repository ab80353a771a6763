// Parse: the text of a card -> Card, with every problem said at the line where it is.

#include "compiler/support/Error.h"
#include "compiler/support/Suggest.h"
#include "compiler/warehouse/Builtin.h"
#include "compiler/warehouse/Card.h"
#include "compiler/warehouse/Limits.h"
#include "compiler/warehouse/ParseKernel.h"
#include "compiler/warehouse/TransformOps.h"

#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"
#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;

namespace heddle::warehouse {

namespace {
/// The folders below schedules/.
SmallVector<StringRef> knownTargets() {
  SmallVector<StringRef> names;
  for (const BuiltinCard &card : builtinCards()) {
    StringRef folder = llvm::sys::path::filename(llvm::sys::path::parent_path(card.path));
    if (!llvm::is_contained(names, folder))
      names.push_back(folder);
  }
  return names;
}

constexpr StringLiteral kFields[] = {"target", "priority", "key", "nest",     "moves",    "parts",
                                     "dtypes", "min",      "max", "prologue", "epilogue", "math"};

class CardParser {
public:
  CardParser(MLIRContext &context, StringRef text, StringRef path)
      : context(context), text(text), path(path) {}

  llvm::Expected<Card> parse() {
    card.path = path.str();
    card.text = text.str();
    card.name = llvm::sys::path::stem(path).str();
    card.hash =
        llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), true).substr(0, 16);
    if (std::string problem = limitProblem(text); !problem.empty())
      return makeError(ErrorCode::Usage, path + problem);
    readModule();
    if (problems.empty())
      checkOps();
    if (problems.empty())
      readFields();
    if (problems.empty())
      readSchedule();
    if (problems.empty() && card.mechanism->type == mechanism::CardType::Kernel)
      for (auto &[location, what] : readKernel(card))
        complain(location, what);
    if (card.module)
      checkHandles();
    if (!problems.empty())
      return makeError(ErrorCode::Usage, llvm::join(problems, "\n"));
    return std::move(card);
  }

private:
  void complain(Location location, const Twine &what) {
    std::string place = path.str();
    if (auto line = location->findInstanceOf<FileLineColLoc>())
      place += ":" + std::to_string(line.getLine()) + ":" + std::to_string(line.getColumn());
    problems.push_back((place + ": error: " + what).str());
  }

  void readModule() {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        complain(diagnostic.getLocation(), diagnostic.str());
    });
    card.module = parseSourceString<ModuleOp>(text, &context, path);
    if (!card.module && problems.empty())
      complain(UnknownLoc::get(&context), "this is not MLIR");
  }

  template <typename T> T field(DictionaryAttr fields, StringRef name, StringRef wanted) {
    Attribute value = fields.get(name);
    if (value && !isa<T>(value))
      complain(card.module->getLoc(), "'" + name + "' of heddle.card must be " + wanted);
    return dyn_cast_or_null<T>(value);
  }

  void readFields() {
    Location location = card.module->getLoc();
    auto fields = (*card.module)->getAttrOfType<DictionaryAttr>("heddle.card");
    if (!fields)
      return complain(location, "the module has no attribute 'heddle.card = {target = \"cpu\", "
                                "priority = 10, key = \"p* { k:s(dot) }\"}'");
    for (NamedAttribute entry : fields) {
      SmallVector<StringRef> known(std::begin(kFields), std::end(kFields));
      if (llvm::is_contained(known, entry.getName().getValue()))
        continue;
      std::string near = support::nearest(entry.getName(), known);
      complain(location, "heddle.card has no field '" + entry.getName().getValue() + "'" +
                             (near.empty() ? "" : "; did you mean '" + near + "'?") +
                             " fields: " + llvm::join(known, ", "));
    }
    readTarget(fields);
    if (auto priority = field<IntegerAttr>(fields, "priority", "an integer"))
      card.priority = priority.getInt();
    if (auto parts = field<BoolAttr>(fields, "parts", "true or false"))
      card.readsParts = parts.getValue();
    if (auto dtypes = field<ArrayAttr>(fields, "dtypes", "a list of strings"))
      for (Attribute dtype : dtypes) {
        if (auto name = dyn_cast<StringAttr>(dtype))
          card.dtypes.push_back(name.str());
        else
          complain(location, "'dtypes' of heddle.card must be a list of strings");
      }
    if (auto moves = field<BoolAttr>(fields, "moves", "true or false"))
      card.readsThroughMoves = moves.getValue();
    readKeys(fields, "key", card.keys);
    readKeys(fields, "nest", card.nests);
    if (card.example && card.keys.empty() && card.nests.empty() && problems.empty())
      card.nests.push_back(Key::of(card.nestOf(card.exampleOps())));
    if (!card.keys.empty() && !card.nests.empty())
      complain(location, "heddle.card has both 'key', which each deciding op of a group matches, "
                         "and 'nest', which the whole group does; remove one");
    if (card.keys.empty() && card.nests.empty() && problems.empty())
      complain(location, "heddle.card has neither 'key' nor 'nest', and there is no @example to "
                         "take the nest from");
    readMath(fields);
    readFlag(fields, "prologue", card.hasPrologue);
    readFlag(fields, "epilogue", card.hasEpilogue);
    readGuards(fields, "min", card.least);
    readGuards(fields, "max", card.most);
  }

  void readFlag(DictionaryAttr fields, StringRef name, bool &value) {
    if (auto flag = field<BoolAttr>(fields, name, "true or false"))
      value = flag.getValue();
  }

  void readMath(DictionaryAttr fields) {
    auto math = field<StringAttr>(fields, "math", "a string");
    StringRef text = math ? math.getValue() : "strict";
    if (text != "strict" && text != "fast")
      complain(card.module->getLoc(),
               "'math' of heddle.card is '" + text + "'; known: strict, fast");
    card.isStrict = text == "strict";
  }

  void readTarget(DictionaryAttr fields) {
    SmallVector<StringRef> known = knownTargets();
    auto target = field<StringAttr>(fields, "target", "a string");
    card.target = target ? target.str() : "";
    if (!llvm::is_contained(known, StringRef(card.target)))
      complain(card.module->getLoc(),
               "unknown target '" + card.target + "'; known: " + llvm::join(known, ", "));
  }

  void readKeys(DictionaryAttr fields, StringRef name, std::vector<Key> &keys) {
    Attribute value = fields.get(name);
    if (!value)
      return;
    SmallVector<Attribute> texts;
    if (auto list = dyn_cast<ArrayAttr>(value))
      texts.append(list.begin(), list.end());
    else
      texts.push_back(value);
    for (Attribute text : texts) {
      auto string = dyn_cast<StringAttr>(text);
      if (!string)
        return complain(card.module->getLoc(), "'" + name +
                                                   "' of heddle.card must be a string, or "
                                                   "a list of strings");
      auto key = Key::parse(string);
      if (!key)
        return complain(card.module->getLoc(), llvm::toString(key.takeError()));
      keys.push_back(std::move(*key));
    }
    if (keys.empty())
      complain(card.module->getLoc(), "'" + name + "' of heddle.card is empty");
  }

  void readGuards(DictionaryAttr fields, StringRef name, std::map<std::string, int64_t> &guards) {
    auto values = field<DictionaryAttr>(fields, name, "a dictionary such as {k = 64}");
    for (NamedAttribute entry : values ? values : DictionaryAttr::get(&context)) {
      StringRef letter = entry.getName();
      auto size = dyn_cast<IntegerAttr>(entry.getValue());
      bool isKnown = llvm::any_of(llvm::concat<Key>(card.keys, card.nests),
                                  [&](const Key &key) { return key.hasLetter(letter); });
      if (!size || !isKnown)
        complain(card.module->getLoc(),
                 "'" + name + "' of heddle.card: '" + letter +
                     (size ? "' is the letter of no loop of the key" : "' must be an integer"));
      else
        guards[letter.str()] = size.getInt();
    }
  }

  /// A card holds @schedule, which asks for mechanisms and rewrites nothing itself, and perhaps an
  /// @example.
  void checkOps() {
    for (Operation &op : *card.module->getBody()) {
      auto name = op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
      bool isSchedule = isa<transform::NamedSequenceOp>(op) && name && name == "schedule";
      bool isExample = isa<func::FuncOp>(op) && name && name == "example";
      if (isExample)
        checkExample(cast<func::FuncOp>(op));
      else if (!isSchedule && isa<func::FuncOp>(op) && hasOwnKernel(*card.module))
        continue; // checked with the kernel's holes
      else if (!isSchedule)
        complain(op.getLoc(), "'" + op.getName().getStringRef() + "'" +
                                  (name ? " @" + name.getValue() : Twine()).str() +
                                  " has no place in a card, which holds @schedule and @example");
      op.walk([&](Operation *inner) {
        bool isAllowed = inner == &op || isa<transform::YieldOp, transform::ParamConstantOp>(inner);
        if (isa<transform::TransformDialect>(inner->getDialect()) && !isAllowed &&
            !mechanismOf(inner))
          complain(inner->getLoc(), "'" + inner->getName().getStringRef() +
                                        "' may rewrite the program; a card calls only "
                                        "transform.heddle.* mechanisms");
      });
    }
  }

  /// Ops that a kernel may be made of, in one block. Their nest can be taken.
  void checkExample(func::FuncOp example) {
    auto isTensor = [](Type type) { // a tensor of numbers
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && !isa<graph::ListType>(tensor.getElementType()) &&
             !graph::isString(tensor.getElementType());
    };
    if (!llvm::hasSingleElement(example.getBody()))
      return complain(example.getLoc(), "@example must have a body of one block");
    if (!llvm::all_of(example.getArgumentTypes(), isTensor))
      return complain(example.getLoc(), "the arguments of @example must be tensors of numbers");
    int64_t computing = 0;
    for (Operation &op : example.getBody().front().without_terminator()) {
      bool isKernelOp = isa<graph::GraphDialect>(op.getDialect()) && op.getNumRegions() == 0 &&
                        !op.hasTrait<graph::Hosted>() && op.getNumResults() > 0 &&
                        llvm::all_of(op.getOperandTypes(), isTensor) &&
                        llvm::all_of(op.getResultTypes(), isTensor);
      if (!isKernelOp)
        complain(op.getLoc(), "'" + op.getName().getStringRef() +
                                  "' is no op that a kernel computes; @example holds ops of the "
                                  "graph dialect on tensors of numbers, without regions");
      auto constant = dyn_cast<graph::ConstantOp>(op);
      if (constant && !isa<DenseElementsAttr>(graph::codesOf(constant.getValue())))
        complain(op.getLoc(), "a constant of @example must be in the text, as dense<...>; larger "
                              "ones are arguments that are 'heddle.constant'");
      computing += !constant;
    }
    for (Value result : example.getBody().front().getTerminator()->getOperands())
      if (!result.getDefiningOp() || isa<graph::ConstantOp>(result.getDefiningOp()))
        complain(example.getLoc(), "@example returns what no op of it computes");
    for (Type type : example.getArgumentTypes())
      for (const graph::Dim &dim : graph::dimsOf(type))
        if (!dim.constant() && !dim.symbolName())
          complain(example.getLoc(), "size '" + dim.str() +
                                         "' of an argument of @example is "
                                         "neither a number nor a symbol");
    if (computing == 0)
      complain(example.getLoc(), "@example computes nothing");
    card.example = example;
  }

  void readSchedule() {
    auto sequence = card.module->lookupSymbol<transform::NamedSequenceOp>("schedule");
    if (!sequence || sequence.isExternal())
      return complain(card.module->getLoc(),
                      "the module has no 'transform.named_sequence @schedule(%group: "
                      "!transform.any_op {transform.readonly}, ...)' with a body");
    Block &body = sequence.getBody().front();
    if (body.getNumArguments() == 0 ||
        !isa<transform::TransformHandleTypeInterface>(body.getArgument(0).getType()))
      return complain(sequence.getLoc(),
                      "the first argument of @schedule must be the group, a !transform.any_op");
    for (BlockArgument argument : body.getArguments().drop_front())
      readKnob(sequence, argument);
    for (Operation &op : body) {
      const mechanism::Mechanism *named = mechanismOf(&op);
      if (named && card.mechanism)
        complain(op.getLoc(), "mechanism '" + named->name + "' follows '" + card.mechanism->name +
                                  "', but a card calls one; make a second card of it");
      else if (named) {
        card.mechanism = named;
        checkTarget(&op);
      }
    }
    if (!card.mechanism && problems.empty())
      complain(sequence.getLoc(),
               "@schedule calls no mechanism such as 'transform.heddle.rows %group "
               ": !transform.any_op'; see docs/spec/cards.md");
  }

  /// Its mechanism has code for devices, and takes these knobs there, if the card is for one.
  void checkTarget(Operation *op) {
    const mechanism::Mechanism &mechanism = *card.mechanism;
    if (card.isOfThreads() && !mechanism.takesThreads)
      return complain(op->getLoc(), "mechanism '" + mechanism.name + "' has no code for target '" +
                                        card.target + "'");
    auto known = card.isOfThreads() ? mechanism.threadKnobs : mechanism.knobs;
    auto names = op->getAttrOfType<ArrayAttr>("names");
    if (mechanism.type != mechanism::CardType::Schedule || !names)
      return;
    for (auto name : names.getAsRange<StringAttr>())
      if (!llvm::is_contained(known, name.getValue()))
        complain(op->getLoc(), "knob '" + name.getValue() + "' of '" + mechanism.name +
                                   "' is not for target '" + card.target + "'; its knobs there: " +
                                   (known.empty() ? "none" : llvm::join(known, ", ")));
  }

  /// The name that the argument has in the text: `%m` -> m.
  std::string nameOf(BlockArgument argument) {
    auto place = argument.getLoc()->findInstanceOf<FileLineColLoc>();
    StringRef rest = text;
    for (unsigned line = 1; place && line < place.getLine(); ++line)
      rest = rest.split('\n').second;
    rest = place ? rest.drop_front(std::min<size_t>(rest.size(), place.getColumn() - 1)) : "";
    rest.consume_front("%");
    return rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; }).str();
  }

  void readKnob(transform::NamedSequenceOp sequence, BlockArgument argument) {
    Knob knob;
    knob.name = nameOf(argument);
    unsigned number = argument.getArgNumber();
    auto domain = sequence.getArgAttrOfType<ArrayAttr>(number, "heddle.knob");
    auto initial = sequence.getArgAttrOfType<IntegerAttr>(number, "heddle.default");
    auto isNumber = [](Attribute value) { return isa<IntegerAttr>(value); };
    auto type = dyn_cast<transform::ParamType>(argument.getType());
    if (!type || !type.getType().isInteger(64) || !domain || domain.empty() || !initial ||
        !llvm::all_of(domain, isNumber))
      return complain(argument.getLoc(),
                      "knob '" + knob.name + "' must be written '%" + knob.name +
                          ": !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], "
                          "heddle.default = 8 : i64}'");
    for (auto value : domain.getAsRange<IntegerAttr>())
      knob.domain.push_back(value.getInt());
    knob.initial = initial.getInt();
    if (!knob.allows(knob.initial)) {
      std::string allowed;
      llvm::raw_string_ostream stream(allowed);
      llvm::interleaveComma(knob.domain, stream);
      complain(argument.getLoc(), "the default of knob '" + knob.name + "' is " +
                                      Twine(knob.initial) + ", but 'heddle.knob' allows only [" +
                                      allowed + "]");
    }
    card.knobs.push_back(std::move(knob));
  }

  /// Upstream's check that no handle is used after an op that consumed it.
  void checkHandles() {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      complain(diagnostic.getLocation(), diagnostic.str());
    });
    PassManager manager(&context, ModuleOp::getOperationName());
    manager.addPass(transform::createCheckUsesPass());
    if (failed(manager.run(*card.module)) && problems.empty())
      complain(card.module->getLoc(), "its handles could not be checked");
  }

  MLIRContext &context;
  StringRef text, path;
  Card card;
  std::vector<std::string> problems;
};
} // namespace

llvm::Expected<Card> parseCard(MLIRContext &context, StringRef text, StringRef path) {
  return CardParser(context, text, path).parse();
}

} // namespace heddle::warehouse
