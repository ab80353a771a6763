// Reader: PTX text to Program by recursive descent.
#include "emulator/ptx/scanner.h"

#include <algorithm>

namespace heddle::emulator {
namespace {

constexpr uint64_t kMostBytes = uint64_t(1) << 32; // of one variable
constexpr size_t kMostDepth = 16;                  // of nested arguments and blocks

class Reader {
public:
  explicit Reader(std::string_view text) : tokens(scan(text)) {}

  Program read() {
    while (peek().kind != Token::End)
      top();
    if (!program.version || !program.chip)
      fail("the text has no .version and .target");
    return std::move(program);
  }

private:
  std::vector<Token> tokens;
  size_t at = 0;
  Program program;
  Function *function = nullptr;
  std::vector<std::unordered_map<std::string, std::string>> scopes;
  unsigned scopesSeen = 0;

  const Token &peek(size_t ahead = 0) const {
    return tokens[std::min(at + ahead, tokens.size() - 1)];
  }
  const Token &next() {
    const Token &token = peek();
    if (token.kind != Token::End)
      ++at;
    return token;
  }
  [[noreturn]] void fail(const std::string &why) const { throw PtxError(peek().line, why); }
  bool isNext(std::string_view text) const {
    return peek().text == text && peek().kind != Token::Text;
  }
  bool take(std::string_view text) {
    bool isIt = isNext(text);
    at += isIt && peek().kind != Token::End;
    return isIt;
  }
  void expect(std::string_view text) {
    if (!take(text))
      fail("'" + std::string(text) + "' is expected, not '" + std::string(peek().text) + "'");
  }
  std::string word() {
    if (peek().kind != Token::Word)
      fail("a name is expected, not '" + std::string(peek().text) + "'");
    return std::string(next().text);
  }
  uint64_t integer() {
    Argument::Kind kind;
    bool isMinus = take("-");
    if (peek().kind != Token::Number)
      fail("a number is expected, not '" + std::string(peek().text) + "'");
    uint64_t value = numberOf(next(), kind);
    if (kind != Argument::Integer)
      fail("an integer is expected");
    return isMinus ? -value : value;
  }
  void skipLine() {
    unsigned line = peek().line;
    while (peek().kind != Token::End && peek().line == line)
      next();
  }

  void top() {
    if (take(".version")) {
      std::string text(next().text);
      size_t dot = text.find('.');
      bool isGood = dot != text.npos && dot && dot <= 2 && text.size() == dot + 2 &&
                    text.find_first_not_of("0123456789.") == text.npos;
      if (!isGood)
        fail("'.version " + text + "' is not understood");
      program.version = std::stoi(text.substr(0, dot)) * 10 + (text[dot + 1] - '0');
    } else if (take(".target")) {
      target();
    } else if (take(".address_size")) {
      if (integer() != 64)
        fail("only '.address_size 64' is supported");
    } else if (isNext(".file") || isNext(".loc") || isNext(".pragma")) {
      skipLine();
    } else if (take(".section")) {
      while (peek().kind != Token::End && !isNext("}"))
        next();
      expect("}");
    } else {
      declaration();
    }
  }

  void target() {
    std::string name = word();
    size_t end = name.find_first_not_of("0123456789", 3);
    if (name.substr(0, 3) != "sm_" || end == 3 || name.size() > 7)
      fail("'.target " + name + "' is not understood");
    program.chip = std::stoi(name.substr(3, end == name.npos ? end : end - 3));
    program.suffix = end == name.npos ? 0 : name[end];
    while (take(","))
      word();
  }

  void declaration() {
    while (take(".visible") || take(".extern") || take(".weak") || take(".common"))
      ;
    if (isNext(".entry") || isNext(".func"))
      functionOf(next().text == ".entry");
    else if (isNext(".global") || isNext(".const") || isNext(".shared"))
      program.variables.push_back(variable()), expect(";");
    else
      fail("'" + std::string(peek().text) + "' is not known here");
  }

  Variable variable() {
    Variable made;
    made.line = peek().line;
    made.space = word().substr(1);
    for (bool more = true; more;) {
      more = false;
      if (take(".align"))
        made.alignment = alignment(), more = true;
      else if (take(".ptr") || take(".global") || take(".shared") || take(".const") ||
               take(".local") || take(".v2") || take(".v4") || take(".attribute"))
        more = true;
      else if (isNext("(")) {
        while (peek().kind != Token::End && !take(")"))
          next();
        more = true;
      } else if (Type type =
                     peek().text.substr(0, 1) == "." ? typeOf(peek().text.substr(1)) : Type::None;
                 type != Type::None) {
        made.type = type, more = true, next();
      }
    }
    made.name = word();
    made.alignment = std::max(made.alignment, std::max(1u, bytesOf(made.type)));
    made.bytes = std::max(1u, bytesOf(made.type));
    while (take("["))
      arrayOf(made);
    if (take("="))
      initial(made);
    return made;
  }

  uint32_t alignment() {
    uint64_t value = integer();
    if (value == 0 || value > 4096 || (value & (value - 1)))
      fail("an alignment is a power of two up to 4096, not " + std::to_string(value));
    return static_cast<uint32_t>(value);
  }

  void arrayOf(Variable &made) {
    if (take("]")) {
      made.isDynamic = true;
      made.bytes = 0;
      return;
    }
    uint64_t count = integer();
    if (count > kMostBytes || made.bytes * count > kMostBytes)
      fail("'" + made.name + "' is larger than 4 GiB");
    made.bytes *= count;
    expect("]");
  }

  void initial(Variable &made) {
    unsigned size = std::max(1u, bytesOf(made.type));
    bool isArray = take("{");
    do {
      if (isNext("}"))
        break;
      if (made.initial.size() + size > made.bytes)
        fail("'" + made.name + "' has more initial values than elements");
      uint64_t bits = 0;
      Argument::Kind kind = Argument::Integer;
      uint64_t place = made.initial.size();
      if (peek().kind == Token::Word) {
        std::string name = word();
        if (name == "generic") {
          expect("(");
          name = word();
          expect(")");
        }
        uint64_t added = take("+") ? integer() : 0;
        made.relocations.push_back({place, name, added, size});
      } else {
        bool isMinus = take("-");
        bits = numberOf(next(), kind);
        bits = isMinus ? -bits : bits;
      }
      for (unsigned i = 0; i < size; ++i)
        made.initial.push_back(static_cast<uint8_t>(bits >> (8 * i)));
    } while (isArray && take(","));
    if (isArray)
      expect("}");
  }

  std::vector<Variable> parameters() {
    std::vector<Variable> made;
    expect("(");
    while (!take(")")) {
      if (!isNext(".param") && !isNext(".reg"))
        fail("a parameter is expected, not '" + std::string(peek().text) + "'");
      made.push_back(variable());
      if (!take(",") && !isNext(")"))
        fail("')' is expected, not '" + std::string(peek().text) + "'");
    }
    return made;
  }

  void functionOf(bool isKernel) {
    Function made;
    made.isKernel = isKernel;
    made.line = peek().line;
    if (isNext("("))
      made.returns = parameters();
    made.name = word();
    if (isNext("("))
      made.parameters = parameters();
    while (!isNext("{") && !isNext(";")) {
      if (take(".maxntid"))
        made.mostThreads = threads();
      else if (take(".reqntid"))
        made.neededThreads = threads();
      else if (take(".minnctapersm") || take(".maxnreg") || take(".maxclusterrank"))
        integer();
      else if (!take(".noreturn"))
        fail("'" + std::string(peek().text) + "' is not known in the head of a function");
    }
    Function &kept = program.functions[made.name];
    if (kept.isDefined)
      fail("'" + made.name + "' is defined twice");
    kept = std::move(made);
    if (take(";"))
      return;
    kept.isDefined = true;
    function = &kept;
    block(0);
  }

  std::array<uint32_t, 3> threads() {
    std::array<uint32_t, 3> count{1, 1, 1};
    for (size_t i = 0; i < 3; ++i) {
      if (i && !take(","))
        break;
      count[i] = static_cast<uint32_t>(integer());
    }
    return count;
  }

  void block(size_t depth) {
    if (depth > kMostDepth)
      fail("blocks are nested too deep");
    expect("{");
    scopes.emplace_back();
    while (!take("}")) {
      if (peek().kind == Token::End)
        fail("'" + function->name + "' has no end");
      if (isNext("{"))
        block(depth + 1);
      else
        line(depth);
    }
    scopes.pop_back();
  }

  /// Name that is unique in the function: what an inner block declares is its own.
  std::string declare(const std::string &name, size_t depth) {
    std::string own = depth ? name + "@" + std::to_string(++scopesSeen) : name;
    scopes.back()[name] = own;
    return own;
  }
  std::string resolved(std::string name) const {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
      if (auto found = scope->find(name); found != scope->end())
        return found->second;
    return name;
  }

  void line(size_t depth) {
    if (take(".reg")) {
      registers(depth);
    } else if (isNext(".param") || isNext(".local") || isNext(".shared") || isNext(".global") ||
               isNext(".const")) {
      Variable made = variable();
      made.name = declare(made.name, depth);
      function->variables.push_back(std::move(made));
      expect(";");
    } else if (isNext(".loc") || isNext(".file")) {
      skipLine();
    } else if (take(".pragma")) {
      while (peek().kind != Token::End && !take(";"))
        next();
    } else if (peek().kind == Token::Word && peek(1).text == ":") {
      label();
    } else if (!take(";")) {
      statement();
    }
  }

  void registers(size_t depth) {
    std::string text = word();
    Type type = typeOf(std::string_view(text).substr(1));
    if (type == Type::None)
      fail("'" + text + "' is no type of registers");
    do {
      std::string name = word();
      if (take("<")) {
        function->ranges[name] = {integer(), type};
        expect(">");
      } else {
        function->registers[declare(name, depth)] = type;
      }
    } while (take(","));
    expect(";");
  }

  void label() {
    Statement made;
    made.line = peek().line;
    made.label = word();
    expect(":");
    if (take(".branchtargets")) {
      auto &targets = function->targets[made.label];
      do
        targets.push_back(word());
      while (take(","));
      expect(";");
    } else if (isNext(".callprototype")) {
      while (peek().kind != Token::End && !take(";"))
        next();
    } else {
      function->body.push_back(std::move(made));
    }
  }

  void statement() {
    Statement made;
    made.line = peek().line;
    if (take("@")) {
      made.isGuardNegated = take("!");
      made.guard = resolved(word());
    }
    made.text = word();
    while (peek().kind != Token::End && !isNext(";")) {
      made.arguments.push_back(argument(0));
      if (!take(",") && !isNext(";") && !isNext("("))
        fail("',' or ';' is expected after '" + made.text + "', not '" + std::string(peek().text) +
             "'");
    }
    expect(";");
    function->body.push_back(std::move(made));
    Statement &kept = function->body.back();
    std::string_view text = kept.text;
    for (size_t begin = 0; begin <= text.size();) {
      size_t end = std::min(text.find('.', begin), text.size());
      kept.word.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  void list(Argument &made, std::string_view end, size_t depth) {
    while (!take(end)) {
      made.parts.push_back(argument(depth + 1));
      if (!take(",") && !isNext(end))
        fail("'" + std::string(end) + "' is expected, not '" + std::string(peek().text) + "'");
    }
  }

  Argument argument(size_t depth) {
    if (depth > kMostDepth)
      fail("arguments are nested too deep");
    Argument made;
    if (take("{")) {
      made.kind = Argument::Vector;
      list(made, "}", depth);
    } else if (take("(")) {
      made.kind = Argument::List;
      list(made, ")", depth);
    } else if (take("[")) {
      made = argument(depth + 1);
      if (made.kind != Argument::Name && made.kind != Argument::Integer)
        fail("an address is a register, a name or a number");
      made.kind = Argument::Address;
      expect("]");
    } else {
      made.isNegated = take("!");
      bool isMinus = take("-");
      if (peek().kind == Token::Number) {
        made.bits = numberOf(next(), made.kind);
        if (isMinus && made.kind != Argument::Integer)
          fail("a minus before bits of a float");
        made.bits = isMinus ? -made.bits : made.bits;
      } else {
        made.kind = Argument::Name;
        made.name = resolved(word());
        if (take("|"))
          made.second = resolved(word());
        if (take("+"))
          made.bits = integer();
        else if (isNext("-"))
          made.bits = integer();
      }
    }
    return made;
  }
};

} // namespace

unsigned bytesOf(Type type) {
  static constexpr unsigned bytes[] = {0, 0, 1, 2, 4, 8, 1, 2, 4, 8, 1,
                                       2, 4, 8, 2, 4, 2, 4, 4, 4, 8};
  return bytes[static_cast<size_t>(type)];
}
bool isFloat(Type type) { return type >= Type::F16; }
bool isSigned(Type type) { return type >= Type::S8 && type <= Type::S64; }

Type typeOf(std::string_view word) {
  static const std::unordered_map<std::string_view, Type> types = {
      {"pred", Type::Pred},     {"b8", Type::B8},     {"b16", Type::B16},     {"b32", Type::B32},
      {"b64", Type::B64},       {"u8", Type::U8},     {"u16", Type::U16},     {"u32", Type::U32},
      {"u64", Type::U64},       {"s8", Type::S8},     {"s16", Type::S16},     {"s32", Type::S32},
      {"s64", Type::S64},       {"f16", Type::F16},   {"f16x2", Type::F16x2}, {"bf16", Type::BF16},
      {"bf16x2", Type::BF16x2}, {"tf32", Type::TF32}, {"f32", Type::F32},     {"f64", Type::F64}};
  auto found = types.find(word);
  return found == types.end() ? Type::None : found->second;
}

Program readProgram(std::string_view text) { return Reader(text).read(); }

} // namespace heddle::emulator
