// Memory: what an interpreted run may read and write, and in which space it lies.
#ifndef HEDDLE_TARGET_TESTING_INTERPRETER_MEMORY_H
#define HEDDLE_TARGET_TESTING_INTERPRETER_MEMORY_H

#include "compiler/Prelude.h"

#include <memory>

namespace heddle::interpreter {

/// Allocations of this process, each in a space: "" is the host's. Addresses are real ones, so that
/// services of the runtime take them as they are.
class Memory {
public:
  /// Two at one address are one, as long as the longer of them.
  void add(const void *data, int64_t bytes, llvm::StringRef space = "");
  /// Memory of the host whose end nobody knows; it is looked up in the next 2^20 bytes.
  void addUnbounded(const void *data);
  void remove(const void *data);
  /// New memory, in whose bytes no kernel finds a likely number.
  char *make(int64_t bytes, llvm::StringRef space);
  /// "" if the bytes lie in one allocation of the space, else what is wrong, as the end of a
  /// sentence about the access.
  std::string whyNot(uint64_t address, int64_t bytes, llvm::StringRef space) const;

private:
  struct Allocation {
    uint64_t bytes;
    std::string space;
  };
  std::map<uint64_t, Allocation> allocations;
  std::set<uint64_t> unbounded;
  std::vector<std::unique_ptr<char[]>> made;
};

/// "the host's memory", "memory 'npu'".
std::string nameOfSpace(llvm::StringRef space);

} // namespace heddle::interpreter

#endif // HEDDLE_TARGET_TESTING_INTERPRETER_MEMORY_H
