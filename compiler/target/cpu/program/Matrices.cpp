// Matrices: products in the matrix registers of AMX.
//
// The registers hold 16 rows of 64 bytes. LLVM 19 assigns them, but MLIR 19 has no type for what
// they hold, which a loop would have to carry; so the loop is written here, as assembly. A function
// sets up the registers once, which takes longer than a dozen products.
// (Intel Architecture Instruction Set Extensions Programming Reference, chapter 3.)

#include "compiler/program/Dialect.h"
#include "compiler/program/Machine.h"
#include "compiler/target/cpu/program/Ops.h"

using namespace mlir;

namespace heddle::cpu {

static constexpr int64_t kRegisters = 8, kRows = program::kMatrixSize,
                         kRowBytes = 64; // of a register

namespace {
/// Registers of an op: first those of sums, then those of the left factor; others are of the right
/// one. A step may have fewer words than they hold: bytes of a row of the left factor, and rows of
/// the right one.
struct Registers {
  explicit Registers(program::MultiplyMatricesOp op)
      : sums(op.getRows() / kRows * (op.getColumns() / kRows)), left(op.getRows() / kRows),
        words(op.getWords()) {}
  bool areWhole() const { return words == kRows; }
  bool operator==(const Registers &other) const {
    return words == other.words && (areWhole() || (sums == other.sums && left == other.left));
  }

  int64_t sums, left, words;
};
} // namespace

/// The operand of ldtilecfg: palette 1, and the size of each register.
static SmallVector<int8_t> configuration(const Registers &registers) {
  constexpr size_t kSize = 64, kColumns = 16, kRowCounts = 48; // where two bytes, and one, of each
  SmallVector<int8_t> bytes(kSize, 0);
  bytes[0] = 1;
  int64_t right = registers.sums + registers.left;
  for (int64_t i = 0; i < kRegisters; ++i) {
    bool isLeft = i >= registers.sums && i < right;
    bytes[kColumns + 2 * i] = static_cast<int8_t>(isLeft ? registers.words * 4 : kRowBytes);
    bytes[kRowCounts + i] = static_cast<int8_t>(i < right ? kRows : registers.words);
  }
  return bytes;
}

/// The loops over pieces and steps. $0 and $1: the left and the right factor, $2: the number of
/// pieces, $3: what is fetched, all of which change; $4: the result; $5 and $6: bytes from a piece
/// of the left factor, and from a row of it, to the next; $7: the number of steps; $8: bytes of a
/// row of the right factor, which one of the result has, too.
static std::string assemblyOf(program::MultiplyMatricesOp op) {
  int64_t down = op.getRows() / kRows, across = op.getColumns() / kRows;
  std::string text;
  auto line = [&](const Twine &each) { text += (each + "\n").str(); };
  auto sums = [&](int64_t i, int64_t j) { return "%tmm" + std::to_string(i * across + j); };
  auto left = [&](int64_t i) { return "%tmm" + std::to_string(down * across + i); };
  int64_t used = down * across + down;
  auto right = [&](int64_t j) { return "%tmm" + std::to_string(used + j % (kRegisters - used)); };
  for (int64_t i = 0; i < down * across; ++i)
    line("tilezero " + sums(0, i));
  StringRef multiply = op.getKind() == program::DotKind::ShortFloats ? "tdpbf16ps "
                       : op.getKind() == program::DotKind::Bytes     ? "tdpbssd "
                                                                     : "tdpbusd ";
  line("testq $7, $7");
  line("jle 3f");
  line("1:"); // a piece
  line("decq $2");
  line("js 3f");
  line("movq $0, %rax");
  line("movq $7, %rcx");
  line("2:"); // a step
  int64_t products = 0, fetched = 0;
  auto fetch = [&] { // its share of the lines between two products
    ++products;
    for (; fetched * down * across < products * int64_t(op.getFetchedLines()); ++fetched)
      line("prefetcht1 " + Twine(fetched * kRowBytes) + "($3)");
  };
  for (int64_t i = 0; i < down; ++i) {
    if (i == 0) {
      line("tileloadd (%rax,$6), " + left(0));
    } else { // rows from 16 on
      line("movq $6, %rdx");
      line("shlq $$4, %rdx");
      line("addq %rax, %rdx");
      line("tileloadd (%rdx,$6), " + left(1));
    }
    for (int64_t j = 0; j < across; ++j) {
      if (i == 0)
        line("tileloadd " + Twine(j * kRowBytes) + "($1,$8), " + right(j));
      line(multiply + right(j) + ", " + left(i) + ", " + sums(i, j));
      fetch();
    }
  }
  line("addq $$" + Twine(op.getLeftStep()) + ", %rax");
  line("addq $$" + Twine(across * kRowBytes * int64_t(op.getWords())) + ", $1");
  line("addq $$" + Twine(op.getFetchedLines() * kRowBytes) + ", $3");
  line("decq %rcx");
  line("jnz 2b");
  line("addq $5, $0");
  line("jmp 1b");
  line("3:");
  for (int64_t i = 0; i < down; ++i)
    for (int64_t j = 0; j < across; ++j)
      line("tilestored " + sums(i, j) + ", " +
           Twine(i * kRows * across * kRowBytes + j * kRowBytes) + "($4,$8)");
  return text;
}

/// Memory and registers that an instruction of AMX may change.
static std::string clobbered() {
  std::string text = ",~{memory}";
  for (int64_t i = 0; i < kRegisters; ++i)
    text += ",~{tmm" + std::to_string(i) + "}";
  return text;
}

static void assemble(OpBuilder &b, Location loc, Type result, ValueRange operands,
                     const Twine &text, const std::string &constraints) {
  b.create<LLVM::InlineAsmOp>(loc, result, operands, text.str(), constraints,
                              /*has_side_effects=*/true, /*is_align_stack=*/false,
                              LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
                              ArrayAttr());
}

LogicalResult configureMatrices(func::FuncOp function, const Target &target) {
  std::optional<Registers> registers;
  WalkResult all = function.walk([&](program::MultiplyMatricesOp op) -> WalkResult {
    Registers wanted(op);
    if (registers && !(*registers == wanted))
      return op.emitOpError("wants registers of other sizes than one before it in the function");
    registers = wanted;
    return WalkResult::advance();
  });
  if (all.wasInterrupted() || !registers || !target.amx)
    return failure(all.wasInterrupted());
  OpBuilder b = OpBuilder::atBlockBegin(&function.getFunctionBody().front());
  Location loc = function.getLoc();
  SmallVector<int8_t> bytes = configuration(*registers);
  auto type = VectorType::get(bytes.size(), b.getI8Type());
  Value memory = b.create<LLVM::AllocaOp>(loc, pointerOf(b), type, numberOf(b, loc, 1));
  Value constant =
      b.create<arith::ConstantOp>(loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(bytes)));
  b.create<LLVM::StoreOp>(loc, constant, memory);
  assemble(b, loc, Type(), memory, "ldtilecfg ($0)", "r" + clobbered());
  function.walk([&](func::ReturnOp end) {
    b.setInsertionPoint(end);
    assemble(b, loc, Type(), {}, "tilerelease", clobbered().substr(1));
  });
  return success();
}

bool lowerMatrices(OpBuilder &b, Operation *op, const Target &target) {
  auto multiply = dyn_cast<program::MultiplyMatricesOp>(op);
  if (!multiply || !target.amx)
    return false;
  Location loc = op->getLoc();
  int64_t columns = multiply.getColumns();
  Type pointer = pointerOf(b), changed = LLVM::LLVMStructType::getLiteral(
                                   b.getContext(), {pointer, pointer, b.getI64Type(), pointer});
  assemble(b, loc, changed,
           {multiply.getResult(), multiply.getLeftPiece(), multiply.getLeftRow(),
            multiply.getSteps(), numberOf(b, loc, columns / kRows * kRowBytes), multiply.getLeft(),
            multiply.getRight(), multiply.getPieces(), multiply.getFetched()},
           assemblyOf(multiply),
           "=&r,=&r,=&r,=&r,r,r,r,r,r,0,1,2,3,~{rax},~{rcx},~{rdx},~{cc}" + clobbered());
  return true;
}

} // namespace heddle::cpu
