// Passes: steps of this backend by themselves, for heddle-opt.
#ifndef HEDDLE_TARGET_C_PASSES_H
#define HEDDLE_TARGET_C_PASSES_H

namespace heddle::c {

/// heddle-print-c: the functions of a module as C, in place of the module.
void registerPasses();

} // namespace heddle::c

#endif // HEDDLE_TARGET_C_PASSES_H
