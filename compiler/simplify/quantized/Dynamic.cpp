// Dynamic: products of floats with constant weights become products of 8-bit integers.
//
//   matmul(x, w)  =>  cast<f32>(matmul(cast<i32>(q), cast<i32>(c))) * (s * t)
//   q = cast<i8>(round(x / s * 127))
//
// s is the largest |element| of each row of x, computed in each run, so that a row does not depend
// on the others of its batch; codes c of w, and t for each of its columns, are made here. Weights
// that are integers of 8 bits times a number for each column get these integers back. A row with
// NaN or an infinity gives NaN. ONNX's DynamicQuantizeLinear has one s for the whole of x.
//
// Weights that are stored as integers with a scale for each block of rows stay so, and x is rounded
// in these blocks: matmul(x, w) {block}. The model may allow that (MatMulNBits' accuracy_level).

#include "compiler/reference/Tensor.h"
#include "compiler/simplify/Passes.h"
#include "compiler/simplify/quantized/Operand.h"
#include "compiler/simplify/quantized/Stored.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

#define GEN_PASS_DEF_DYNAMICPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

constexpr int64_t kLeastDepth = 32, kLeastColumns = 16; // with less, rows take longer than products
constexpr int64_t kMostDepth = 100000;                  // sums of as many products fit 32 bits
constexpr double kLargest = 127;

/// Weights as codes, and a factor for each column, which has that of the left side's codes in it.
struct Codes {
  std::vector<int8_t> codes; // [depth, columns]
  std::vector<float> factors;
};

/// The number of steps from 0 to the largest |element| of a column: that with which all elements
/// are whole, as those of integers are, else 127.
double stepsOf(ArrayRef<double> numbers, int64_t column, int64_t columns, double largest) {
  constexpr double kWhole = 1e-3;
  bool hasLargest = false; // 128 steps reach below 0 only
  for (size_t i = column; i < numbers.size(); i += columns)
    hasLargest |= numbers[i] == largest;
  for (int64_t steps = hasLargest ? 127 : 128; steps >= 32; --steps) {
    auto isWhole = [&](size_t i) {
      double place = numbers[i] / largest * steps;
      return std::abs(place - std::nearbyint(place)) < kWhole;
    };
    size_t i = column;
    while (i < numbers.size() && isWhole(i))
      i += columns;
    if (i >= numbers.size())
      return steps;
  }
  return kLargest;
}

std::optional<Codes> codesOf(ArrayRef<double> numbers, int64_t columns) {
  Codes made{std::vector<int8_t>(numbers.size()), std::vector<float>(columns)};
  for (int64_t column = 0; column < columns; ++column) {
    double largest = 0;
    for (size_t i = column; i < numbers.size(); i += columns) {
      if (!std::isfinite(numbers[i]))
        return std::nullopt;
      largest = std::max(largest, std::abs(numbers[i]));
    }
    if (largest == 0)
      continue;
    double steps = stepsOf(numbers, column, columns, largest);
    made.factors[column] = static_cast<float>(largest / steps / kLargest);
    for (size_t i = column; i < numbers.size(); i += columns)
      made.codes[i] = static_cast<int8_t>(std::nearbyint(numbers[i] / largest * steps));
  }
  return made;
}

/// The weights if they are integers in blocks in which rows can be rounded, too; else null.
StoredAttr blocksOf(MatmulOp op) {
  constexpr int64_t kStep = 16, kMost = 256; // sums of a block are exact in f32
  StoredAttr stored = storedForm(op);
  if (!stored || !stored.getScales() || !isa<IntegerType>(stored.getCodes().getElementType()) ||
      stored.getColumns() < kLeastColumns)
    return {};
  return stored.getBlock() % kStep == 0 && stored.getBlock() <= kMost ? stored : StoredAttr();
}

/// Whether the product may become one of integers.
bool isWanted(MatmulOp op) {
  DimVector a = dimsOf(op.getA()), b = dimsOf(op.getB());
  if (!elementOf(op.getA()).isF32() || !elementOf(op.getB()).isF32() || a.size() < 2 ||
      b.size() > a.size())
    return false;
  auto depth = b[b.size() - 2].constant(), columns = b.back().constant();
  return depth && columns && *depth >= kLeastDepth && *depth <= kMostDepth &&
         *columns >= kLeastColumns && elementCount(b) == Dim(*depth * *columns) && !readSides(op);
}

template <typename T>
Value constantOf(Build &build, ArrayRef<int64_t> sizes, Type element, ArrayRef<T> numbers) {
  auto tensor = RankedTensorType::get(sizes, element);
  ArrayRef<char> bytes(reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(T));
  return build.make<ConstantOp>(tensor, constantAttr(tensor, bytes));
}

/// Rows as integers, which are 128 more where they have no sign, and the largest number of each.
std::pair<Value, Value> rowsOf(Build &build, Value x, bool isUnsigned) {
  DimVector dims = dimsOf(x);
  Value magnitudes = build.unary<AbsOp>(x);
  Value most = build.make<ReduceMaxOp>(magnitudes, ArrayRef<int64_t>{int64_t(dims.size()) - 1},
                                       /*keepDims=*/true);
  Value isZero = build.compare<EqualOp>(most, build.zeros(most));
  most = build.select(isZero, build.like(most, 1), most);
  // Adding the largest number times 0 makes NaN of an infinity.
  most = build.add(most, build.mul(most, 0));
  Value shares = build.div(x, build.broadcast(most, dims)); // a 127th of `most` may be subnormal
  Value places = build.unary<RoundOp>(build.mul(shares, kLargest));
  double zero = isUnsigned ? 128 : 0;
  if (isUnsigned)
    places = build.add(places, zero);
  places = build.binary<MaxOp>(places, build.like(places, zero - 128));
  places = build.binary<MinOp>(places, build.like(places, zero + kLargest));
  auto sign = isUnsigned ? IntegerType::Unsigned : IntegerType::Signless;
  Value codes = build.cast(places, IntegerType::get(x.getContext(), 8, sign));
  Value wide = build.cast(codes, build.builder.getI32Type());
  return {isUnsigned ? build.sub(wide, build.like(wide, zero)) : wide, most};
}

struct DynamicPass : impl::DynamicPassBase<DynamicPass> {
  DynamicPass(Integers wanted, bool prefersUnsigned)
      : wanted(std::move(wanted)), prefersUnsigned(prefersUnsigned) {}

  void runOnOperation() override {
    bool areAsked = wanted.all || !wanted.names.empty();
    SmallVector<std::pair<MatmulOp, bool>> products; // and whether the model allows integers
    getOperation().walk([&](MatmulOp op) {
      bool isAllowed = op->removeAttr(kAllowsIntegers) && wanted.allowed;
      if (isAllowed || areAsked)
        products.push_back({op, isAllowed});
    });
    NamedAttrList made;
    Builder builder(&getContext());
    for (auto [op, isAllowed] : products) {
      std::string name = sourceName(op->getLoc());
      if (name.empty())
        continue;
      bool isAsked = wanted.all || wanted.names.count(name), isMade = isAsked || isAllowed;
      if (StoredAttr stored = wanted.takesBlocks ? blocksOf(op) : nullptr) {
        if (isMade) {
          setStored(op, stored);
          op.setBlock(stored.getBlock());
        }
      } else {
        auto numbers = areAsked && isWanted(op) ? numbersOf(op.getB()) : std::nullopt;
        if (!numbers)
          continue;
        isMade = isAsked && replace(op, reference::load<double>(*numbers));
      }
      if (auto known = dyn_cast_if_present<BoolAttr>(made.get(name)))
        isMade |= known.getValue();
      made.set(name, builder.getBoolAttr(isMade));
    }
    if (!made.empty())
      getOperation()->setAttr(kIntegers, made.getDictionary(&getContext()));
  }

private:
  bool replace(MatmulOp op, ArrayRef<double> numbers) {
    int64_t columns = *dimsOf(op.getB()).back().constant();
    auto weights = codesOf(numbers, columns);
    if (!weights)
      return false;
    OpBuilder builder(op);
    Build build(builder, op);
    auto [rows, most] = rowsOf(build, op.getA(), prefersUnsigned);
    int64_t depth = numbers.size() / columns;
    DimVector sizes = dimsOf(op.getResult());
    Value codes =
        build.cast(constantOf<int8_t>(build, {depth, columns}, builder.getI8Type(), weights->codes),
                   builder.getI32Type());
    codes = build.reshape(codes, dimsOf(op.getB()));
    Value sums = build.typed<MatmulOp>(sizes, builder.getI32Type(), rows, codes);
    Value scales = constantOf<float>(build, {columns}, builder.getF32Type(), weights->factors);
    // Their product overflows only where the result does.
    Value factors =
        build.mul(build.broadcast(most, sizes), build.along(scales, sizes.size() - 1, sizes));
    op.replaceAllUsesWith(build.mul(build.cast(sums, builder.getF32Type()), factors));
    op.erase();
    return true;
  }

  Integers wanted;
  bool prefersUnsigned;
};

} // namespace

std::unique_ptr<Pass> createDynamicPass(Integers wanted, bool prefersUnsigned) {
  return std::make_unique<DynamicPass>(std::move(wanted), prefersUnsigned);
}

} // namespace heddle::simplify
