// Handwritten: a kernel of a card, with the group's ops in its holes.
//
// Holes become functions of the program that are copied to where they are called (PluS's +Code):
// reading an element of an operand computes all elementwise ops before it, writing one computes all
// after it and stores. The kernel is a function of the card's text, or of a C source that the
// target compiles and links as LLVM code. One phase, on the thread of the run, asks the kernel for
// its tasks and launches them.

#include "compiler/lower/Schedule.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/foreign/Vocabulary.h"
#include "compiler/mechanism/Shapes.h"
#include "compiler/mechanism/foreign/Holes.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace heddle::lower {

/// Prefix of the names of functions, which are C's; each version of a kernel has its own.
static std::string prefixOf(const Kernel &kernel) {
  std::string prefix = kernel.name + "_";
  return kernel.versions.empty() ? prefix
                                 : prefix + "v" + std::to_string(kernel.versions.size()) + "_";
}

namespace {
class Handwritten {
public:
  Handwritten(KernelBuilder &kernel, Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule), prefix(prefixOf(kernel.kernel)) {}

  LogicalResult prepare() {
    auto ops = mechanism::opsOf(*group);
    std::string why;
    if (schedule.mechanism == &mechanism::kKernelNest)
      nest = mechanism::readNest(ops, why);
    deciders = nest ? nest->deciders : mechanism::decidersOf(*schedule.mechanism, ops);
    element = nest ? nest->element() : graph::storageOf(deciders.front()->getOperand(0));
    holes = mechanism::holesOf(*schedule.mechanism, element, deciders.size(), nestOrNull());
    readShape();
    return success();
  }

  LogicalResult emit() {
    bool isText = schedule.source.empty();
    if (isText ? failed(takeFunctions()) : failed(takeSource()))
      return failure();
    for (auto [i, name] : llvm::enumerate(extentNames()))
      emitNumber(name, extents[i]);
    for (auto &[name, value] : schedule.knobs)
      emitNumber("knob_" + name, Dim(value));
    packWeights();
    for (auto [i, hole] : llvm::enumerate(holes)) {
      for (Form form : mechanism::Hole::kForms)
        if (hole.has(form) && (lanes > 1 || !hasVectors(form)))
          emitHole(hole, i, form);
    }
    if (!isText)
      emitVocabulary(kernel, prefix, element, lanes);
    emitLaunch();
    return success();
  }

private:
  bool isProduct() const { return schedule.mechanism == &mechanism::kKernelProduct; }
  const mechanism::Nest *nestOrNull() const { return nest ? &*nest : nullptr; }
  SmallVector<std::string> extentNames() const {
    return mechanism::extentsOf(*schedule.mechanism, nestOrNull());
  }

  void readShape() {
    if (nest) {
      for (const DimVector &dims : nest->loops)
        extents.push_back(graph::elementCount(dims));
      return;
    }
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

  using Form = mechanism::Hole::Form;
  static bool hasVectors(Form form) { return form == Form::Lanes || form == Form::Part; }

  void emitHole(const mechanism::Hole &hole, size_t number, Form form) {
    FunctionType type = hole.typeOf(kernel.program().getContext(), form, lanes);
    auto arguments = llvm::to_vector(kernel.beginHole(
        prefix + hole.nameOf(form), type.getInputs(),
        type.getNumResults() ? type.getResult(0) : Type(), hasVectors(form) ? lanes : 1));
    Elements e(kernel, group);
    ArrayRef<Value> all = arguments, indices = all.take_front(hole.indices);
    if (form == Form::Fetch) {
      fetchElement(e, nest->holes[number], indices);
      return kernel.endHole({});
    }
    ArrayRef<Value> taken = all.drop_front(hole.indices + (form == Form::Part));
    if (form == Form::Part)
      e.mask = kernel.code().maskOf(all[hole.indices]);
    Value read = nest ? nestElement(e, nest->holes[number], indices, taken)
                      : frameElement(e, hole, number, indices, taken);
    kernel.endHole(hasVectors(form) && read ? kernel.code().spread(read) : read);
  }

  /// The element that the hole reads; null if it writes.
  Value frameElement(Elements &e, const mechanism::Hole &hole, size_t number,
                     ArrayRef<Value> indices, ArrayRef<Value> taken) {
    Indices place = placeOf(e, hole, number, indices);
    for (auto [i, value] : llvm::enumerate(taken))
      bind(e, deciders[i], value);
    if (!hole.result) {
      Value output = outputsOf(group).front();
      e.store(output, e.at(output, place), place);
      return {};
    }
    return e.at(isProduct() ? deciders.front()->getOperand(number)
                            : deciders[number]->getOperand(0),
                place);
  }

  /// Constant right operands of products, as panels of a vector's columns: a vector is followed by
  /// that of the next row.
  void packWeights() {
    for (mechanism::NestHole &hole : nest ? nest->holes : std::vector<mechanism::NestHole>()) {
      auto constant = hole.value.getDefiningOp<graph::ConstantOp>();
      bool isRight = llvm::any_of(nest->deciders, [&](Operation *op) {
        return isa<graph::MatmulOp>(op) && op->getOperand(1) == hole.value &&
               op->getOperand(0) != hole.value;
      });
      auto dims = graph::dimsOf(hole.value);
      bool isMatrix = llvm::all_of(ArrayRef<Dim>(dims).drop_back(std::min<size_t>(2, dims.size())),
                                   [](const Dim &dim) { return dim.isConstant(1); });
      if (!constant || !isRight || !isMatrix || graph::storageOf(hole.value) != element ||
          lanes < 2 || packed.contains(hole.value))
        continue;
      int64_t rows = *dims[dims.size() - 2].constant(), columns = *dims.back().constant();
      int64_t bytes = graph::bytesOf(element), panels = llvm::divideCeil(columns, lanes);
      std::vector<char> storage, data(panels * rows * lanes * bytes);
      ArrayRef<char> from = graph::constantBytes(constant.getValue(), storage);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; column += lanes)
          std::memcpy(data.data() + (column * rows + row * lanes) * bytes,
                      from.data() + (row * columns + column) * bytes,
                      std::min(lanes, columns - column) * bytes);
      packed[hole.value] = kernel.addData(std::move(data));
    }
  }

  /// The index of an element in a packed matrix.
  Value packedIndex(Value matrix, ArrayRef<Index> place) {
    Code &code = kernel.code();
    auto dims = graph::dimsOf(matrix);
    Value row = place[place.size() - 2].base, column = place.back().base;
    Value rows = kernel.dim(dims[dims.size() - 2]), width = code.number(lanes);
    Value panel = code.div(column, width), lane = code.rem(column, width);
    Value first = code.mul(code.add(code.mul(panel, rows), row), width);
    return code.lanes > 1 ? first : code.add(first, lane);
  }

  /// Prefetches what the hole reads, unless the group computes it.
  void fetchElement(Elements &e, const mechanism::NestHole &hole, ArrayRef<Value> indices) {
    Indices place = placeOf(e, hole, indices);
    Code &code = kernel.code();
    if (packed.contains(hole.value))
      code.prefetch(kernel.data(packed.at(hole.value)), element, packedIndex(hole.value, place));
    else if (mlir::Value value = hole.value; value.getParentBlock() != group)
      code.prefetch(kernel.pointer(hole.value), graph::storageOf(hole.value),
                    e.linear(e.sizesOf(hole.value), place).base);
  }

  Indices placeOf(Elements &e, const mechanism::NestHole &hole, ArrayRef<Value> indices) {
    std::map<int64_t, Indices> parts; // of each loop
    for (auto [i, loop] : llvm::enumerate(hole.loops)) {
      bool isLast = i + 1 == indices.size();
      parts[loop] = partsOf(e, nest->loops[loop], indices[i], isLast);
    }
    Indices place;
    for (const mechanism::NestHole::Place &dim : hole.places)
      place.push_back(dim.loop < 0 ? e.uniform(kernel.code().number(0))
                                   : parts[dim.loop][dim.part]);
    return place;
  }

  Value nestElement(Elements &e, const mechanism::NestHole &hole, ArrayRef<Value> indices,
                    ArrayRef<Value> taken) {
    using Kind = mechanism::NestHole::Kind;
    Indices place = placeOf(e, hole, indices);
    if (packed.contains(hole.value)) {
      Code &code = kernel.code();
      Value pointer = kernel.data(packed.at(hole.value)), index = packedIndex(hole.value, place);
      return code.lanes > 1 ? code.loadLanes(element, pointer, index, {})
                            : code.load(element, pointer, index);
    }
    if (hole.kind == Kind::Store) {
      e.store(hole.value, taken.back(), place);
      return {};
    }
    if (hole.kind == Kind::Load)
      return e.read(graph::storageOf(hole.value), kernel.pointer(hole.value), e.sizesOf(hole.value),
                    place);
    for (auto [i, number] : llvm::enumerate(hole.taken))
      e.bind(nest->values[number], [value = taken[i]](ArrayRef<Index>) { return value; });
    Value value = e.at(hole.value, place);
    if (hole.kind == Kind::Write)
      e.store(hole.value, value, place);
    return value;
  }

  /// The indices of a loop's dimensions from the one that counts them all; that of the last loop
  /// goes from lane to lane.
  Indices partsOf(Elements &e, ArrayRef<Dim> dims, Value number, bool isLast) {
    Code &code = kernel.code();
    Indices indices;
    if (!isLast || code.lanes == 1) {
      unfold(e, dims, number, indices);
    } else if (dims.size() == 1) {
      indices.push_back({number, 1, {}});
    } else {
      OpBuilder &b = code.b;
      Value each = b.create<arith::AddIOp>(code.loc, code.spread(number), code.laneNumbers());
      indices.resize(dims.size());
      for (size_t i = dims.size(); i-- > 0;) {
        Value extent = code.spread(code.max(kernel.dim(dims[i]), code.number(1)));
        Value index = i == 0 ? each : b.create<arith::RemSIOp>(code.loc, each, extent).getResult();
        indices[i] = {code.number(0), 0, index};
        if (i > 0)
          each = b.create<arith::DivSIOp>(code.loc, each, extent);
      }
    }
    return indices;
  }

  static void bind(Elements &e, Operation *decider, Value value) {
    e.bind(decider->getResult(0), [value](ArrayRef<Index>) { return value; });
  }

  /// Sizes of a run of dimensions from one number.
  void unfold(Elements &e, ArrayRef<Dim> dims, Value number, Indices &place) {
    llvm::append_range(place, indicesOf(e, dims, number));
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
      if (!hole.result)
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
    if (hasScratch())
      source.wanted.push_back("scratch");
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
      out << "#define KNOB_" << name << " INT64_C(" << value << ")\n";
    for (StringRef name : extentNames())
      out << "int64_t heddle_" << name << "(const heddle_group *);\n";
    for (const mechanism::Hole &hole : holes)
      for (Form form : mechanism::Hole::kForms) {
        if (!hole.has(form) || (lanes == 1 && hasVectors(form)))
          continue;
        FunctionType type = hole.typeOf(element.getContext(), form, lanes);
        out << (type.getNumResults() ? nameOf(type.getResult(0)) : "void") << " heddle_"
            << hole.nameOf(form) << "(const heddle_group *";
        for (Type input : type.getInputs())
          out << ", " << nameOf(input);
        out << ");\n";
      }
    for (auto [i, value] : llvm::enumerate(nest ? nest->values : SmallVector<Value>()))
      out << "typedef " << nameOf(graph::storageOf(value)) << " heddle_value_" << i << ";\n";
    out << vocabularyHeader(element) << "int64_t heddle_tasks(const heddle_group *);\n"
        << "int64_t heddle_scratch(const heddle_group *);\n"
        << "void heddle_kernel(const heddle_group *, int64_t, int64_t, void *);\n"
        << "#ifdef __cplusplus\n}\n#endif\n";
    return text;
  }

  StringRef nameOf(Type type) const {
    if (type == element || isa<VectorType>(type))
      return type == element ? "heddle_element" : "heddle_lanes";
    return type.isF64()         ? "double"
           : type.isF32()       ? "float"
           : type.isInteger(32) ? "int32_t"
                                : "int64_t";
  }

  bool hasScratch() const {
    return StringRef(schedule.code)
        .contains(schedule.source.empty() ? "@scratch(" : "heddle_scratch(");
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
    Value call = kernel.call(), bytes = code.number(0);
    if (hasScratch())
      bytes = code.b
                  .create<func::CallOp>(code.loc, declare("scratch", {pointer}, {i64}),
                                        ValueRange{kernel.arguments()})
                  .getResult(0);
    code.b.create<program::LaunchOp>(code.loc, run.getSymName(), call, kernel.arguments(), count,
                                     bytes);
    kernel.endLonePhase();
  }

  KernelBuilder &kernel;
  Block *group;
  const Schedule &schedule;
  std::string prefix;                  // of the kernel's functions in the program
  std::optional<mechanism::Nest> nest; // of a kernel of that frame
  SmallVector<Operation *> deciders;
  std::vector<mechanism::Hole> holes;
  Type element;
  DimVector full, extents; // dimensions that are walked, and the first `kept` of them
  size_t kept = 0;
  int64_t lanes = 1;
  llvm::DenseMap<Value, int64_t> packed; // data of the kernel, by the constant
};
} // namespace

LogicalResult emitHandwritten(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  Handwritten written(kernel, group, schedule);
  if (failed(written.prepare()))
    return failure();
  return kernel.isTrial ? success() : written.emit();
}

} // namespace heddle::lower
