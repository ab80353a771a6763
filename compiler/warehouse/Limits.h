// Limits: what the text of a card may cost at most.
#ifndef HEDDLE_WAREHOUSE_LIMITS_H
#define HEDDLE_WAREHOUSE_LIMITS_H

#include "compiler/Prelude.h"

namespace heddle::warehouse {

/// The part after the path of the message that refuses this text; "" if it may be parsed.
std::string limitProblem(llvm::StringRef text);

} // namespace heddle::warehouse

#endif // HEDDLE_WAREHOUSE_LIMITS_H
