// Regex: Thompson's automaton of the parsed pattern, then the subsets of its states.

#include "compiler/onnx/ops/types/Regex.h"

#include <bitset>
#include <set>

namespace heddle::onnx {

using Bytes = std::bitset<256>;

static constexpr size_t kMostParts = 20'000; // limit of Thompson's automaton
static constexpr size_t kMostStates = 5'000; // limit of the final automaton
static constexpr int kMostRepeats = 1'000;

namespace {
/// The neighbours that an assertion looks at, before and after its place.
enum class Side { End, Word, Other }; // end of the text; a letter, digit or _; any other byte
enum class Claim { None, Begin, End, Boundary, NoBoundary };

/// A state reads one byte out of a set and goes on, or goes on to up to two others at once, where
/// its claim holds.
struct Part {
  Bytes bytes;
  int next = -1, other = -1;
  bool reads = false;
  Claim claim = Claim::None;

  bool holds(Side before, Side after) const {
    bool isBoundary = (before == Side::Word) != (after == Side::Word);
    switch (claim) {
    case Claim::None:
      return true;
    case Claim::Begin:
      return before == Side::End;
    case Claim::End:
      return after == Side::End;
    case Claim::Boundary:
      return isBoundary;
    case Claim::NoBoundary:
      return !isBoundary;
    }
    return true;
  }
};

/// A piece of the automaton; what comes after it is linked to `end`, a part that reads nothing.
struct Piece {
  int begin, end;
};

class Parser {
public:
  explicit Parser(llvm::StringRef text) : text(text) {}

  Piece parse() {
    Piece whole = alternatives();
    if (place != text.size())
      wrong("')' has no '('");
    return whole;
  }
  std::vector<Part> parts;

private:
  [[noreturn]] void wrong(const llvm::Twine &why) {
    refuse(
        "the pattern '" + text + "' cannot be used: " + why + " at byte " + llvm::Twine(place),
        "known: letters, escapes, '.', classes, groups, '|', '*', '+', '?', '{n,m}', '^', '$' and "
        "'\\b'");
  }
  bool atEnd() const { return place == text.size(); }
  bool take(llvm::StringRef word) {
    if (!text.substr(place).starts_with(word))
      return false;
    place += word.size();
    return true;
  }

  int add(Part part) {
    if (parts.size() >= kMostParts)
      wrong("it is too large");
    parts.push_back(part);
    return static_cast<int>(parts.size()) - 1;
  }
  int join(int next = -1, int other = -1) { return add({{}, next, other, false, Claim::None}); }
  Piece claiming(Claim claim) {
    int end = join();
    return {add({{}, end, -1, false, claim}), end};
  }
  Piece empty() {
    int both = join();
    return {both, both};
  }
  Piece reading(const Bytes &bytes) {
    int end = join();
    return {add({bytes, end, -1, true, Claim::None}), end};
  }
  Piece then(Piece first, Piece second) {
    parts[first.end].next = second.begin;
    return {first.begin, second.end};
  }
  Piece either(Piece first, Piece second) {
    int end = join();
    parts[first.end].next = parts[second.end].next = end;
    return {join(first.begin, second.begin), end};
  }

  Piece alternatives() {
    Piece piece = sequence();
    while (take("|"))
      piece = either(piece, sequence());
    return piece;
  }

  Piece sequence() {
    Piece piece = empty();
    while (!atEnd() && text[place] != '|' && text[place] != ')')
      piece = then(piece, repeated());
    return piece;
  }

  /// An atom is parsed again for each of its copies.
  Piece repeated() {
    size_t begin = place;
    Piece piece = atom();
    for (;;) {
      int low = 1, high = 1; // high -1: without end
      size_t before = place;
      if (take("*")) {
        low = 0, high = -1;
      } else if (take("+")) {
        high = -1;
      } else if (take("?")) {
        low = 0;
      } else if (!bounds(low, high)) {
        return piece;
      }
      if (before != atomEnd)
        wrong("a repetition is repeated");
      take("?"); // lazy or not, the same strings match
      size_t after = place;
      Piece result = empty();
      for (int i = 0; i < low; ++i)
        result = then(result, copy(begin));
      if (high < 0) {
        Piece loop = copy(begin);
        int end = join(), again = join(loop.begin, end);
        parts[loop.end].next = again;
        result = then(result, {again, end});
      }
      for (int i = low; i < high; ++i) {
        Piece once = copy(begin);
        int end = join(), start = join(once.begin, end);
        parts[once.end].next = end;
        result = then(result, {start, end});
      }
      place = after;
      piece = result;
    }
  }

  Piece copy(size_t begin) {
    place = begin;
    return atom();
  }

  bool bounds(int &low, int &high) {
    size_t before = place;
    llvm::StringRef rest = text.substr(place);
    auto number = [&](int &value) { return !rest.consumeInteger(10, value) && value >= 0; };
    if (!rest.consume_front("{") || !number(low))
      return false;
    high = low;
    if (rest.consume_front(",") && !number(high))
      high = -1;
    if (!rest.consume_front("}"))
      return false;
    place = text.size() - rest.size();
    if (low > kMostRepeats || high > kMostRepeats || (high >= 0 && high < low)) {
      place = before;
      wrong("a repetition is not in order or above " + llvm::Twine(kMostRepeats));
    }
    return true;
  }

  Piece atom() {
    Piece piece = plainAtom();
    atomEnd = place;
    return piece;
  }

  Piece plainAtom() {
    if (take("(")) {
      if (take("?") && !take(":") && !((take("P<") || take("<")) && takeName()))
        wrong("this kind of group is not known");
      Piece piece = alternatives();
      if (!take(")"))
        wrong("a '(' is not closed");
      return piece;
    }
    if (take("["))
      return letterOf(bracket());
    if (take("."))
      return letterOf(all() & ~only('\n'));
    if (text[place] == '*' || text[place] == '+' || text[place] == '?')
      wrong("there is nothing to repeat");
    for (auto [word, claim] : {std::pair{"^", Claim::Begin},
                               {"$", Claim::End},
                               {"\\A", Claim::Begin},
                               {"\\z", Claim::End},
                               {"\\b", Claim::Boundary},
                               {"\\B", Claim::NoBoundary}})
      if (take(word))
        return claiming(claim);
    if (take("\\"))
      return letterOf(escape());
    return reading(only(text[place++]));
  }

  bool takeName() {
    size_t end = text.find('>', place);
    if (end == llvm::StringRef::npos || end == place)
      return false;
    place = end + 1;
    return true;
  }

  static Bytes only(unsigned char byte) { return Bytes().set(byte); }
  static Bytes range(unsigned char low, unsigned char high) {
    Bytes bytes;
    for (int byte = low; byte <= high; ++byte)
      bytes.set(byte);
    return bytes;
  }

  /// One letter out of a class, in which the bit of kBeyond stands for all letters beyond ASCII.
  Piece letterOf(Bytes letters) {
    bool hasBeyond = letters[kBeyond];
    Piece letter = reading(letters.reset(kBeyond));
    if (!hasBeyond)
      return letter;
    Bytes more = range(0x80, 0xbf);
    letter = either(letter, then(reading(range(0xc2, 0xdf)), reading(more)));
    letter = either(letter, then(then(reading(range(0xe0, 0xef)), reading(more)), reading(more)));
    return either(letter, then(then(then(reading(range(0xf0, 0xf4)), reading(more)), reading(more)),
                               reading(more)));
  }
  static constexpr int kBeyond = 0x80;
  static Bytes all() { return range(0, kBeyond); }

  /// After a backslash.
  Bytes escape() {
    if (atEnd())
      wrong("a '\\' is at the end");
    char letter = text[place++];
    Bytes digits = range('0', '9'), spaces = range('\t', '\n') | range('\f', '\r') | only(' ');
    Bytes words = digits | range('a', 'z') | range('A', 'Z') | only('_');
    switch (letter) {
    case 'd':
      return digits;
    case 'D':
      return all() & ~digits;
    case 's':
      return spaces;
    case 'S':
      return all() & ~spaces;
    case 'w':
      return words;
    case 'W':
      return all() & ~words;
    case 'n':
      return only('\n');
    case 't':
      return only('\t');
    case 'r':
      return only('\r');
    case 'f':
      return only('\f');
    case 'v':
      return only('\v');
    case 'x': {
      int code = 0;
      if (text.substr(place, 2).getAsInteger(16, code) || code > 0x7f)
        wrong("'\\x' needs two digits, at most 7f");
      place += 2;
      return only(code);
    }
    default:
      if (llvm::isAlnum(letter))
        wrong("the escape '\\" + llvm::Twine(letter) + "' is not known");
      return only(letter);
    }
  }

  /// After '['.
  Bytes bracket() {
    bool isNegated = take("^");
    Bytes bytes;
    // A ']' that comes first is a letter of the class.
    do {
      if (atEnd())
        wrong("a '[' is not closed");
      bytes |= classItem();
    } while (!take("]"));
    return isNegated ? all() & ~bytes : bytes;
  }

  Bytes classItem() {
    if (text.substr(place).starts_with("[:"))
      return named();
    Bytes low = take("\\") ? escape() : only(letterOfClass());
    bool isRange = text.substr(place).starts_with("-") && !text.substr(place).starts_with("-]");
    if (!isRange)
      return low;
    ++place;
    if (atEnd())
      wrong("a '[' is not closed");
    Bytes high = take("\\") ? escape() : only(letterOfClass());
    if (low.count() != 1 || high.count() != 1)
      wrong("a range needs two letters");
    return range(low._Find_first(), high._Find_first());
  }

  unsigned char letterOfClass() {
    unsigned char letter = text[place++];
    if (letter >= 0x80)
      wrong("letters beyond ASCII in a class");
    return letter;
  }

  Bytes named() {
    Bytes digits = range('0', '9'), lower = range('a', 'z'), upper = range('A', 'Z');
    const std::pair<llvm::StringRef, Bytes> names[] = {
        {"[:alnum:]", digits | lower | upper},
        {"[:alpha:]", lower | upper},
        {"[:digit:]", digits},
        {"[:lower:]", lower},
        {"[:upper:]", upper},
        {"[:space:]", range('\t', '\r') | only(' ')},
        {"[:punct:]", range('!', '/') | range(':', '@') | range('[', '`') | range('{', '~')},
        {"[:xdigit:]", digits | range('a', 'f') | range('A', 'F')},
        {"[:word:]", digits | lower | upper | only('_')},
    };
    for (const auto &[name, bytes] : names)
      if (take(name))
        return bytes;
    wrong("this class is not known");
  }

  llvm::StringRef text;
  size_t place = 0, atomEnd = 0;
};
} // namespace

using Parts = std::set<int>;

/// All parts that read, and the end, which can be reached without reading at a place between two
/// sides.
static Parts reachable(const std::vector<Part> &parts, const Parts &from, int end, Side before,
                       Side after) {
  Parts seen, result;
  std::vector<int> open(from.begin(), from.end());
  while (!open.empty()) {
    int part = open.back();
    open.pop_back();
    if (part < 0 || !seen.insert(part).second || !parts[part].holds(before, after))
      continue;
    if (parts[part].reads || part == end)
      result.insert(part);
    if (parts[part].reads)
      continue;
    open.push_back(parts[part].next);
    open.push_back(parts[part].other);
  }
  return result;
}

/// The automaton whose first states begin after each of `sides`; it accepts before each of them,
/// too, as the columns from 256 on say.
template <size_t count>
static std::vector<std::array<int32_t, 256 + count>> tableOf(llvm::StringRef pattern,
                                                             const Side (&sides)[count]) {
  Parser parser(pattern);
  Piece whole = parser.parse();
  const std::vector<Part> &parts = parser.parts;
  using State = std::pair<Parts, Side>; // its parts, and the side that precedes it
  std::map<State, int32_t> numbers;
  std::vector<State> states;
  auto numberOf = [&](const State &state) {
    auto [known, isNew] = numbers.try_emplace(state, static_cast<int32_t>(states.size()));
    if (isNew)
      states.push_back(state);
    return known->second;
  };
  for (Side side : sides)
    numberOf({{whole.begin}, side});
  std::vector<std::array<int32_t, 256 + count>> rows;
  for (size_t i = 0; i < states.size(); ++i) {
    if (states.size() > kMostStates)
      refuse("the pattern '" + pattern + "' needs more than " + llvm::Twine(kMostStates) +
             " states");
    auto [standing, before] = states[i];
    Parts open[] = {reachable(parts, standing, whole.end, before, Side::Other),
                    reachable(parts, standing, whole.end, before, Side::Word)};
    auto &row = rows.emplace_back();
    for (int byte = 0; byte < 256; ++byte) {
      bool isWord = llvm::isAlnum(static_cast<char>(byte)) || byte == '_';
      Parts next;
      for (int part : open[isWord])
        if (parts[part].reads && parts[part].bytes[byte])
          next.insert(parts[part].next);
      row[byte] = next.empty() ? -1 : numberOf({next, isWord ? Side::Word : Side::Other});
    }
    for (size_t side = 0; side < count; ++side)
      row[256 + side] = reachable(parts, standing, whole.end, before, sides[side]).count(whole.end);
  }
  return rows;
}

std::vector<std::array<int32_t, 257>> automatonOf(llvm::StringRef pattern) {
  return tableOf(pattern, {Side::End});
}

std::vector<std::array<int32_t, 259>> scannerOf(llvm::StringRef pattern) {
  return tableOf(pattern, {Side::End, Side::Other, Side::Word});
}

} // namespace heddle::onnx
