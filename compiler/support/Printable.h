// Printable: text of a model on its way to a terminal.
#ifndef HEDDLE_SUPPORT_PRINTABLE_H
#define HEDDLE_SUPPORT_PRINTABLE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace heddle::support {

/// The text with control characters, newlines among them, as escapes (\\n, \\x1b) and what is no
/// UTF-8 replaced, so that it neither moves a cursor nor looks like a line of ours.
std::string printable(llvm::StringRef text);

/// Whether the text holds control characters of ASCII or of C1.
bool hasControls(llvm::StringRef text);

} // namespace heddle::support

#endif // HEDDLE_SUPPORT_PRINTABLE_H
