// ParseKernel: what can be known of a kernel before there is a group: that its source is there,
// that its holes have names and types that the compiler can fill, and that it calls nothing else.

#include "compiler/warehouse/ParseKernel.h"

#include "compiler/mechanism/foreign/Holes.h"
#include "compiler/program/Dialect.h"
#include "compiler/support/Files.h"
#include "compiler/support/Suggest.h"
#include "compiler/warehouse/TransformOps.h"
#include "compiler/warehouse/Warehouse.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;

namespace heddle::warehouse {

static transform::KernelOp callOf(ModuleOp module) {
  transform::KernelOp found;
  module.walk([&](transform::KernelOp op) { found = op; });
  return found;
}

bool hasOwnKernel(ModuleOp module) {
  transform::KernelOp call = callOf(module);
  return call && !call.getSource();
}

namespace {
class KernelReader {
public:
  KernelReader(Card &card, transform::KernelOp call) : card(card), call(call) {}

  Problems read() {
    if (isNest())
      readNest();
    if (!problems.empty())
      return std::move(problems);
    if (isNest() ? !elementType() : card.dtypes.size() != 1 || !elementType())
      complain(card.module->getLoc(),
               isNest() ? "a kernel is written for elements of f32, f64 or i32, but what read_0 of "
                          "@example reads is of another type"
                        : "a kernel is written for one type of elements: 'dtypes' of heddle.card "
                          "must be [\"f32\"], [\"f64\"] or [\"i32\"]");
    else if (call.getSource())
      readFile(*call.getSource());
    else
      readFunctions();
    card.reductions = mechanism::reductionsNamedIn(card.code);
    if (problems.empty() && card.mechanism == &mechanism::kKernelRows && card.reductions == 0)
      complain(call.getLoc(),
               "a kernel of rows reads its rows with read_0, but its source does not "
               "name it");
    card.hash =
        llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(card.text + card.code)), true)
            .substr(0, 16);
    return std::move(problems);
  }

private:
  void complain(Location location, const Twine &what) {
    problems.emplace_back(location, what.str());
  }

  bool isNest() const { return card.mechanism == &mechanism::kKernelNest; }
  const mechanism::Nest *nestOrNull() const { return nest ? &*nest : nullptr; }

  /// The holes of a kernel of a nest are those of its example.
  void readNest() {
    if (!card.example)
      return complain(call.getLoc(), "a kernel of the frame 'nest' has the holes of its @example, "
                                     "but the card has none");
    auto ops = card.exampleOps();
    mechanism::Verdict verdict = card.mechanism->fits(ops);
    if (!verdict.isFull())
      return complain(card.example.getLoc(),
                      "the frame 'nest' has no holes for @example: " + verdict.why);
    std::string why;
    nest = mechanism::readNest(ops, why);
    card.nestText = nest->str(call.getSource().has_value());
  }

  Type elementType() {
    Builder builder(call.getContext());
    if (nest) {
      return nest->element().isSignlessInteger(64) ? Type() : nest->element();
    }
    return llvm::StringSwitch<Type>(card.dtypes.front())
        .Case("f32", builder.getF32Type())
        .Case("f64", builder.getF64Type())
        .Case("i32", builder.getI32Type())
        .Default(Type());
  }

  void readFile(StringRef name) {
    SmallString<128> path(llvm::sys::path::parent_path(card.path));
    llvm::sys::path::append(path, name);
    StringRef suffix = llvm::sys::path::extension(name);
    if (!llvm::is_contained({".c", ".cc", ".cpp"}, suffix))
      return complain(call.getLoc(), "'" + name + "' is no file of C (.c) or C++ (.cpp, .cc)");
    if (llvm::sys::path::is_absolute(name) || name.contains(".."))
      return complain(call.getLoc(), "'" + name + "' must be beside the card or below it");
    auto buffer = support::readFile("the kernel's source", path, kMaxCardBytes);
    if (!buffer) {
      std::string problem = toString(buffer.takeError());
      return complain(call.getLoc(), StringRef(problem).drop_front(strlen("error: ")));
    }
    card.source = path.str().str();
    card.code = (*buffer)->getBuffer().str();
  }

  void readFunctions() {
    llvm::raw_string_ostream stream(card.code);
    for (auto function : card.module->getOps<func::FuncOp>()) {
      if (function == card.example)
        continue;
      function.print(stream, OpPrintingFlags().useLocalScope());
      stream << "\n";
    }
    int64_t reductions = mechanism::reductionsNamedIn(card.code);
    std::vector<mechanism::Hole> holes =
        mechanism::holesOf(*card.mechanism, elementType(), reductions, nestOrNull());
    bool hasKernel = false, hasTasks = false;
    for (auto function : card.module->getOps<func::FuncOp>()) {
      if (function == card.example)
        continue;
      if (function.isExternal())
        checkHole(function, holes);
      else
        checkBody(function);
      hasKernel |= function.getName() == "kernel" && !function.isExternal();
      hasTasks |= function.getName() == "tasks" && !function.isExternal();
    }
    for (StringRef name : {"write_lanes", "write_part"})
      if (auto write = card.module->lookupSymbol<func::FuncOp>(name); write && !lanes)
        complain(write.getLoc(), Twine("hole '") + name +
                                     "' has no width: a hole that reads lanes says how many a "
                                     "vector has");
    if (auto scratch = card.module->lookupSymbol<func::FuncOp>("scratch"))
      require("scratch", true, {program::pointerType(call.getContext())},
              {IntegerType::get(call.getContext(), 64)});
    Type pointer = program::pointerType(call.getContext());
    Type i64 = IntegerType::get(call.getContext(), 64);
    require("kernel", hasKernel, {pointer, i64, i64, pointer}, {});
    require("tasks", hasTasks, {pointer}, {i64});
  }

  void require(StringRef name, bool isThere, ArrayRef<Type> inputs, ArrayRef<Type> results) {
    auto type = FunctionType::get(call.getContext(), inputs, results);
    auto function = isThere ? card.module->lookupSymbol<func::FuncOp>(name) : func::FuncOp();
    if (!function)
      complain(call.getLoc(), "the card has no 'func.func @" + name + "' of type " + textOf(type) +
                                  ", and the mechanism names no file of C either");
    else if (function.getFunctionType() != type)
      complain(function.getLoc(), "@" + name + " must have type " + textOf(type) + ", not " +
                                      textOf(function.getFunctionType()));
  }

  static std::string textOf(Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  }

  /// A number that the compiler knows: an extent or a knob.
  bool isNumber(StringRef name) {
    if (name.consume_front("knob_"))
      return llvm::any_of(call.getNames().getAsRange<StringAttr>(),
                          [&](StringAttr knob) { return knob.getValue() == name; });
    return llvm::is_contained(mechanism::extentsOf(*card.mechanism, nestOrNull()), name);
  }

  using Form = mechanism::Hole::Form;
  static std::optional<std::pair<const mechanism::Hole *, Form>>
  formOf(StringRef name, ArrayRef<mechanism::Hole> holes) {
    for (const mechanism::Hole &hole : holes)
      for (Form form : mechanism::Hole::kForms)
        if (hole.has(form) && hole.nameOf(form) == name)
          return std::make_pair(&hole, form);
    return std::nullopt;
  }

  void checkHole(func::FuncOp function, ArrayRef<mechanism::Hole> holes) {
    MLIRContext *context = call.getContext();
    Type pointer = program::pointerType(context), i64 = IntegerType::get(context, 64);
    StringRef name = function.getName();
    SmallVector<Type> inputs = {pointer}, results;
    auto found = formOf(name, holes);
    if (isNumber(name)) {
      results.push_back(i64);
    } else if (found) {
      auto [hole, form] = *found;
      FunctionType type = hole->typeOf(context, form, lanesOf(function));
      llvm::append_range(inputs, type.getInputs());
      llvm::append_range(results, type.getResults());
    } else {
      SmallVector<std::string> names = mechanism::extentsOf(*card.mechanism, nestOrNull());
      SmallVector<StringRef> known(names.begin(), names.end());
      for (const mechanism::Hole &each : holes)
        known.push_back(each.name);
      std::string near = support::nearest(name, known);
      return complain(function.getLoc(),
                      "'" + card.mechanism->name + "' has no hole '" + name + "'" +
                          (near.empty() ? "" : "; did you mean '" + near + "'?") +
                          " holes: " + llvm::join(known, ", ") +
                          ", knob_NAME, and read_ and write with _lanes or _part" +
                          (isNest() ? ", fetch_ for read_" : ""));
    }
    auto wanted = FunctionType::get(context, inputs, results);
    if (function.getFunctionType() != wanted)
      complain(function.getLoc(), "hole '" + name + "' must have type " + textOf(wanted) +
                                      ", not " + textOf(function.getFunctionType()));
  }

  /// All vectors of a card have the same lanes.
  int64_t lanesOf(func::FuncOp function) {
    auto types = llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes());
    for (Type type : types)
      if (auto vector = dyn_cast<VectorType>(type);
          vector && vector.getRank() == 1 && vector.getDimSize(0) > 1) {
        lanes = lanes ? lanes : vector.getDimSize(0);
        break;
      }
    return lanes ? lanes : 8;
  }

  void checkBody(func::FuncOp function) {
    function.walk([&](Operation *op) {
      StringRef dialect = op->getName().getDialectNamespace();
      if (!llvm::is_contained({"arith", "cf", "func", "math", "memref", "program", "scf", "vector"},
                              dialect))
        complain(op->getLoc(),
                 "'" + op->getName().getStringRef() +
                     "' has no place in a kernel, which is written in arith, cf, func, "
                     "math, memref, program, scf and vector");
    });
  }

  Card &card;
  transform::KernelOp call;
  Problems problems;
  std::optional<mechanism::Nest> nest; // the example's
  int64_t lanes = 0;
};
} // namespace

Problems readKernel(Card &card) { return KernelReader(card, callOf(*card.module)).read(); }

} // namespace heddle::warehouse
