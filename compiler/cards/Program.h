// Program: a trial compiled with one card and one setting of its knobs, in this process.
#ifndef HEDDLE_CARDS_PROGRAM_H
#define HEDDLE_CARDS_PROGRAM_H

#include "compiler/cards/Trial.h"
#include "compiler/reference/Tensor.h"

#include "heddle/runtime.h"

namespace heddle {
struct Compiled;
}
namespace heddle::cpu {
class LoadedProgram;
}

namespace heddle::cards {

class Program {
public:
  /// Compiles the module with this card's schedule on its group, with nothing else changed.
  static llvm::Expected<std::unique_ptr<Program>> make(const std::string &module,
                                                       const std::string &cardText,
                                                       llvm::StringRef cardPath,
                                                       const warehouse::KnobValues &knobs);
  ~Program();

  /// Results of these element types, which live in the caller's context.
  llvm::Expected<reference::Tensors> run(llvm::ArrayRef<reference::Tensor> inputs,
                                         llvm::ArrayRef<mlir::Type> elements);
  /// Whether the kernel is what the card's mechanism makes, and not element by element instead.
  bool isCarriedOut = false;

private:
  Program();
  llvm::Error load();

  std::unique_ptr<Compiled> compiled;
  std::shared_ptr<cpu::LoadedProgram> loaded;
  heddle_module_t *module = nullptr;
  heddle_session_t *session = nullptr;
};

} // namespace heddle::cards

#endif // HEDDLE_CARDS_PROGRAM_H
