// heddle-opt: runs single passes of the compiler on MLIR text. For developers and for the tests
// beside the passes.

#include "compiler/graph/Graph.h"
#include "compiler/partition/Partition.h"
#include "compiler/simplify/Passes.h"
#include "compiler/target/Backend.h"
#include "tools/heddle-opt/passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

namespace heddle::opt {
#define GEN_PASS_REGISTRATION
#include "tools/heddle-opt/Passes.h.inc"
} // namespace heddle::opt

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<heddle::graph::GraphDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect,
                  mlir::linalg::LinalgDialect, mlir::tensor::TensorDialect, mlir::scf::SCFDialect,
                  mlir::memref::MemRefDialect, mlir::vector::VectorDialect, mlir::math::MathDialect,
                  mlir::affine::AffineDialect, mlir::LLVM::LLVMDialect,
                  heddle::program::ProgramDialect, mlir::transform::TransformDialect>();
  heddle::opt::registerGeneratedPasses();
  for (const heddle::target::Backend *backend : heddle::target::backends())
    backend->registerPasses();
  heddle::simplify::registerSimplifyPasses();
  heddle::partition::registerPartitionPasses();
  mlir::registerCanonicalizerPass(); // for tests, whose text it makes shorter
  mlir::registerCSEPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Heddle's pass driver", registry));
}
