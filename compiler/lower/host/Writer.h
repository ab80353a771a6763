// Writer: a function of the host while it is written: where code goes, and what the code of each
// part begins with: areas of the run, memory, failures, calls of services.
#ifndef HEDDLE_LOWER_HOST_WRITER_H
#define HEDDLE_LOWER_HOST_WRITER_H

#include "compiler/lower/Kernel.h"

namespace heddle::lower {

class Writer {
public:
  /// Begins a public function of so many pointers, at the end of the program.
  Writer(mlir::func::FuncOp model, program::Program &program, llvm::StringRef name,
         unsigned pointers);

  /// The run, which is the first argument of all but heddle_program_sizes.
  Value call() { return function.getArgument(0); }
  /// Spaces are numbered as Kernel::space.
  Value area(program::Area which, int64_t space = 0);
  /// The address of weights, from this byte on.
  Value weightsAt(int64_t place, int64_t space = 0);
  /// Words that live as long as the function runs.
  Value array(int64_t words);
  Value alloc(Value bytes, int64_t space = 0);
  Value allocOutput(int64_t output, Value bytes);
  /// Within a space or from one to another.
  void copy(Value target, Value source, Value bytes);
  Value loadInteger(Type element, Value memory, int64_t index);

  /// Whether nothing has ended the run so far.
  Value isFine();
  void fail(llvm::StringRef message, Value value, Value limit);
  /// Ends the run where arithmetic of sizes has left int64; null: it has not.
  void failIf(Value overflow, const llvm::Twine &what);

  /// The number of the first of the messages of the op that is being written.
  Value messages(llvm::ArrayRef<llvm::StringRef> texts);
  /// Calls a service unless the run has failed: then what would be results stays as given. Returns
  /// the frame.
  Value callOn(program::Service service, llvm::ArrayRef<Value> words);

  llvm::StringRef nameOf(int64_t space) const {
    return space ? llvm::StringRef(program.spaces[space - 1]) : "";
  }

  mlir::func::FuncOp model;
  program::Program &program;
  mlir::func::FuncOp function;
  mlir::OpBuilder builder, entry; // `entry` writes at the top of the function
  Code code, entryCode;
  std::string node; // "node 'conv_1': ", of the op whose code is being written
  Value isFirst;    // of the innermost loop's iterations
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_WRITER_H
