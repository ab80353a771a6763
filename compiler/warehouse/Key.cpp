// Key: reading a key.

#include "compiler/warehouse/Key.h"

#include "compiler/support/Error.h"

using namespace mlir;

namespace heddle::warehouse {

using graph::Loop;
using Many = KeyLoop::Many;

namespace {
/// Recursive descent over the text of a key.
class Reader {
public:
  explicit Reader(StringRef text) : text(text), rest(text) {}

  llvm::Expected<std::vector<KeyLoop>> read() {
    std::vector<KeyLoop> loops;
    if (!readLoops(loops, 0) || !problem.empty() || !(rest = rest.ltrim()).empty())
      return makeError(ErrorCode::Usage,
                       "key '" + text + "', at column " + Twine(text.size() - rest.size() + 1) +
                           ": " + (problem.empty() ? "a loop is needed here" : problem) +
                           "; a loop is written 'k:s(dot)', see docs/spec/cards.md");
    return loops;
  }

private:
  bool take(char wanted) {
    rest = rest.ltrim();
    return rest.consume_front(StringRef(&wanted, 1));
  }
  StringRef word() {
    rest = rest.ltrim();
    StringRef found = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    rest = rest.drop_front(found.size());
    return found;
  }
  bool fail(const Twine &why) {
    if (problem.empty())
      problem = why.str();
    return false;
  }

  bool readLoops(std::vector<KeyLoop> &loops, int depth) {
    if (depth > 32)
      return fail("loops are nested more than 32 deep");
    do {
      if (!readLoop(loops.emplace_back(), depth))
        return false;
      rest = rest.ltrim();
    } while (!rest.empty() && rest.front() != '}');
    return true;
  }

  bool readLoop(KeyLoop &loop, int depth) {
    StringRef kind = word();
    if (take('=')) {
      StringRef number = word();
      int64_t extent;
      if (number.getAsInteger(10, extent))
        return fail("'" + number + "' is not a size");
      loop.extent = extent;
      loop.letter = kind.str();
      if (!take(':'))
        return fail("':' is missing after the size");
      kind = word();
    } else if (take(':')) {
      loop.letter = kind.str();
      kind = word();
    }
    size_t number = StringRef("psw").find(kind);
    if (kind.size() != 1 || number == StringRef::npos)
      return fail("'" + kind +
                  "' is no kind of loop; kinds: p (parallel), s (reduction), w (window)");
    loop.kind = static_cast<Loop::Kind>(number);
    loop.many = take('*') ? Many::Any : take('+') ? Many::Some : Many::One;
    if (loop.extent && loop.many != Many::One)
      return fail("a run of loops has no size; use the guards 'min' and 'max'");
    if (take('(') && !readOps(loop))
      return false;
    if (!take('{'))
      return true;
    return readLoops(loop.children, depth + 1) && (take('}') || fail("'}' is missing"));
  }

  bool readOps(KeyLoop &loop) {
    if (take('*')) {
      loop.takesAnyOps = true;
      return take(')') || fail("')' is missing");
    }
    do {
      auto &alternatives = loop.ops.emplace_back();
      do {
        alternatives.push_back(word().str());
        if (alternatives.back().empty())
          return fail("the name of an op is missing");
      } while (take('|'));
    } while (take(','));
    return take(')') || fail("')' is missing");
  }

  StringRef text, rest;
  std::string problem;
};

} // namespace

llvm::Expected<Key> Key::parse(StringRef text) {
  auto loops = Reader(text).read();
  if (!loops)
    return loops.takeError();
  Key key;
  key.text = text.str();
  key.loops = std::move(*loops);
  return key;
}

Key Key::of(const graph::LoopNest &nest) { return llvm::cantFail(parse(nest.str())); }

static bool hasLetterIn(ArrayRef<KeyLoop> loops, StringRef letter) {
  return llvm::any_of(loops, [&](const KeyLoop &loop) {
    return loop.letter == letter || hasLetterIn(loop.children, letter);
  });
}

bool Key::hasLetter(StringRef letter) const { return hasLetterIn(loops, letter); }

static bool hasOpIn(ArrayRef<KeyLoop> loops, StringRef name) {
  return llvm::any_of(loops, [&](const KeyLoop &loop) {
    return loop.takesAnyOps || hasOpIn(loop.children, name) ||
           llvm::any_of(loop.ops, [&](const auto &alternatives) {
             return llvm::is_contained(alternatives, name);
           });
  });
}

bool Key::hasOp(StringRef name) const { return hasOpIn(loops, name); }

} // namespace heddle::warehouse
