// Identity: which compiler this is, so that another one never takes what it has kept.
#ifndef HEDDLE_CACHE_IDENTITY_H
#define HEDDLE_CACHE_IDENTITY_H

#include "llvm/ADT/StringRef.h"

namespace heddle::cache {

/// The build-ids of the code of Heddle, LLVM and MLIR in this process; for a file without one its
/// path, size and time.
llvm::StringRef codeIdentity();

} // namespace heddle::cache

#endif // HEDDLE_CACHE_IDENTITY_H
