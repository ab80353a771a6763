// c_program: a model as a C file, compiled by the machine's C compiler and run in this process.
//
// HEDDLE_OPS_CC is the compiler with its flags: by default one that takes no warning.
#ifndef HEDDLE_TEST_OPS_C_PROGRAM_H
#define HEDDLE_TEST_OPS_C_PROGRAM_H

#include "compiler/program/Program.h"
#include "compiler/reference/Tensor.h"

#include "heddle/runtime.h"

namespace heddle::ops {

struct CResult {
  int32_t dtype = 0;
  llvm::SmallVector<int64_t> shape;
  std::vector<char> bytes;
};

class CProgram {
public:
  /// Compiles `source`, which is of `program`. The message of what is wrong, or "".
  static std::string make(const program::Program &program, const std::string &source,
                          std::unique_ptr<CProgram> &made);
  ~CProgram();

  /// Elements of fewer than 8 bits have a byte each. Outputs with data lie there. A message, or "".
  std::string run(llvm::ArrayRef<heddle_tensor_t> inputs, llvm::ArrayRef<heddle_tensor_t> places,
                  uint64_t seed, std::vector<CResult> &results);

private:
  void *library = nullptr;
  size_t maxRank = 1;
  std::vector<program::Io> outputs;
  using Bytes = int (*)(const void *, const void *, int64_t *, char *);
  using Run = int (*)(const void *, void *, void *, int64_t, uint64_t, char *);
  Bytes arenaBytes = nullptr;
  Run runModel = nullptr;
};

} // namespace heddle::ops

#endif // HEDDLE_TEST_OPS_C_PROGRAM_H
