// Limits: what a card's text may cost before anyone has read it. MLIR's parser is recursive, so
// nesting without a bound would end the process.

#include "compiler/warehouse/Limits.h"

#include "compiler/warehouse/Warehouse.h"

using namespace llvm;

namespace heddle::warehouse {

static constexpr int64_t kMostDeep = 128;

namespace {
/// Walks the text, strings and comments left out, and keeps how deep brackets and signs are nested.
class Depths {
public:
  explicit Depths(StringRef text) : rest(text) {}

  /// The line on which nesting becomes too deep; 0 when it never does.
  int64_t lineTooDeep() {
    for (skip(); !rest.empty(); skip()) {
      if (!step(rest.front()))
        return line;
      rest = rest.drop_front();
    }
    return 0;
  }

private:
  void skip() {
    if (rest.starts_with("//"))
      rest = rest.drop_until([](char c) { return c == '\n'; });
    if (!rest.starts_with("\""))
      return;
    for (rest = rest.drop_front(); !rest.empty() && rest.front() != '"' && rest.front() != '\n';)
      rest = rest.substr(rest.front() == '\\' ? 2 : 1); // or to the text's end
    if (rest.starts_with("\""))
      rest = rest.drop_front();
  }

  bool step(char c) {
    bool isArrow = c == '>' && last == '-';
    // A chain of signs is nested too: -(-(-x)) may be written ---x.
    signs = c == '-' ? signs + 1 : isSpace(c) ? signs : 0;
    line += c == '\n';
    if (StringRef("([{<").contains(c))
      ++depth;
    else if (StringRef(")]}>").contains(c) && !isArrow)
      depth = std::max<int64_t>(0, depth - 1);
    last = c;
    return depth <= kMostDeep && signs <= kMostDeep;
  }

  StringRef rest;
  int64_t line = 1, depth = 0, signs = 0;
  char last = 0;
};
} // namespace

std::string limitProblem(StringRef text) {
  if (int64_t(text.size()) > kMaxCardBytes)
    return formatv(": error: it has {0} bytes, but a card has at most {1}", text.size(),
                   kMaxCardBytes);
  if (int64_t line = Depths(text).lineTooDeep())
    return formatv(":{0}: error: brackets are nested more than {1} deep", line, kMostDeep);
  return "";
}

} // namespace heddle::warehouse
