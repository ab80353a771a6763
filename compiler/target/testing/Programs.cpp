// Programs: texts of hand-made programs, and the runtime's part of a call played by this file.

#include "compiler/target/testing/Programs.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace heddle::testing {

void loadDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect,
                      LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                      vector::VectorDialect>();
}

program::Program parseProgram(MLIRContext &context, llvm::StringRef text) {
  loadDialects(context);
  program::Program program;
  program.module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(program.module);
  return program;
}

cpu::Target host() { return llvm::cantFail(cpu::targetFor("host")); }

/// y[i] = 2 x[i] + w[0]; a task is 8 elements, the last ones go one by one.
static constexpr const char *scaleText = R"mlir(
func.func private @scale(%args: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) {
  %xs = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %ys = llvm.getelementptr %args[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %ws = llvm.getelementptr %args[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %ns = llvm.getelementptr %args[4] : (!llvm.ptr) -> !llvm.ptr, i64
  %x = llvm.load %xs : !llvm.ptr -> !llvm.ptr
  %y = llvm.load %ys : !llvm.ptr -> !llvm.ptr
  %w = llvm.load %ws : !llvm.ptr -> !llvm.ptr
  %n = llvm.load %ns : !llvm.ptr -> i64
  %one = arith.constant 1 : i64
  %eight = arith.constant 8 : i64
  %bias = llvm.load %w : !llvm.ptr -> f32
  %lanes = vector.splat %bias : vector<8xf32>
  %two = arith.constant dense<2.0> : vector<8xf32>
  scf.for %task = %begin to %end step %one : i64 {
    %at = arith.muli %task, %eight : i64
    %next = arith.addi %at, %eight : i64
    %whole = arith.cmpi sle, %next, %n : i64
    scf.if %whole {
      %from = llvm.getelementptr %x[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %to = llvm.getelementptr %y[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %from {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
      %r = vector.fma %v, %two, %lanes : vector<8xf32>
      llvm.store %r, %to {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
    } else {
      scf.for %i = %at to %n step %one : i64 {
        %from = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %to = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %v = llvm.load %from : !llvm.ptr -> f32
        %s = arith.addf %v, %v : f32
        %r = arith.addf %s, %bias : f32
        llvm.store %r, %to : f32, !llvm.ptr
      }
    }
  }
  return
}
func.func @heddle_program_sizes(%symbols: !llvm.ptr, %arena: !llvm.ptr, %dims: !llvm.ptr,
                                   %values: !llvm.ptr) -> i32 {
  %zero = arith.constant 0 : i64
  %limit = arith.constant 1000000 : i64
  %n = llvm.load %symbols : !llvm.ptr -> i64
  llvm.store %zero, %arena : i64, !llvm.ptr
  llvm.store %n, %dims : i64, !llvm.ptr
  %large = arith.cmpi sgt, %n, %limit : i64
  %status = arith.extui %large : i1 to i32
  return %status : i32
}
func.func @heddle_program_run(%call: !llvm.ptr) -> i32 {
  %zero = arith.constant 0 : i64
  %seven = arith.constant 7 : i64
  %eight = arith.constant 8 : i64
  %slots = arith.constant 5 : i64
  %args = llvm.alloca %slots x i64 : (i64) -> !llvm.ptr
  %inputs.at = llvm.getelementptr %call[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %outputs.at = llvm.getelementptr %call[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %symbols.at = llvm.getelementptr %call[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %weights.at = llvm.getelementptr %call[40] : (!llvm.ptr) -> !llvm.ptr, i8
  %status.at = llvm.getelementptr %call[48] : (!llvm.ptr) -> !llvm.ptr, i8
  %launch.at = llvm.getelementptr %call[56] : (!llvm.ptr) -> !llvm.ptr, i8
  %inputs = llvm.load %inputs.at : !llvm.ptr -> !llvm.ptr
  %outputs = llvm.load %outputs.at : !llvm.ptr -> !llvm.ptr
  %symbols = llvm.load %symbols.at : !llvm.ptr -> !llvm.ptr
  %weights = llvm.load %weights.at : !llvm.ptr -> !llvm.ptr
  %launch = llvm.load %launch.at : !llvm.ptr -> !llvm.ptr
  %x = llvm.load %inputs : !llvm.ptr -> !llvm.ptr
  %y = llvm.load %outputs : !llvm.ptr -> !llvm.ptr
  %n = llvm.load %symbols : !llvm.ptr -> i64
  %a1 = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %a2 = llvm.getelementptr %args[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %a3 = llvm.getelementptr %args[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %a4 = llvm.getelementptr %args[4] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %call, %args : !llvm.ptr, !llvm.ptr
  llvm.store %x, %a1 : !llvm.ptr, !llvm.ptr
  llvm.store %y, %a2 : !llvm.ptr, !llvm.ptr
  llvm.store %weights, %a3 : !llvm.ptr, !llvm.ptr
  llvm.store %n, %a4 : i64, !llvm.ptr
  %more = arith.addi %n, %seven : i64
  %tasks = arith.divui %more, %eight : i64
  %kernel.f = func.constant @scale : (!llvm.ptr, i64, i64, !llvm.ptr) -> ()
  %kernel = builtin.unrealized_conversion_cast %kernel.f
    : (!llvm.ptr, i64, i64, !llvm.ptr) -> () to !llvm.ptr
  llvm.call %launch(%call, %kernel, %args, %tasks, %zero)
    : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64) -> ()
  %status = llvm.load %status.at : !llvm.ptr -> i32
  return %status : i32
}
)mlir";

program::Program scaleProgram(MLIRContext &context, std::vector<float> weights) {
  program::Program program = parseProgram(context, scaleText);
  program.model = "models/scale-v1.onnx";
  program.inputs = {{"x", 1, {{program::kDynamic, 0, "n"}}, {}, {}}};
  program.outputs = {{"y", 1, {{program::kDynamic, 0, "n"}}, {}, {}}};
  program.symbols = {"n"};
  program.messages = {"n is %lld, more than %lld"};
  program.kernels = {"scale"};
  const char *bytes = reinterpret_cast<const char *>(weights.data());
  program.weights.own(std::vector<char>(bytes, bytes + weights.size() * sizeof(float)));
  return program;
}

static void launchHere(heddle_call_t *, heddle_kernel_fn kernel, const int64_t *args, int64_t tasks,
                       int64_t) {
  kernel(args, 0, tasks / 2, nullptr);
  kernel(args, tasks / 2, tasks, nullptr);
}

std::vector<float> runScale(const heddle_executable_t &executable, const std::vector<float> &x) {
  int64_t symbol = x.size(), arena = -1, dim = -1;
  int64_t values[2];
  EXPECT_EQ(executable.sizes(&symbol, &arena, &dim, values), 0);
  EXPECT_EQ(arena, 0);
  EXPECT_EQ(dim, symbol);
  std::vector<float> y(dim);
  const void *inputs[] = {x.data()};
  void *outputs[] = {y.data()};
  heddle_call_t call{};
  call.inputs = inputs;
  call.outputs = outputs;
  call.symbols = &symbol;
  call.weights = executable.weights;
  call.launch = launchHere;
  EXPECT_EQ(executable.run(&call), 0);
  return y;
}

std::shared_ptr<Kernel> Kernel::compile(const std::string &body, const cpu::Target &target) {
  auto kernel = std::make_shared<Kernel>();
  std::string text = "func.func @heddle_program_run(%call: !llvm.ptr) -> i32 {\n"
                     "  %x = llvm.load %call : !llvm.ptr -> !llvm.ptr\n"
                     "  %second = llvm.getelementptr %call[8] : (!llvm.ptr) -> !llvm.ptr, i8\n"
                     "  %y = llvm.load %second : !llvm.ptr -> !llvm.ptr\n" +
                     body +
                     "  %ok = arith.constant 0 : i32\n  return %ok : i32\n}\n"
                     "func.func @heddle_program_sizes(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr, "
                     "%d: !llvm.ptr) -> i32 {"
                     "\n  %ok = arith.constant 0 : i32\n  return %ok : i32\n}\n";
  program::Program program = parseProgram(kernel->context, text);
  program.model = "kernel";
  if (!program.module)
    return nullptr;
  auto objects = cpu::emitObjects(program, target, 2, 1);
  if (!objects) {
    ADD_FAILURE() << llvm::toString(objects.takeError());
    return nullptr;
  }
  kernel->loaded = llvm::cantFail(cpu::load(program, target, *objects));
  return kernel;
}

void Kernel::operator()(const void *x, void *y) const {
  // The kernel looks at the first two pointers of its call only.
  const void *pointers[2] = {x, y};
  loaded->executable()->run(reinterpret_cast<heddle_call_t *>(pointers));
}

} // namespace heddle::testing
