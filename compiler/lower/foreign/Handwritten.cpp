// Handwritten: a kernel of a card, with the group's ops in its holes.
//
// Holes become functions of the program that are copied to where they are called (PluS's +Code):
// reading an element of an operand computes all elementwise ops before it, writing one computes all
// behind it and stores. The kernel is a function of the card's text, or of a C source that the
// target compiles and links as LLVM code. One phase, on the thread of the run, asks the kernel for
// its tasks and launches them.

#include "compiler/lower/Definitions.h"
#include "compiler/lower/Schedule.h"
#include "compiler/mechanism/Shapes.h"
#include "compiler/mechanism/foreign/Holes.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace heddle::lower {

namespace {
class Handwritten {
public:
  Handwritten(KernelBuilder &kernel, Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule), prefix(kernel.kernel.name + "_") {}

  LogicalResult prepare() {
    auto ops = mechanism::opsOf(*group);
    deciders = mechanism::decidersOf(*schedule.mechanism, ops);
    holes = mechanism::holesOf(*schedule.mechanism, deciders.size());
    element = graph::elementOf(deciders.front()->getOperand(0));
    readShape();
    return success();
  }

  LogicalResult emit() {
    bool isText = schedule.source.empty();
    if (isText ? failed(takeFunctions()) : failed(takeSource()))
      return failure();
    for (auto [i, name] : llvm::enumerate(mechanism::extentsOf(*schedule.mechanism)))
      emitNumber(name, extents[i]);
    for (auto &[name, value] : schedule.knobs)
      if (name != "folds")
        emitNumber("knob_" + name, Dim(value));
    for (auto [i, hole] : llvm::enumerate(holes)) {
      emitHole(hole, i, 1);
      if (lanes > 1)
        emitHole(hole, i, lanes);
    }
    emitLaunch();
    return success();
  }

private:
  bool isProduct() const { return schedule.mechanism == &mechanism::kKernelProduct; }

  void readShape() {
    if (isProduct()) {
      auto matmul = cast<graph::MatmulOp>(deciders.front());
      full = graph::dimsOf(matmul.getResult());
      kept = full.size() - 2;
      Dim batches = graph::elementCount(ArrayRef<Dim>(full).take_front(kept));
      extents = {batches, full[kept], full[kept + 1], graph::dimsOf(matmul.getA()).back()};
      return;
    }
    full = graph::dimsOf(deciders.front()->getOperand(0));
    kept = full.size() - graph::reducedAxes(deciders.front()).size();
    extents = {graph::elementCount(ArrayRef<Dim>(full).take_front(kept)),
               graph::elementCount(ArrayRef<Dim>(full).drop_front(kept))};
  }

  /// A function of a number that the compiler knows, or that follows from the kernel's arguments.
  void emitNumber(StringRef name, const Dim &dim) {
    kernel.beginHole(prefix + name.str(), {}, kernelType(64), 1);
    kernel.endHole(kernel.dim(dim));
  }

  Type kernelType(unsigned bits) { return IntegerType::get(kernel.program().getContext(), bits); }

  void emitHole(const mechanism::Hole &hole, size_t number, int64_t width) {
    Type i64 = kernelType(64), value = loop::computeType(element);
    Type lane = width > 1 ? Type(VectorType::get({width}, value)) : value;
    SmallVector<Type> inputs(hole.indices, i64);
    inputs.append(hole.folds, value);
    if (hole.takesValue)
      inputs.push_back(lane);
    std::string name = prefix + hole.name + (width > 1 ? "_lanes" : "");
    auto arguments =
        llvm::to_vector(kernel.beginHole(name, inputs, hole.isWrite ? Type() : lane, width));
    Elements e(kernel, group);
    Code &code = kernel.code();
    Indices place = placeOf(e, hole, number, ArrayRef<Value>(arguments).take_front(hole.indices));
    for (int64_t i = 0; i < hole.folds; ++i)
      bind(e, deciders[i], arguments[hole.indices + i]);
    if (hole.takesValue)
      bind(e, deciders.front(), arguments.back());
    if (hole.isWrite) {
      Value output = outputsOf(group).front();
      e.store(output, e.at(output, place), place);
      return kernel.endHole({});
    }
    Value operand =
        isProduct() ? deciders.front()->getOperand(number) : deciders[number]->getOperand(0);
    Value read = e.at(operand, place);
    kernel.endHole(width > 1 ? code.spread(read) : read);
  }

  static void bind(Elements &e, Operation *decider, Value value) {
    e.bind(decider->getResult(0), [value](ArrayRef<Index>) { return value; });
  }

  /// Sizes of a run of dimensions from one number.
  void unfold(Elements &e, ArrayRef<Dim> dims, Value number, Indices &place) {
    Code &code = kernel.code();
    SmallVector<Value> indices(dims.size());
    for (size_t i = dims.size(); i-- > 0;) {
      Value extent = kernel.dim(dims[i]);
      indices[i] = i == 0 ? number : code.rem(number, extent);
      if (i > 0)
        number = code.div(number, extent);
    }
    for (Value index : indices)
      place.push_back(e.uniform(index));
  }

  /// The last index goes from lane to lane, so rows of several dimensions are walked one by one.
  Indices placeOf(Elements &e, const mechanism::Hole &hole, size_t number,
                  ArrayRef<Value> indices) {
    bool isVector = kernel.code().lanes > 1;
    Indices place;
    unfold(e, ArrayRef<Dim>(full).take_front(kept), indices[0], place);
    if (isProduct()) {
      place.push_back(e.uniform(indices[1]));
      place.push_back({indices[2], isVector ? 1 : 0, {}});
      if (hole.isWrite)
        return place;
      DimVector operand = graph::dimsOf(deciders.front()->getOperand(number));
      for (size_t i = 0; i < kept; ++i)
        place[i] = broadcastIndex(e, place[i], operand[i], full[i]);
      return place;
    }
    unfold(e, ArrayRef<Dim>(full).drop_front(kept), indices[1], place);
    if (isVector)
      place.back() = {place.back().base, 1, {}};
    return place;
  }

  func::FuncOp declare(StringRef name, ArrayRef<Type> inputs, ArrayRef<Type> results) {
    ModuleOp module = kernel.program();
    std::string symbol = (prefix + name).str();
    if (auto known = module.lookupSymbol<func::FuncOp>(symbol))
      return known;
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto function =
        builder.create<func::FuncOp>(group->getParentOp()->getLoc(), symbol,
                                     FunctionType::get(module.getContext(), inputs, results));
    function.setPrivate();
    return function;
  }

  /// Functions of the card's text, whose holes get the kernel's own names.
  LogicalResult takeFunctions() {
    ModuleOp program = kernel.program();
    auto module = parseSourceString<ModuleOp>(schedule.code, program.getContext());
    if (!module)
      return failure();
    auto functions = llvm::to_vector(module->getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      for (Type type :
           llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
        if (auto vector = dyn_cast<VectorType>(type); vector && function.isExternal())
          lanes = vector.getNumElements();
      auto name = StringAttr::get(program.getContext(), prefix + function.getName());
      if (failed(SymbolTable::replaceAllSymbolUses(function, name, *module)))
        return failure();
      SymbolTable::setSymbolName(function, name);
    }
    for (func::FuncOp function : functions) {
      if (function.isExternal())
        continue;
      function.setPrivate();
      function->remove();
      program.push_back(function);
    }
    return success();
  }

  LogicalResult takeSource() {
    int64_t bytes = graph::bytesOf(element);
    lanes = kernel.machine.lanes * 4 / bytes;
    program::Source source;
    source.path = schedule.source;
    source.prefix = prefix;
    source.code = schedule.code;
    source.header = headerOf(bytes);
    source.wanted = {"kernel", "tasks"};
    kernel.kernel.sources.push_back(std::move(source));
    return success();
  }

  /// Declarations of all that the source may use, and the knobs as numbers.
  std::string headerOf(int64_t bytes) {
    std::string text;
    llvm::raw_string_ostream out(text);
    StringRef type = element.isF64() ? "double" : element.isF32() ? "float" : "int32_t";
    out << "#line 1 \"heddle.h\"\n#include <stdint.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
        << "typedef struct heddle_group heddle_group;\ntypedef " << type << " heddle_element;\n"
        << "#define HEDDLE_LANES " << lanes << "\ntypedef heddle_element heddle_lanes "
        << "__attribute__((vector_size(" << lanes * bytes << "), aligned(" << bytes << ")));\n";
    for (auto &[name, value] : schedule.knobs)
      if (name != "folds")
        out << "#define KNOB_" << name << " INT64_C(" << value << ")\n";
    for (StringRef name : mechanism::extentsOf(*schedule.mechanism))
      out << "int64_t heddle_" << name << "(const heddle_group *);\n";
    for (const mechanism::Hole &hole : holes)
      for (bool isVector : {false, true}) {
        StringRef value = isVector ? "heddle_lanes" : "heddle_element";
        out << (hole.isWrite ? "void" : value) << " heddle_" << hole.name
            << (isVector ? "_lanes" : "") << "(const heddle_group *";
        for (int64_t i = 0; i < hole.indices; ++i)
          out << ", int64_t";
        for (int64_t i = 0; i < hole.folds; ++i)
          out << ", heddle_element";
        out << (hole.takesValue ? ", " + value : StringRef()) << ");\n";
      }
    out << "int64_t heddle_tasks(const heddle_group *);\n"
        << "void heddle_kernel(const heddle_group *, int64_t, int64_t, void *);\n"
        << "#ifdef __cplusplus\n}\n#endif\n";
    return text;
  }

  void emitLaunch() {
    MLIRContext *context = kernel.program().getContext();
    Type pointer = program::pointerType(context), i64 = kernelType(64);
    func::FuncOp tasks = declare("tasks", {pointer}, {i64});
    func::FuncOp run = declare("kernel", {pointer, i64, i64, pointer}, {});
    kernel.beginPhase();
    Code &code = kernel.code();
    Value count =
        code.b.create<func::CallOp>(code.loc, tasks, ValueRange{kernel.arguments()}).getResult(0);
    Value call = kernel.call();
    code.b.create<program::LaunchOp>(code.loc, run.getSymName(), call, kernel.arguments(), count,
                                     code.number(0));
    kernel.endLonePhase();
  }

  KernelBuilder &kernel;
  Block *group;
  const Schedule &schedule;
  std::string prefix; // of the kernel's functions in the program
  SmallVector<Operation *> deciders;
  std::vector<mechanism::Hole> holes;
  Type element;
  DimVector full, extents; // dimensions that are walked, and the first `kept` of them
  size_t kept = 0;
  int64_t lanes = 1;
};
} // namespace

LogicalResult emitHandwritten(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  Handwritten written(kernel, group, schedule);
  if (failed(written.prepare()))
    return failure();
  return kernel.isTrial ? success() : written.emit();
}

} // namespace heddle::lower
