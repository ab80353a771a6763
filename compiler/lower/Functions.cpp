// Functions: see Functions.h.

#include "compiler/lower/Functions.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace heddle::lower {

/// A constant divisor becomes a multiplication, and a constant power products.
static bool isBetterConstant(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp,
          arith::CeilDivSIOp, arith::CeilDivUIOp>(user))
    return use.getOperandNumber() == 1;
  return isa<math::MathDialect>(user->getDialect());
}

/// A number, or a vector of one number, that could as well be read from the arguments.
static bool isLiftable(arith::ConstantOp op) {
  Attribute value = op.getValue();
  if (auto lanes = dyn_cast<VectorType>(op.getType())) {
    auto elements = dyn_cast<DenseElementsAttr>(value);
    if (!elements || !elements.isSplat() || lanes.getRank() != 1)
      return false;
  }
  Type element = getElementTypeOrSelf(op.getType());
  bool isNumber = element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 8 &&
                  element.getIntOrFloatBitWidth() <= 64;
  return isNumber && llvm::none_of(op->getUses(), isBetterConstant);
}

/// Addresses and lengths of products are better known when they are compiled.
static SmallVector<arith::ConstantOp> liftableOf(func::FuncOp function) {
  SmallVector<arith::ConstantOp> constants;
  bool isProduct = false;
  function.walk([&](Operation *op) {
    isProduct |=
        isa<math::FmaOp, program::DotOp, program::MultiplyMatricesOp, vector::ContractionOp>(op);
    if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && isLiftable(constant))
      constants.push_back(constant);
  });
  if (isProduct)
    llvm::erase_if(constants, [](arith::ConstantOp constant) {
      return getElementTypeOrSelf(constant.getType()).isSignlessInteger(64);
    });
  return constants;
}

static std::string textOf(func::FuncOp function) {
  std::string text, name = function.getSymName().str();
  llvm::raw_string_ostream stream(text);
  function.setSymName("phase");
  function.print(stream, OpPrintingFlags().useLocalScope());
  function.setSymName(name);
  return text;
}

/// The bits of a number as a word of arguments.
static int64_t wordOf(TypedAttr number) {
  if (auto elements = dyn_cast<DenseElementsAttr>(number))
    number = cast<TypedAttr>(elements.getSplatValue<Attribute>());
  APInt bits = isa<FloatAttr>(number) ? cast<FloatAttr>(number).getValue().bitcastToAPInt()
                                      : cast<IntegerAttr>(number).getValue();
  return bits.sextOrTrunc(64).getSExtValue();
}

/// The number that `wordOf` has made a word of, in all lanes of `type`.
static Value numberOf(OpBuilder &b, Location loc, Value word, Type type) {
  Type element = getElementTypeOrSelf(type);
  unsigned width = element.getIntOrFloatBitWidth();
  if (width < 64)
    word = b.create<arith::TruncIOp>(loc, b.getIntegerType(width), word);
  if (!element.isSignlessInteger())
    word = b.create<arith::BitcastOp>(loc, element, word);
  return isa<VectorType>(type) ? b.create<vector::BroadcastOp>(loc, type, word).getResult() : word;
}

std::string Functions::nameOf(StringRef text) {
  std::string name = "kernel_" + llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, 16);
  while (!names.try_emplace(name).second) // of another text
    name += "x";
  return name;
}

void Functions::add(Kernel &kernel) {
  for (auto [i, phase] : llvm::enumerate(kernel.phases)) {
    // It is among the last that were made; a search from the front would look at all others.
    auto made = llvm::find_if(llvm::reverse(*module.getBody()), [&](Operation &op) {
      auto function = dyn_cast<func::FuncOp>(op);
      return function && function.getSymName() == phase.function;
    });
    auto function = cast<func::FuncOp>(*made);
    Numbers numbers;
    SmallVector<arith::ConstantOp> constants;
    if (kernel.rows.empty())
      constants = liftableOf(function);
    for (arith::ConstantOp constant : constants) {
      numbers.push_back(constant.getValue());
      constant.setValueAttr(Builder(constant).getZeroAttr(constant.getType()));
    }
    std::string text = textOf(function);
    for (auto [constant, number] : llvm::zip(constants, numbers))
      constant.setValueAttr(number);
    Form &form = forms[text];
    auto known = llvm::find_if(form, [&](const Member &other) { return other.numbers == numbers; });
    if (known != form.end()) {
      function.erase();
      phase.function = known->function.getSymName();
      known->users.push_back({&kernel, i});
      continue;
    }
    llvm::raw_string_ostream stream(text);
    for (TypedAttr number : numbers)
      stream << "\n" << number;
    phase.function = nameOf(text);
    function.setSymName(phase.function);
    form.push_back({function, std::move(numbers), {{&kernel, i}}});
  }
}

void Functions::merge(Form &form) {
  Member &first = form.front();
  // Positions whose numbers are the same in each function have one word.
  llvm::MapVector<ArrayRef<TypedAttr>, SmallVector<size_t>> words;
  std::vector<Numbers> columns(first.numbers.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    for (const Member &member : form)
      columns[i].push_back(member.numbers[i]);
    if (!llvm::all_equal(columns[i]))
      words[columns[i]].push_back(i);
  }
  constexpr size_t mostWords = 16; // each run stores them
  size_t slot = 0;
  for (const Member &member : form)
    for (const User &user : member.users)
      slot = std::max(slot, user.kernel->arguments.size());
  if (words.size() > mostWords)
    return;

  SmallVector<arith::ConstantOp> constants = liftableOf(first.function);
  OpBuilder b = OpBuilder::atBlockBegin(&first.function.getBody().front());
  for (auto [i, word] : llvm::enumerate(words)) {
    Location loc = first.function.getLoc();
    Value read = b.create<program::ArgumentOp>(loc, b.getI64Type(), first.function.getArgument(0),
                                               slot + i, /*invariant=*/false);
    for (size_t position : word.second) {
      arith::ConstantOp constant = constants[position];
      constant.replaceAllUsesWith(numberOf(b, loc, read, constant.getType()));
      constant.erase();
    }
  }
  std::string name = nameOf(textOf(first.function));
  first.function.setSymName(name);
  for (Member &member : form) {
    llvm::SmallPtrSet<Kernel *, 2> told;
    for (auto [kernel, phase] : member.users) {
      kernel->phases[phase].function = name;
      if (!told.insert(kernel).second)
        continue; // another phase of equal numbers
      kernel->arguments.resize(slot, {Argument::Kind::Number, {}, 0, ""});
      for (const auto &word : words)
        kernel->arguments.push_back(
            {Argument::Kind::Number, {}, wordOf(member.numbers[word.second.front()]), ""});
    }
    if (&member != &first)
      member.function.erase();
  }
}

/// A kernel has one set of arguments, so phases of it that differ in numbers are of different
/// parts.
std::vector<Functions::Form> Functions::partsOf(Form form) {
  std::vector<Form> parts;
  std::vector<llvm::SmallPtrSet<Kernel *, 16>> kernels; // of each part
  for (Member &member : form) {
    size_t i = 0;
    while (i < parts.size() &&
           llvm::any_of(
               member.users, [&](const User &user) { return kernels[i].contains(user.kernel); }))
      ++i;
    if (i == parts.size()) {
      parts.emplace_back();
      kernels.emplace_back();
    }
    for (const User &user : member.users)
      kernels[i].insert(user.kernel);
    parts[i].push_back(std::move(member));
  }
  return parts;
}

void Functions::merge() {
  constexpr size_t fewest = 4; // as many are worth words for a run to store
  for (auto &[text, form] : forms)
    for (Form &part : partsOf(std::move(form)))
      if (part.size() >= fewest)
        merge(part);
}

} // namespace heddle::lower
