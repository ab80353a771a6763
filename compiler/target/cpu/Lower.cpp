// Lower: the order of rewrites from structured code to the LLVM dialect. Everything after the
// functions' signatures runs per function, so that large models use all cores.

#include "compiler/target/cpu/Lower.h"

#include "compiler/target/floats/NarrowFloats.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToFuncs/MathToFuncs.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Rewrite/PatternApplicator.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace heddle::cpu {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#define GEN_PASS_DEF_LOWERPROGRAMPASS
#define GEN_PASS_DEF_EXPANDARITHMETICPASS
#define GEN_PASS_DEF_LOWERLOOPSPASS
#define GEN_PASS_DEF_CALLLIBMPASS
#define GEN_PASS_DEF_CONVERTSIGNATURESPASS
#define GEN_PASS_DEF_FLATTENVECTORSPASS
#define GEN_PASS_DEF_CONVERTBODIESPASS
#define GEN_PASS_DEF_MOVEHALVESPASS
#include "compiler/target/cpu/Passes.h.inc"

namespace {

struct LowerProgramPass : impl::LowerProgramPassBase<LowerProgramPass> {
  using LowerProgramPassBase::LowerProgramPassBase;
  LowerProgramPass() = default;
  explicit LowerProgramPass(const Target &given) : given(&given) {}
  void runOnOperation() override {
    auto chosen = given ? *given : targetFor(target);
    if (!chosen) {
      getOperation()->emitError() << llvm::toString(chosen.takeError());
      return signalPassFailure();
    }
    auto lowered = getOperation()->walk<WalkOrder::PreOrder>([&](func::FuncOp function) {
      bool hasFailed = failed(lowerProgram(function, *chosen));
      return hasFailed ? WalkResult::interrupt() : WalkResult::skip();
    });
    if (lowered.wasInterrupted())
      signalPassFailure();
  }
  const Target *given = nullptr;
};

struct ExpandArithmeticPass : impl::ExpandArithmeticPassBase<ExpandArithmeticPass> {
  using ExpandArithmeticPassBase::ExpandArithmeticPassBase;
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    target::populateNarrowFloatPatterns(set, f16c, roundsFactors);
    populateMathAlgebraicSimplificationPatterns(set);
    populateExpPatterns(set, {avx512, keepsSubnormals});
    populateTrigonometryPatterns(set);
    populatePowerPatterns(set);
    populateExtremesPatterns(set);
    populateExpandRsqrtPattern(set);
    arith::populateCeilFloorDivExpandOpsPatterns(set);
    if (x86)
      populateConversionPatterns(set);
    populateQuotientPatterns(set, fma);
    if (fma)
      populateRemainderPatterns(set);
    else
      populateExpandFmaFPattern(set);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }
  void runOnOperation() override {
    if (failed(target::applyAll(getOperation(), patterns)))
      signalPassFailure();
  }
  FrozenRewritePatternSet patterns;
};

struct LowerLoopsPass : impl::LowerLoopsPassBase<LowerLoopsPass> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    populateSCFToControlFlowConversionPatterns(set);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }
  void runOnOperation() override {
    struct Rewriter : PatternRewriter {
      using PatternRewriter::PatternRewriter;
    } rewriter(&getContext());
    PatternApplicator applicator(patterns);
    applicator.applyDefaultCostModel();
    SmallVector<Operation *> loops;
    for (Region &region : getOperation()->getRegions())
      collect(region, loops);
    for (Operation *op : loops) {
      rewriter.setInsertionPoint(op);
      if (failed(applicator.matchAndRewrite(op, rewriter)))
        return signalPassFailure();
    }
  }

private:
  /// A loop before those in it, which its rewrite expects as they were, and after those that
  /// follow.
  static void collect(Region &region, SmallVectorImpl<Operation *> &loops) {
    for (Block &block : llvm::reverse(region))
      for (Operation &op : llvm::reverse(block)) {
        if (isa<scf::WhileOp>(op))
          continue; // its rewrite reads what it has erased, which only a conversion keeps
        if (isa<scf::SCFDialect>(op.getDialect()) && op.getNumRegions() > 0)
          loops.push_back(&op);
        for (Region &inner : op.getRegions())
          collect(inner, loops);
      }
  }

  FrozenRewritePatternSet patterns;
};

struct CallLibmPass : impl::CallLibmPassBase<CallLibmPass> {
  void runOnOperation() override {
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalOp<math::AcosOp, math::AcoshOp, math::AsinOp, math::AsinhOp, math::Atan2Op,
                        math::AtanOp, math::AtanhOp, math::CbrtOp, math::CoshOp, math::ErfOp,
                        math::SinhOp, math::TanOp, math::TanhOp>();
    RewritePatternSet patterns(&getContext());
    populateMathToLibmConversionPatterns(patterns);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

struct ConvertSignaturesPass : impl::ConvertSignaturesPassBase<ConvertSignaturesPass> {
  void runOnOperation() override {
    LLVMTypeConverter converter(&getContext());
    LLVMConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalOp<func::FuncOp, func::CallOp, func::ReturnOp, func::ConstantOp,
                        func::CallIndirectOp>();
    RewritePatternSet patterns(&getContext());
    populateFuncToLLVMConversionPatterns(converter, patterns);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

struct FlattenVectorsPass : impl::FlattenVectorsPassBase<FlattenVectorsPass> {
  LogicalResult initialize(MLIRContext *context) override {
    using namespace vector;
    RewritePatternSet set(context);
    populateVectorToVectorCanonicalizationPatterns(set);
    populateVectorBitCastLoweringPatterns(set);
    populateVectorBroadcastLoweringPatterns(set);
    populateVectorContractLoweringPatterns(set, VectorTransformsOptions());
    populateVectorMaskOpLoweringPatterns(set);
    populateVectorShapeCastLoweringPatterns(set);
    populateVectorInterleaveLoweringPatterns(set);
    populateVectorTransposeLoweringPatterns(set, VectorTransformsOptions());
    populateVectorTransferLoweringPatterns(set, /*maxTransferRank=*/1);
    populateVectorMaskMaterializationPatterns(set, /*force32BitVectorIndices=*/true);
    populateVectorInsertExtractStridedSliceTransforms(set);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }
  void runOnOperation() override { (void)applyPatternsAndFoldGreedily(getOperation(), patterns); }
  FrozenRewritePatternSet patterns;
};

struct ConvertBodiesPass : impl::ConvertBodiesPassBase<ConvertBodiesPass> {
  void runOnOperation() override {
    LLVMTypeConverter converter(&getContext());
    LLVMConversionTarget target(getContext());
    RewritePatternSet patterns(&getContext());
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    index::populateIndexToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns, /*reassociateFPReductions=*/false,
                                           /*force32BitVectorIndices=*/true);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    target.addLegalOp<LLVM::LLVMFuncOp>();
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

struct MoveHalvesPass : impl::MoveHalvesPassBase<MoveHalvesPass> {
  using MoveHalvesPassBase::MoveHalvesPassBase;
  bool isMoved(Type type) const {
    return (movesF16 && type.isF16()) || (movesBF16 && type.isBF16());
  }
  void runOnOperation() override {
    Type bits = IntegerType::get(&getContext(), 16);
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](FloatType type) -> std::optional<Type> {
      return isMoved(type) ? std::optional(bits) : std::nullopt;
    });
    replacer.addReplacement([&](FloatAttr number) -> std::optional<Attribute> {
      if (!isMoved(number.getType()))
        return std::nullopt;
      return IntegerAttr::get(bits, number.getValue().bitcastToAPInt());
    });
    replacer.addReplacement([&](DenseElementsAttr numbers) -> std::optional<Attribute> {
      if (!isMoved(numbers.getElementType()))
        return std::nullopt;
      return numbers.bitcast(bits);
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false, /*replaceTypes=*/true);
  }
};

void buildPipeline(PassManager &manager, const cpu::Target &target) {
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(std::make_unique<LowerProgramPass>(target));
  functions.addPass(createConvertVectorToSCFPass());
  functions.addPass(createLowerAffinePass());
  functions.addPass(
      createExpandArithmeticPass({target.f16c, target.avx512, target.fma, target.keepsSubnormals,
                                  target.bf16 && target.isX86(), target.isX86()}));
  functions.addPass(createCSEPass());
  manager.addPass(createConvertMathToFuncs()); // powers of integers
  manager.addPass(createCallLibmPass());
  OpPassManager &loops = manager.nest<func::FuncOp>();
  loops.addPass(createLowerLoopsPass());
  loops.addPass(createConvertSCFToCFPass()); // the remaining loops, which have a condition
  loops.addPass(memref::createExpandStridedMetadataPass());
  loops.addPass(createLowerAffinePass());
  manager.addPass(createConvertSignaturesPass());
  OpPassManager &bodies = manager.nest<LLVM::LLVMFuncOp>();
  bodies.addPass(createFlattenVectorsPass());
  bodies.addPass(createConvertBodiesPass());
  bodies.addPass(createReconcileUnrealizedCastsPass());
  if (!target.bf16 || !target.f16c)
    bodies.addPass(createMoveHalvesPass({!target.f16c, !target.bf16}));
}

} // namespace

llvm::Error lowerToLLVM(ModuleOp module, const cpu::Target &target) {
  std::string first;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    if (first.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      llvm::raw_string_ostream(first) << diagnostic.getLocation() << ": " << diagnostic.str();
    return success();
  });
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  buildPipeline(manager, target);
  if (failed(manager.run(module)))
    return makeError(ErrorCode::Internal,
                     "internal error: kernels could not be lowered to LLVM: " + first);
  return llvm::Error::success();
}

void registerPasses() { registerGeneratedPasses(); }

} // namespace heddle::cpu
