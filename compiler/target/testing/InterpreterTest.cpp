// InterpreterTest: what programs mean, and accesses that no run may make.

#include "compiler/target/testing/interpreter/Interpreter.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace heddle;
using interpreter::Bits;

namespace {

class Interpreting : public testing::Test {
protected:
  Interpreting() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect, scf::SCFDialect,
                        vector::VectorDialect, cf::ControlFlowDialect, program::ProgramDialect>();
  }

  /// Makes the functions ready; what refuses them.
  std::string make(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    auto made = interpreter::Code::make(*module);
    if (!made)
      return llvm::toString(made.takeError());
    code = std::move(*made);
    return "";
  }
  /// Calls @main with the address of four floats and of four that are a device's; what stopped it.
  std::string run(const std::string &text) {
    if (std::string refused = make(text); !refused.empty())
      return refused;
    interpreter::Run run(*code, nullptr);
    run.memory.add(floats, sizeof floats);
    run.memory.add(others, sizeof others, "near");
    auto addressOf = [](const void *data) { return Bits{uint64_t(uintptr_t(data))}; };
    run.enter(*code->find("main"), {addressOf(floats), addressOf(others)});
    return run.problem.substr(
        run.problem.find("): ") == std::string::npos ? 0 : run.problem.find("): ") + 3);
  }
  /// Runs a body that has %p and %q.
  std::string runBody(const std::string &body) {
    return run("func.func @main(%p: !program.ptr, %q: !program.ptr<\"near\">) {\n" + body +
               "\nreturn\n}");
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<interpreter::Code> code;
  alignas(64) float floats[4] = {1, 2, 3, 4}, others[4] = {5, 6, 7, 8};
};

TEST_F(Interpreting, computesLanesOfBothMemories) {
  EXPECT_EQ(runBody(R"(
    %x = program.load %p align 4 : vector<4xf32>
    %y = program.load %q in "near" align 4 : vector<4xf32>
    %z = math.fma %x, %y, %x : vector<4xf32>
    program.store %z, %q in "near" align 4 : vector<4xf32>)"),
            "");
  EXPECT_EQ(std::vector<float>(others, others + 4), (std::vector<float>{6, 14, 24, 36}));
}

TEST_F(Interpreting, carriesValuesThroughLoopsAndBranches) {
  EXPECT_EQ(runBody(R"(
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %four = arith.constant 4 : i64
    %none = arith.constant 0.0 : f32
    %limit = arith.constant 2.5 : f32
    %sum = scf.for %i = %zero to %four step %one iter_args(%s = %none) -> (f32) : i64 {
      %a = program.at %p[%i] : f32
      %x = program.load %a align 4 : f32
      %large = arith.cmpf ogt, %x, %limit : f32
      %t = scf.if %large -> (f32) {
        %u = arith.addf %s, %x : f32
        scf.yield %u : f32
      } else {
        scf.yield %s : f32
      }
      scf.yield %t : f32
    }
    program.store %sum, %p align 4 : f32)"),
            "");
  EXPECT_EQ(floats[0], 7);
}

TEST_F(Interpreting, transfersBetweenSpaces) {
  EXPECT_EQ(runBody(R"(
    %bytes = arith.constant 8 : i64
    program.transfer %p, %q in "near", %bytes)"),
            "");
  EXPECT_EQ(std::vector<float>(floats, floats + 4), (std::vector<float>{5, 6, 3, 4}));
}

TEST_F(Interpreting, touchesMaskedLanesAlone) {
  EXPECT_EQ(runBody(R"(
    %two = arith.constant 2 : i64
    %a = program.at %p[%two] : f32
    %mask = arith.constant dense<[true, true, false, false]> : vector<4xi1>
    %none = arith.constant dense<0.0> : vector<4xf32>
    %x = program.masked_load %a, %mask, %none align 4 : vector<4xf32>
    program.store %x, %p align 4 : vector<4xf32>)"),
            "");
  EXPECT_EQ(std::vector<float>(floats, floats + 4), (std::vector<float>{3, 4, 0, 0}));
}

TEST_F(Interpreting, stopsAtAnAccessBeyondAnAllocation) {
  EXPECT_EQ(runBody(R"(
    %three = arith.constant 3 : i64
    %a = program.at %p[%three] : f32
    %x = program.load %a align 4 : vector<4xf32>)"),
            "it takes 16 bytes where an allocation of 16 has 4 left");
}

TEST_F(Interpreting, stopsAtMemoryOfAnotherSpace) {
  EXPECT_EQ(runBody(R"(
    %w = program.word %p
    %r = program.pointer %w in "near"
    %x = program.load %r in "near" align 4 : f32)"),
            "it takes an address in the host's memory as one in memory 'near'");
}

TEST_F(Interpreting, stopsAtMemoryThatNothingAllocated) {
  EXPECT_EQ(runBody(R"(
    %n = program.null
    %x = program.load %n align 4 : f32)"),
            "it takes the null pointer");
  EXPECT_EQ(runBody(R"(
    %far = arith.constant -100000 : i64
    %a = program.at %p[%far] : f32
    %x = program.load %a align 4 : f32)"),
            "it takes memory that nothing has allocated");
}

TEST_F(Interpreting, stopsAtAnAddressThatIsNotAligned) {
  EXPECT_EQ(runBody(R"(
    %one = arith.constant 1 : i64
    %a = program.at %p[%one] : i8
    %x = program.load %a align 4 : f32)"),
            "it takes an address that is not aligned to 4 bytes");
}

TEST_F(Interpreting, givesArraysBackWhenAFunctionReturns) {
  EXPECT_EQ(run(R"(
    func.func @array() -> !program.ptr {
      %a = program.array 4
      return %a : !program.ptr
    }
    func.func @main(%p: !program.ptr, %q: !program.ptr<"near">) {
      %a = func.call @array() : () -> !program.ptr
      %x = program.load %a align 8 : i64
      return
    })"),
            "it takes memory that nothing has allocated");
}

TEST_F(Interpreting, refusesOpsByTheirNames) {
  std::string refused = make(R"(
    func.func @main(%x: vector<2x2xf32>) {
      %t = vector.transpose %x, [1, 0] : vector<2x2xf32> to vector<2x2xf32>
      return
    })");
  EXPECT_NE(refused.find("error: op 'vector.transpose' at "), std::string::npos) << refused;
  EXPECT_NE(refused.find(" is not interpreted"), std::string::npos) << refused;
}

} // namespace
