// Ops: what the verifier holds ops of the dialect to, and what they fold to. A target makes
// instructions of these ops as they are, so all that it relies on is checked here.

#include "compiler/program/Dialect.h"
#include "compiler/program/Machine.h"
#include "compiler/program/build/Instructions.h"

using namespace mlir;

namespace heddle::program {

ParseResult parseSpace(OpAsmParser &parser, Type &type) {
  std::string space;
  if (succeeded(parser.parseOptionalKeyword("in")) && failed(parser.parseString(&space)))
    return failure();
  type = PtrType::get(parser.getContext(), space);
  return success();
}

void printSpace(OpAsmPrinter &printer, Operation *, Type type) {
  if (StringRef space = cast<PtrType>(type).getSpace(); !space.empty())
    printer << " in \"" << space << "\"";
}

/// Bytes of a number or pointer in memory; 0 of a type that memory does not hold.
static int64_t bytesOf(Type type) {
  if (isa<PtrType>(type))
    return 8;
  bool isNumber = type.isSignlessInteger(8) || type.isSignlessInteger(16) ||
                  type.isSignlessInteger(32) || type.isSignlessInteger(64) || type.isF16() ||
                  type.isBF16() || type.isF32() || type.isF64();
  return isNumber ? type.getIntOrFloatBitWidth() / 8 : 0;
}

/// M1: memory holds values of the type.
static LogicalResult checkInMemory(Operation *op, Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector ? bytesOf(type)
              : vector.getRank() == 1 && !vector.isScalable() && bytesOf(vector.getElementType()))
    return success();
  return op->emitOpError("M1: memory holds integers of 8, 16, 32 and 64 bits, f16, bf16, f32, "
                         "f64, pointers and vectors of such numbers of one dimension, but this is ")
         << type << "; an i1 or a narrower integer is in memory as i8";
}

/// A1 and A2: the alignment is one that an access of so many bytes can have.
static LogicalResult checkAlignment(Operation *op, StringRef label, int64_t alignment,
                                    int64_t bytes) {
  if (alignment > 0 && alignment <= bytes && llvm::isPowerOf2_64(alignment))
    return success();
  return op->emitOpError() << label << ": alignment must be a power of two from 1 to " << bytes
                           << " bytes, but is " << alignment;
}

/// M1 and A1.
static LogicalResult checkAccess(Operation *op, Type type, int64_t alignment) {
  if (failed(checkInMemory(op, type)))
    return failure();
  auto vector = dyn_cast<VectorType>(type);
  int64_t bytes = bytesOf(getElementTypeOrSelf(type)) * (vector ? vector.getNumElements() : 1);
  return checkAlignment(op, "A1", alignment, bytes);
}

/// M1 and A2.
static LogicalResult checkLanes(Operation *op, Type type, int64_t alignment) {
  if (failed(checkInMemory(op, type)))
    return failure();
  return checkAlignment(op, "A2", alignment, bytesOf(getElementTypeOrSelf(type)));
}

LogicalResult AtOp::verify() {
  if (bytesOf(getElement()))
    return success();
  return emitOpError("M2: the index counts integers of 8, 16, 32 and 64 bits, f16, bf16, f32, f64 "
                     "or pointers, but the element is ")
         << getElement() << "; that of a vector's address is the type of its lanes";
}

LogicalResult LoadOp::verify() { return checkAccess(*this, getType(), getAlignment()); }
LogicalResult StoreOp::verify() { return checkAccess(*this, getValue().getType(), getAlignment()); }
LogicalResult MaskedLoadOp::verify() { return checkAccess(*this, getType(), getAlignment()); }
LogicalResult MaskedStoreOp::verify() {
  return checkAccess(*this, getValue().getType(), getAlignment());
}
LogicalResult GatherOp::verify() { return checkLanes(*this, getType(), getAlignment()); }
LogicalResult ScatterOp::verify() {
  return checkLanes(*this, getValue().getType(), getAlignment());
}

static StringRef spaceOf(Value pointer) { return cast<PtrType>(pointer.getType()).getSpace(); }

/// "the host's memory", "memory 'npu'".
static std::string nameOf(StringRef space) {
  return space.empty() ? "the host's memory" : ("memory '" + space + "'").str();
}

LogicalResult CopyOp::verify() {
  StringRef target = spaceOf(getTarget()), source = spaceOf(getSource());
  if (target == source)
    return success();
  return emitOpError("M3: a copy stays in one space, but this one is from ")
         << nameOf(source) << " to " << nameOf(target) << "; that is a program.transfer";
}

LogicalResult TransferOp::verify() {
  StringRef target = spaceOf(getTarget());
  if (target != spaceOf(getSource()))
    return success();
  return emitOpError("M4: a transfer is between two spaces, but this one stays in ")
         << nameOf(target) << "; that is a program.copy";
}

LogicalResult AreaOp::verify() {
  if (spaceOf(getResult()).empty() || getArea() == Area::Arena || getArea() == Area::Weights)
    return success();
  return emitOpError("S2: of a run's areas only 'arena' and 'weights' are in other spaces than the "
                     "host's, but '")
         << stringifyArea(getArea()) << "' is in " << nameOf(spaceOf(getResult()));
}

LogicalResult ArrayOp::verify() {
  constexpr int64_t kMost = int64_t(1) << 20; // of words: the stack of most threads has no more
  int64_t words = getWords();
  if (words >= 1 && words <= kMost)
    return success();
  return emitOpError("W1: an array has 1 to ")
         << kMost << " words, but this one has " << words << "; program.alloc has room for more";
}

LogicalResult ArgumentOp::verify() {
  if (static_cast<int64_t>(getSlot()) >= 0)
    return success();
  return emitOpError("S1: slots are numbered from 0, but this is slot ")
         << static_cast<int64_t>(getSlot());
}

LogicalResult AllocOutputOp::verify() {
  if (static_cast<int64_t>(getOutput()) >= 0)
    return success();
  return emitOpError("O1: outputs are numbered from 0, but this is output ")
         << static_cast<int64_t>(getOutput());
}

LogicalResult FreezeOp::verify() {
  Type element = getElementTypeOrSelf(getX().getType());
  if (isa<PtrType>(getX().getType()) ||
      (element.isIntOrIndexOrFloat() &&
       (element == getX().getType() || isa<VectorType>(getX().getType()))))
    return success();
  return emitOpError("F1: x must be a number, a pointer or a vector of numbers, but is of ")
         << getX().getType();
}

LogicalResult DotOp::verify() {
  bool sumsFloats = getType().getElementType().isF32();
  if (sumsFloats == (getKind() == DotKind::ShortFloats))
    return success();
  return emitOpError("D1: sums of ")
         << stringifyDotKind(getKind()) << " must be " << (sumsFloats ? "i32" : "f32")
         << ", but are " << getType().getElementType();
}

/// Eight registers hold the sums, and rows and columns of a step.
bool MultiplyMatricesOp::fits(int64_t rows, int64_t columns) {
  int64_t most = rows == kMatrixSize ? 4 : rows == 2 * kMatrixSize ? 2 : 0;
  return columns > 0 && columns % kMatrixSize == 0 && columns / kMatrixSize <= most;
}

LogicalResult MultiplyMatricesOp::verify() {
  bool isKind = getKind() == DotKind::ShortFloats || getKind() == DotKind::Bytes ||
                getKind() == DotKind::UnsignedBytes;
  int64_t words = getWords();
  if (fits(getRows(), getColumns()) && isKind && words > 0 && words <= kMatrixSize)
    return success();
  return emitOpError("X1: matrices must have 16 or 32 rows and columns, or 16 and up to 64, with 1 "
                     "to 16 words of bf16_bf16, i8_i8 or u8_i8, but have ")
         << getRows() << " and " << getColumns() << " with " << words << " of "
         << stringifyDotKind(getKind());
}

LogicalResult ShuffleOp::verify() {
  int64_t bits = getX().getType().getIntOrFloatBitWidth(), distance = getDistance();
  if (bits > 64 || distance < 1 || distance > 31)
    return emitOpError()
           << "TH1: a value of at most 64 bits comes from a thread 1 to 31 ranks away, "
              "but this is "
           << getX().getType() << " from " << distance;
  return success();
}

LogicalResult MultiplyFragmentsOp::verify() {
  if (!getElement().isF16() && !getElement().isBF16())
    return emitOpError() << "TH3: fragments are of f16 or bf16, but these are of " << getElement();
  return success();
}

LogicalResult AwaitOp::verify() {
  if (static_cast<int64_t>(getRounds()) < 0)
    return emitOpError() << "TH4: rounds are not negative, but these are "
                         << static_cast<int64_t>(getRounds());
  return success();
}

LogicalResult SharedOp::verify() {
  if (getBytes() < 1)
    return emitOpError() << "TH2: memory of a team is at least one byte, but is " << getBytes();
  return success();
}

LogicalResult PermuteOp::verify() {
  int64_t lanes = getType().getNumElements();
  if (llvm::isPowerOf2_64(lanes))
    return success();
  return emitOpError("P1: the number of lanes must be a power of 2, but is ") << lanes;
}

FunctionType kernelType(MLIRContext *context, StringRef space) {
  Type i64 = IntegerType::get(context, 64);
  return FunctionType::get(context, {pointerType(context), i64, i64, pointerType(context, space)},
                           {});
}

StringRef spaceOf(func::FuncOp kernel) {
  FunctionType type = kernel.getFunctionType();
  auto scratch = type.getNumInputs() == 4 ? dyn_cast<PtrType>(type.getInput(3)) : PtrType();
  return scratch ? scratch.getSpace() : "";
}

/// An op that makes or takes a pointer of a space that is neither the host's nor `own`, and that
/// space; null if there is none.
static std::pair<Operation *, StringRef> strangerIn(Operation *root, StringRef own) {
  std::pair<Operation *, StringRef> stranger;
  root->walk([&](Operation *op) {
    SmallVector<Type> types(op->getOperandTypes());
    llvm::append_range(types, op->getResultTypes());
    if (auto function = dyn_cast<func::FuncOp>(op))
      llvm::append_range(types, function.getArgumentTypes());
    for (Type type : types)
      if (auto pointer = dyn_cast<PtrType>(type);
          pointer && !pointer.getSpace().empty() && pointer.getSpace() != own) {
        stranger = {op, pointer.getSpace()};
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return stranger;
}

StringRef otherSpaceIn(Operation *root) { return strangerIn(root, "").second; }

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("K1: there is no function '")
           << getKernel() << "' in the module; a kernel is a func.func of type "
           << kernelType(getContext());
  StringRef space = spaceOf(kernel);
  if (kernel.getFunctionType() == kernelType(getContext(), space)) {
    auto [stranger, found] = strangerIn(kernel, space);
    if (!stranger)
      return success();
    InFlightDiagnostic error = emitOpError("K3: kernel '")
                               << getKernel() << "' is for " << nameOf(space)
                               << ", but has an op on " << nameOf(found);
    error.attachNote(stranger->getLoc()) << "the op is here";
    return error;
  }
  InFlightDiagnostic error = emitOpError("K2: kernel '")
                             << getKernel() << "' must be of type " << kernelType(getContext())
                             << ", but is of " << kernel.getFunctionType();
  error.attachNote(kernel.getLoc()) << "the function is here";
  return error;
}

LogicalResult ProgramDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  bool isUnit = isa<UnitAttr>(attribute.getValue());
  if ((attribute.getName() == kInline && isUnit && isa<func::FuncOp>(op)) ||
      (attribute.getName() == kFactor && isUnit && isa<arith::TruncFOp>(op)) ||
      (attribute.getName() == kSteps && isUnit && isa<arith::DivFOp>(op)))
    return success();
  auto function = dyn_cast<func::FuncOp>(op);
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  bool isCount = attribute.getName() == kWords || attribute.getName() == kThreads;
  if (isCount && function && number && number.getInt() > 0)
    return success();
  if (attribute.getName() == kInstruction && function && isa<StringAttr>(attribute.getValue())) {
    std::string why = whyNoInstruction(function);
    return why.empty() ? success() : op->emitOpError(why);
  }
  return op->emitError("the attribute '")
         << attribute.getName().getValue() << "' is none of the dialect, which has '" << kInline
         << "', a unit attribute, and '" << kInstruction << "', a text, and '" << kWords
         << "' and '" << kThreads << "', positive numbers, all of functions, and '" << kFactor
         << "', a unit attribute of arith.truncf, and '" << kSteps << "', one of arith.divf";
}

OpFoldResult AtOp::fold(FoldAdaptor adaptor) {
  auto index = dyn_cast_or_null<IntegerAttr>(adaptor.getIndex());
  return index && index.getValue().isZero() ? getPointer() : Value();
}

OpFoldResult WordOp::fold(FoldAdaptor) {
  auto made = getPointer().getDefiningOp<PointerOp>();
  return made ? made.getWord() : Value();
}

OpFoldResult PointerOp::fold(FoldAdaptor) {
  auto made = getWord().getDefiningOp<WordOp>();
  return made && made.getPointer().getType() == getType() ? made.getPointer() : Value();
}

} // namespace heddle::program
