// Fold: compute at compile time what depends on constants alone, with the interpreter.
//
//   %c = graph.add %a, %b   (a, b constant, or broadcasts of constants)   =>   graph.constant
//
// Leaves alone: results above the limit, but for transposes that take a constant's place; results
// that grow beyond 4 times their operands and 1 MiB; growing broadcasts and what is made of such
// alone, which algebra does before it grows; iota; products so long that the interpreter would be
// felt; ops on lists and strings; ops that the interpreter refuses, whose error belongs to the run.

#include "compiler/reference/Interpreter.h"
#include "compiler/simplify/Passes.h"
#include "compiler/simplify/Rewriting.h"
#include "compiler/support/Mapped.h"

#include <numeric>

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

#define GEN_PASS_DEF_FOLDPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

constexpr int64_t kGrowthBytes = int64_t(1) << 20;
constexpr int64_t kGrowthFactor = 4;
constexpr int64_t kWorkLimit = int64_t(1) << 27;
/// 0.2 s: the interpreter has them in blocks (bench/notes/2026-11-22-other-networks.md).
constexpr int64_t kMatmulWorkLimit = int64_t(1) << 30;

/// Bytes of a static tensor type, saturating; nullopt for a dynamic one.
std::optional<int64_t> bytesOfTensor(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (!tensor.hasStaticShape() || !storageOf(tensor.getElementType()).isIntOrFloat())
    return std::nullopt;
  int64_t bytes = bytesOf(tensor.getElementType());
  for (int64_t size : tensor.getShape())
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return std::numeric_limits<int64_t>::max();
  return bytes;
}

/// How many products one element of the result sums.
int64_t termsOf(Operation *op) {
  auto count = [](Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); };
  if (auto matmul = dyn_cast<MatmulOp>(op))
    return *dimsOf(matmul.getA()).back().constant();
  if (isa<ConvOp, ConvTransposeOp>(op)) {
    Value w = op->getOperand(1);
    return count(w) / std::max<int64_t>(1, *dimsOf(w)[0].constant());
  }
  if (auto gradient = dyn_cast<ConvFilterGradientOp>(op))
    return count(gradient.getDy()) / std::max<int64_t>(1, *dimsOf(op->getResult(0))[0].constant());
  auto placesOf = [](ArrayRef<int64_t> window) {
    return std::accumulate(window.begin(), window.end(), int64_t(1), std::multiplies<>());
  };
  if (auto pool = dyn_cast<PoolOp>(op))
    return placesOf(pool.getWindow());
  if (auto unpool = dyn_cast<UnpoolOp>(op))
    return placesOf(unpool.getWindow());
  return 1;
}

/// The wider form of a constant that a reduction sums: all of it may be above the limit, while the
/// sums, of integer weights for their zeros, are few.
CastOp widenedUnder(Operation *op, Value operand) {
  auto cast = operand.getDefiningOp<CastOp>();
  bool isSummed = cast && !combinedAxes(op).empty() && cast.getX().getDefiningOp<ConstantOp>();
  return isSummed ? cast : CastOp();
}

class Folder {
public:
  Folder(ModuleOp module, int64_t limitBytes) : module(module), limitBytes(limitBytes) {}

  void run() {
    module.walk([&](Operation *op) { fold(op); });
    for (Operation *op : llvm::reverse(dead))
      op->erase();
    applyRefinement(module, refinement);
  }

private:
  bool isWorthFolding(Operation *op) {
    if (op->getNumOperands() == 0 || op->getNumRegions() != 0 || op->getNumResults() == 0 ||
        !isa_and_nonnull<GraphDialect>(op->getDialect()) ||
        !(isMemoryEffectFree(op) || bindsSizes(op)) ||
        (op->hasTrait<Hosted>() && !op->hasTrait<Routine>()) ||
        op->hasTrait<OpTrait::IsTerminator>() || !llvm::all_of(op->getOperands(), [&](Value read) {
          return isConstant(read) || widenedUnder(op, read);
        }))
      return false;
    bool areAllBroadcasts = llvm::all_of(
        op->getOperands(), [](Value operand) { return isa<BroadcastOp>(operand.getDefiningOp()); });
    int64_t from = 0;
    for (Value operand : op->getOperands()) {
      CastOp widened = widenedUnder(op, operand);
      Value constant = widened ? widened.getX() : constantUnder(operand).getResult();
      auto bytes = bytesOfTensor(constant.getType());
      auto whole = widened ? bytes : bytesOfTensor(operand.getType());
      if (!bytes || !whole || *whole > limitBytes)
        return false;
      from += *bytes;
    }
    for (Type type : op->getResultTypes()) {
      auto bytes = bytesOfTensor(type);
      if (!bytes)
        return bindsSizes(op);
      if (*bytes > limitBytes || (*bytes > kGrowthBytes && *bytes / kGrowthFactor > from) ||
          ((isa<BroadcastOp>(op) || areAllBroadcasts) && *bytes > from))
        return false;
      int64_t most = isa<MatmulOp>(op) ? kMatmulWorkLimit : kWorkLimit;
      if (*bytes / bytesOf(cast<RankedTensorType>(type).getElementType()) >
          most / std::max<int64_t>(1, termsOf(op)))
        return false;
    }
    return true;
  }

  std::optional<reference::Tensor> tensorOf(Value value) {
    Operation *made = value.getDefiningOp();
    if (isa<BroadcastOp, CastOp>(made)) {
      auto source = tensorOf(made->getOperand(0));
      auto result = source ? evaluate(made, {*source}) : std::nullopt;
      return result ? std::optional(result->front()) : std::nullopt;
    }
    ElementsAttr attr = value.getDefiningOp<ConstantOp>().getValue();
    auto storage = std::make_shared<std::vector<char>>();
    ArrayRef<char> bytes = constantBytes(attr, *storage);
    auto tensor =
        reference::Tensor::borrow(elementOf(value), attr.getShapedType().getShape(), bytes);
    if (!storage->empty())
      tensor.owned = storage;
    return tensor;
  }

  std::optional<std::vector<reference::Tensor>> evaluate(Operation *op,
                                                         ArrayRef<reference::Tensor> operands) {
    reference::Environment environment(reference::Limits{kBudgetFactor * limitBytes});
    auto results = reference::evaluate(op, operands, environment);
    if (results)
      return std::move(*results);
    llvm::consumeError(results.takeError());
    return std::nullopt;
  }

  /// Null if it takes a copy.
  static ElementsAttr reshaped(ElementsAttr value, RankedTensorType type) {
    if (auto bits = dyn_cast<BitsAttr>(value)) {
      auto kept = RankedTensorType::get(type.getShape(), bits.getCodes().getElementType());
      return constantAttr(type, reshaped(bits.getCodes(), kept));
    }
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
      return DenseResourceElementsAttr::get(type, resource.getRawHandle());
    if (auto dense = dyn_cast<DenseElementsAttr>(value))
      return dense.reshape(type);
    auto stored = dyn_cast<StoredAttr>(value);
    if (!stored || type.getShape().take_back(2) != stored.getType().getShape().take_back(2))
      return {};
    return StoredAttr::get(type.getContext(), type, stored.getCodes(), stored.getScales(),
                           stored.getZeros());
  }

  /// Reshapes a constant without a copy: weights stay where they are mapped.
  bool foldReshape(Operation *op) {
    auto reshape = dyn_cast<ReshapeOp>(op);
    auto constant = reshape ? reshape.getX().getDefiningOp<ConstantOp>() : nullptr;
    if (!constant || !cast<RankedTensorType>(reshape.getType()).hasStaticShape())
      return false;
    auto type = cast<RankedTensorType>(reshape.getType());
    ElementsAttr attr = reshaped(constant.getValue(), type);
    if (!attr)
      return false;
    OpBuilder builder(op);
    reshape.getResult().replaceAllUsesWith(builder.create<ConstantOp>(op->getLoc(), type, attr));
    dead.push_back(op);
    return true;
  }

  /// Transposes constants of any size if the result replaces them: weights that a product reads
  /// transposed.
  bool foldTranspose(Operation *op) {
    auto transpose = dyn_cast<TransposeOp>(op);
    auto constant = transpose ? transpose.getX().getDefiningOp<ConstantOp>() : nullptr;
    auto value =
        constant ? dyn_cast<DenseResourceElementsAttr>(codesOf(constant.getValue())) : nullptr;
    if (!value ||
        !(constant->hasOneUse() || *bytesOfTensor(op->getResult(0).getType()) <= limitBytes))
      return false;
    OpBuilder builder(op);
    auto type = cast<RankedTensorType>(transpose.getType());
    ElementsAttr result = constantAttr(type, permuted(value, transpose.getPermutation()));
    support::letPagesGo(value.getRawHandle().getBlob()->getData());
    transpose.getResult().replaceAllUsesWith(
        builder.create<ConstantOp>(op->getLoc(), type, result));
    dead.push_back(op);
    return true;
  }

  void fold(Operation *op) {
    if (foldReshape(op) || foldTranspose(op) || !isWorthFolding(op))
      return;
    std::vector<reference::Tensor> operands;
    for (Value operand : op->getOperands()) {
      auto tensor = tensorOf(operand);
      if (!tensor)
        return;
      operands.push_back(*tensor);
    }
    auto results = evaluate(op, operands);
    for (const reference::Tensor &read : operands)
      support::letPagesGo(read.bytes());
    if (!results)
      return;
    for (auto &result : *results)
      if (static_cast<int64_t>(result.bytes().size()) > limitBytes)
        return;
    OpBuilder builder(op);
    for (auto [value, result] : llvm::zip(op->getResults(), *results)) {
      DimVector sizes(result.shape.begin(), result.shape.end());
      refine(refinement, dimsOf(value), sizes);
      auto type = RankedTensorType::get(result.shape, result.element);
      value.replaceAllUsesWith(
          builder.create<ConstantOp>(op->getLoc(), type, constantAttr(type, result.bytes())));
    }
    dead.push_back(op);
  }

  static constexpr int64_t kBudgetFactor = 8; // operands, broadcast operands and results together
  ModuleOp module;
  int64_t limitBytes;
  std::vector<Operation *> dead;
  Refinement refinement;
};

struct FoldPass : impl::FoldPassBase<FoldPass> {
  using FoldPassBase::FoldPassBase;
  void runOnOperation() override { Folder(getOperation(), limitBytes).run(); }
};

} // namespace
} // namespace heddle::simplify
