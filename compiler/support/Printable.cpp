// Printable: see Printable.h.

#include "compiler/support/Printable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

namespace heddle::support {

/// How many bytes of a control character the text begins with: 1 in ASCII, 2 in C1, 0: none.
static size_t controlAt(llvm::StringRef text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x20 || byte(0) == 0x7f)
    return 1;
  return text.size() > 1 && byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0 ? 2 : 0;
}

std::string printable(llvm::StringRef text) {
  std::string whole = llvm::json::fixUTF8(text), result;
  for (llvm::StringRef rest = whole; !rest.empty();) {
    size_t size = controlAt(rest);
    if (!size)
      result += rest.front();
    else if (rest.front() == '\n')
      result += "\\n";
    else
      result += "\\x" + llvm::toHex(rest.substr(size - 1, 1), /*LowerCase=*/true);
    rest = rest.drop_front(std::max<size_t>(size, 1));
  }
  return result;
}

bool hasControls(llvm::StringRef text) {
  for (; !text.empty(); text = text.drop_front())
    if (controlAt(text))
      return true;
  return false;
}

} // namespace heddle::support
