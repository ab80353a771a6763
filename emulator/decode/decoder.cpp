// Decoder: places of registers and variables, labels, calls.
#include "emulator/decode/decoder.h"

#include "emulator/decode/order.h"
#include "emulator/machine/memory.h"

#include <algorithm>

namespace heddle::emulator {
namespace {

constexpr size_t kMostCode = 1 << 20;
constexpr uint64_t kMostRegisters = 1 << 24; // bytes of a warp
constexpr uint64_t kMostLocal = 512 << 10;
constexpr uint32_t kGap = 16; // red zone between variables of shared and local memory

uint64_t alignedTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

} // namespace

const Opcodes &opcodes() {
  static const Opcodes all = [] {
    Opcodes made;
    for (auto add : {addArithmetic, addFloats, addLogic, addConversions, addControl, addMemory,
                     addAtomics, addWarps, addMatrices})
      add(made);
    return made;
  }();
  return all;
}

void Decoder::fail(const std::string &why) const {
  throw PtxError(statement ? statement->line : 0,
                 (statement ? "'" + statement->text + "': " : "") + why);
}

std::unique_ptr<Kernel> Decoder::decode(const Function &function) {
  auto made = std::make_unique<Kernel>();
  kernel = made.get();
  kernel->name = function.name;
  kernel->mostThreads = function.mostThreads;
  kernel->neededThreads = function.neededThreads;
  Frame own;
  own.function = &function;
  uint64_t offset = 0;
  for (const Variable &each : function.parameters) {
    offset = alignedTo(offset, each.alignment);
    own.places[each.name] = {Space::Parameter, offset};
    kernel->parameters.push_back(
        {each.name, static_cast<uint32_t>(offset), static_cast<uint32_t>(each.bytes)});
    offset += each.bytes;
    if (offset > 4352)
      throw PtxError(function.line, "'" + function.name + "' has more than 4352 parameter bytes");
  }
  kernel->parameterBytes = static_cast<uint32_t>(offset);
  std::set<std::string> seen;
  placeShared(function, seen);
  if (!dynamicName.empty()) {
    kernel->sharedSpan = static_cast<uint32_t>(alignedTo(kernel->sharedSpan, 1024));
    sharedPlaces[dynamicName] = {Space::Shared, kernel->sharedSpan};
  }
  calls = {&function};
  body(own);
  statement = nullptr;
  kernel->code.emplace_back().flow = Flow::Exit;
  kernel->texts.emplace_back("the end of the kernel");
  for (uint32_t place : own.returns)
    kernel->code[place].target = static_cast<uint32_t>(kernel->code.size() - 1);
  resolve(own);
  rank(*kernel);
  for (Instruction &each : kernel->code)
    each.operands = kernel->operands.data() + each.first;
  kernel->localBytes = static_cast<uint32_t>(alignedTo(kernel->localBytes, 16));
  return made;
}

/// Finds shared variables of a function and of all that it calls, in one order.
void Decoder::placeShared(const Function &function, std::set<std::string> &seen) {
  if (!seen.insert(function.name).second)
    return;
  std::set<std::string> used;
  auto note = [&](auto &self, const Argument &argument) -> void {
    used.insert(argument.name);
    for (const Argument &part : argument.parts)
      self(self, part);
  };
  for (const Statement &each : function.body)
    for (const Argument &argument : each.arguments)
      note(note, argument);
  for (const Variable &each : function.variables)
    if (each.space == "shared")
      placeSharedVariable(each);
  for (const Variable &each : program.variables)
    if (each.space == "shared" && used.count(each.name))
      placeSharedVariable(each);
  for (const std::string &name : used)
    if (auto callee = program.functions.find(name); callee != program.functions.end())
      placeShared(callee->second, seen);
}

void Decoder::placeSharedVariable(const Variable &variable) {
  if (variable.isDynamic) {
    dynamicName = variable.name;
    return;
  }
  if (sharedPlaces.count(variable.name))
    return;
  uint64_t real = alignedTo(kernel->sharedBytes, variable.alignment) + variable.bytes;
  uint64_t offset = alignedTo(kernel->sharedSpan + kGap, std::max(variable.alignment, kGap));
  if (real > (228 << 10) || offset + variable.bytes > (1 << 20))
    throw PtxError(variable.line, "'" + variable.name + "': more than 228 KiB of shared memory");
  kernel->sharedBytes = static_cast<uint32_t>(real);
  kernel->shared.push_back(
      {variable.name, static_cast<uint32_t>(offset), static_cast<uint32_t>(variable.bytes)});
  kernel->sharedSpan = static_cast<uint32_t>(offset + variable.bytes + kGap);
  sharedPlaces[variable.name] = {Space::Shared, offset};
}

uint32_t Decoder::placeLocal(const std::string &name, uint64_t bytes, uint32_t alignment) {
  uint64_t offset = alignedTo(kernel->localBytes + kGap, std::max(alignment, kGap));
  if (bytes > kMostLocal || offset + bytes > kMostLocal)
    fail("'" + name + "': more than 512 KiB of local memory");
  kernel->local.push_back({name, static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)});
  kernel->localBytes = static_cast<uint32_t>(offset + bytes);
  return static_cast<uint32_t>(offset);
}

void Decoder::placeVariables(Frame &own) {
  for (const Variable &each : own.function->variables) {
    if (each.space == "shared")
      continue;
    if (each.space != "local" && each.space != "param")
      throw PtxError(each.line, "'" + each.name + "': variables of functions are .local, .param " +
                                    "or .shared");
    own.places[each.name] = {Space::Local, placeLocal(each.name, each.bytes, each.alignment)};
  }
}

void Decoder::body(Frame &own) {
  Frame *before = frame;
  frame = &own;
  placeVariables(own);
  for (const Statement &each : own.function->body) {
    statement = &each;
    if (!each.label.empty()) {
      uint32_t place = static_cast<uint32_t>(kernel->code.size());
      if (!own.labels.emplace(each.label, place).second)
        throw PtxError(each.line, "label '" + each.label + "' is there twice");
    } else {
      step(each);
    }
  }
  frame = before;
}

void Decoder::resolve(Frame &own) {
  auto find = [&](const std::string &label) {
    auto found = own.labels.find(label);
    if (found == own.labels.end())
      throw PtxError(own.function->line,
                     "'" + own.function->name + "' has no label '" + label + "'");
    return found->second;
  };
  for (const auto &[place, label] : own.branches)
    kernel->code[place].target = find(label);
  for (const auto &[place, label] : own.entries)
    kernel->tables[place] = find(label);
}

void Decoder::step(const Statement &each) {
  now = {};
  operands.clear();
  taken.assign(each.word.size(), false);
  taken[0] = true;
  auto found = opcodes().find(each.word[0]);
  if (found == opcodes().end())
    fail("this instruction is not known");
  if (!each.guard.empty()) {
    Argument guard;
    guard.kind = Argument::Name;
    guard.name = each.guard;
    now.guard = static_cast<int32_t>(predicate(guard).offset);
    now.isGuardNegated = each.isGuardNegated;
  }
  found->second(*this);
}

bool Decoder::take(std::string_view word) {
  for (size_t i = 1; i < taken.size(); ++i)
    if (!taken[i] && statement->word[i] == word)
      return taken[i] = true;
  return false;
}

bool Decoder::has(std::string_view word) const {
  const auto &all = statement->word;
  return std::find(all.begin() + 1, all.end(), word) != all.end();
}

Type Decoder::takeType() {
  for (size_t i = 1; i < taken.size(); ++i)
    if (Type type = typeOf(statement->word[i]); !taken[i] && type != Type::None) {
      taken[i] = true;
      return type;
    }
  fail("a type is missing");
}

Rounding Decoder::takeRounding(bool *isInteger, bool *isGiven) {
  static constexpr std::pair<const char *, Rounding> words[] = {
      {"rn", Rounding::Nearest}, {"rz", Rounding::Zero},  {"rm", Rounding::Down},
      {"rp", Rounding::Up},      {"rna", Rounding::Away}, {"rni", Rounding::Nearest},
      {"rzi", Rounding::Zero},   {"rmi", Rounding::Down}, {"rpi", Rounding::Up}};
  for (const auto &[word, mode] : words)
    if ((word[2] != 'i' || isInteger) && take(word)) {
      if (isInteger)
        *isInteger = word[2] == 'i';
      if (isGiven)
        *isGiven = true;
      now.rounding = static_cast<uint8_t>(mode);
      return mode;
    }
  return Rounding::Nearest;
}

void Decoder::takeFlags() {
  now.isFlushing |= take("ftz");
  now.isSaturating |= take("sat");
}

void Decoder::expect(size_t least, size_t most) const {
  size_t count = statement->arguments.size();
  if (count < least || count > most)
    fail(std::to_string(count) + " arguments; it takes " + std::to_string(least) +
         (most > least ? " to " + std::to_string(most) : ""));
}

Operand Decoder::allocate(unsigned bytes) {
  Operand made;
  made.offset = kernel->registerBytes;
  made.bytes = static_cast<uint8_t>(bytes);
  kernel->registerBytes += static_cast<uint32_t>(alignedTo(std::max(4u, bytes * kLanes), 64));
  if (kernel->registerBytes > kMostRegisters)
    fail("more registers than the emulator has");
  return made;
}

Operand Decoder::scratch(unsigned bytes) { return allocate(bytes); }

Operand Decoder::carry() {
  if (!hasCarry)
    carryMask = allocate(0), hasCarry = true;
  return carryMask;
}

Type Decoder::declared(const std::string &name) const {
  const Function &function = *frame->function;
  if (auto found = function.registers.find(name); found != function.registers.end())
    return found->second;
  size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits == name.size() || digits == 0 || name.size() - digits > 9)
    return Type::None;
  auto found = function.ranges.find(name.substr(0, digits));
  if (found == function.ranges.end() || std::stoull(name.substr(digits)) >= found->second.first)
    return Type::None;
  return found->second.second;
}

Operand Decoder::registerOf(const std::string &name) {
  if (auto found = frame->registers.find(name); found != frame->registers.end())
    return found->second;
  Type type = declared(name);
  if (type == Type::None)
    fail("there is no register '" + name + "'");
  unsigned bytes = bytesOf(type);
  kernel->registerCount += bytes > 4 ? 2 : bytes ? 1 : 0;
  return frame->registers[name] = allocate(bytes);
}

Operand Decoder::constant(uint64_t bits, unsigned bytes) {
  if (bytes < 8)
    bits &= (uint64_t(1) << (8 * bytes)) - 1;
  auto [found, isNew] = constants.try_emplace({bits, bytes});
  if (isNew) {
    found->second = {static_cast<uint32_t>(kernel->constants.size()), 1,
                     static_cast<uint8_t>(bytes)};
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned k = 0; k < bytes; ++k)
        kernel->constants.push_back(static_cast<uint8_t>(bits >> (8 * k)));
    kernel->constants.resize(alignedTo(kernel->constants.size(), 64));
  }
  return found->second;
}

Operand Decoder::special(Kernel::Special what, unsigned axis) {
  auto [found, isNew] = specials.try_emplace({what, axis});
  if (isNew) {
    found->second = allocate(4);
    kernel->presets.push_back({what, static_cast<uint8_t>(axis), found->second.offset});
  }
  return found->second;
}

bool Decoder::symbol(const std::string &name, Space &space, uint64_t &value) const {
  auto take = [&](const auto &places) {
    auto found = places.find(name);
    if (found == places.end())
      return false;
    space = found->second.first, value = found->second.second;
    return true;
  };
  if (take(frame->places) || take(sharedPlaces))
    return true;
  auto found = symbols.find(name);
  if (found == symbols.end())
    return false;
  space = Space::Global, value = found->second;
  return true;
}

Operand Decoder::source(const Argument &argument, Type type, bool mayBeWider) {
  static const std::unordered_map<std::string, std::pair<Kernel::Special, unsigned>> names = {
      {"%tid.x", {Kernel::Tid, 0}},         {"%tid.y", {Kernel::Tid, 1}},
      {"%tid.z", {Kernel::Tid, 2}},         {"%ntid.x", {Kernel::Ntid, 0}},
      {"%ntid.y", {Kernel::Ntid, 1}},       {"%ntid.z", {Kernel::Ntid, 2}},
      {"%ctaid.x", {Kernel::Ctaid, 0}},     {"%ctaid.y", {Kernel::Ctaid, 1}},
      {"%ctaid.z", {Kernel::Ctaid, 2}},     {"%nctaid.x", {Kernel::Nctaid, 0}},
      {"%nctaid.y", {Kernel::Nctaid, 1}},   {"%nctaid.z", {Kernel::Nctaid, 2}},
      {"%laneid", {Kernel::Laneid, 0}},     {"%warpid", {Kernel::Warpid, 0}},
      {"%nwarpid", {Kernel::Nwarpid, 0}},   {"%smid", {Kernel::Smid, 0}},
      {"%nsmid", {Kernel::Nsmid, 0}},       {"%lanemask_eq", {Kernel::Masks, 0}},
      {"%lanemask_le", {Kernel::Masks, 1}}, {"%lanemask_lt", {Kernel::Masks, 2}},
      {"%lanemask_ge", {Kernel::Masks, 3}}, {"%lanemask_gt", {Kernel::Masks, 4}}};
  unsigned bytes = bytesOf(type);
  uint64_t bits = argument.bits;
  switch (argument.kind) {
  case Argument::Name: {
    Space space;
    uint64_t value;
    Operand made;
    if (auto found = names.find(argument.name); found != names.end())
      made = special(found->second.first, found->second.second);
    else if (argument.name == "WARP_SZ")
      return constant(kLanes, bytes);
    else if (symbol(argument.name, space, value))
      return constant(value + bits, bytes);
    else
      made = registerOf(argument.name);
    if (argument.isNegated || !argument.second.empty())
      fail("'" + argument.name + "' is no value here");
    if (made.bytes != bytes && !(mayBeWider && made.bytes > bytes))
      fail("'" + argument.name + "' has " + std::to_string(made.bytes * 8) + " bits, " +
           std::to_string(bytes * 8) + " are expected");
    return made;
  }
  case Argument::Integer:
    if (type == Type::F64 || type == Type::F32)
      fail("an integer where a float is expected");
    return constant(bits, bytes);
  case Argument::Float:
    if (type == Type::F64)
      return constant(
          std::bit_cast<uint64_t>(double(std::bit_cast<float>(static_cast<uint32_t>(bits)))), 8);
    return constant(bits, bytes);
  case Argument::Double:
    if (bytes == 4)
      return constant(std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits))), 4);
    return constant(bits, bytes);
  default:
    fail("a value is expected");
  }
}

Operand Decoder::target(const Argument &argument, Type type, bool mayBeWider) {
  if (argument.kind != Argument::Name || argument.isNegated || argument.bits)
    fail("a register is expected");
  if (argument.name == "_")
    return allocate(bytesOf(type));
  Operand made = registerOf(argument.name);
  unsigned bytes = bytesOf(type);
  if (made.bytes != bytes && !(mayBeWider && made.bytes > bytes))
    fail("'" + argument.name + "' has " + std::to_string(made.bytes * 8) + " bits, " +
         std::to_string(bytes * 8) + " are expected");
  return made;
}

Operand Decoder::predicate(const Argument &argument, bool isTarget) {
  if (argument.kind == Argument::Integer && !isTarget)
    return constant(argument.bits ? ~uint64_t(0) : 0, 4);
  if (argument.kind != Argument::Name || argument.bits)
    fail("a predicate is expected");
  if (isTarget && argument.name == "_")
    return allocate(0);
  Operand made = registerOf(argument.name);
  if (made.bytes)
    fail("'" + argument.name + "' is no predicate");
  return made;
}

void Decoder::useAll(Type type, size_t count) {
  expect(count, count);
  use(target(arguments()[0], type));
  for (size_t i = 1; i < count; ++i)
    use(source(arguments()[i], type));
}

void Decoder::useAddress(const Argument &argument, Space &space) {
  if (argument.kind != Argument::Address)
    fail("an address is expected");
  Space own;
  uint64_t value = 0;
  if (argument.name.empty()) {
    use(constant(argument.bits, 8));
  } else if (symbol(argument.name, own, value)) {
    if (space == Space::Parameter || own != Space::Global)
      space = own;
    use(constant(value + argument.bits, 8));
  } else {
    Operand base = registerOf(argument.name);
    if (base.bytes != 4 && base.bytes != 8)
      fail("'" + argument.name + "' has too few bits for an address");
    if (base.bytes == 4 && space == Space::Generic)
      fail("an address without a state space has 64 bits");
    now.number = static_cast<int64_t>(argument.bits);
    use(base);
  }
}

std::vector<const Argument *> Decoder::elements(const Argument &argument) {
  std::vector<const Argument *> made;
  if (argument.kind == Argument::Vector)
    for (const Argument &part : argument.parts)
      made.push_back(&part);
  else
    made.push_back(&argument);
  return made;
}

Instruction &Decoder::emit(Handler run, Class kind) {
  for (size_t i = 1; i < taken.size(); ++i)
    if (!taken[i])
      fail("'." + statement->word[i] + "' is not known here");
  if (!run && now.flow == Flow::None)
    fail("it has no form for this type");
  if (kernel->code.size() >= kMostCode)
    fail("the kernel has more than " + std::to_string(kMostCode) + " instructions");
  now.run = run;
  now.kind = kind;
  now.line = statement->line;
  now.first = static_cast<uint32_t>(kernel->operands.size());
  now.count = static_cast<uint16_t>(operands.size());
  kernel->operands.insert(kernel->operands.end(), operands.begin(), operands.end());
  operands.clear();
  kernel->code.push_back(now);
  kernel->texts.push_back("'" + statement->text + "'");
  return kernel->code.back();
}

void Decoder::control(Flow flow, Class kind) {
  now.flow = flow;
  emit(nullptr, kind);
}

void Decoder::branch(const std::string &label) {
  frame->branches.emplace_back(static_cast<uint32_t>(kernel->code.size()), label);
  control(Flow::Branch, Class::Branch);
}

void Decoder::table(const std::string &name) {
  auto found = frame->function->targets.find(name);
  if (found == frame->function->targets.end())
    fail("there is no .branchtargets '" + name + "'");
  now.target = static_cast<uint32_t>(kernel->tables.size());
  now.number = static_cast<int64_t>(found->second.size());
  for (const std::string &label : found->second) {
    frame->entries.emplace_back(static_cast<uint32_t>(kernel->tables.size()), label);
    kernel->tables.push_back(0);
  }
  control(Flow::Table, Class::Branch);
}

void Decoder::finish() {
  if (calls.size() > 1) {
    frame->returns.push_back(static_cast<uint32_t>(kernel->code.size()));
    control(Flow::Branch, Class::Branch);
  } else {
    control(Flow::Exit, Class::Branch);
  }
}

void Decoder::call() {
  take("uni");
  const auto &all = arguments();
  size_t at = !all.empty() && all[0].kind == Argument::List;
  if (all.size() <= at || all[at].kind != Argument::Name)
    fail("a function is expected");
  auto found = program.functions.find(all[at].name);
  if (found == program.functions.end())
    fail("calls through registers are not supported");
  const Function &callee = found->second;
  if (!callee.isDefined)
    fail("function '" + callee.name + "' has no body");
  if (std::find(calls.begin(), calls.end(), &callee) != calls.end())
    fail("function '" + callee.name + "' calls itself, which is not supported");
  if (now.guard >= 0)
    fail("a call with a guard is not supported");
  Frame own;
  own.function = &callee;
  auto bind = [&](const std::vector<Variable> &formal, const Argument *list) {
    if (formal.size() != (list ? list->parts.size() : 0))
      fail("'" + callee.name + "' has " + std::to_string(formal.size()) + " parameters");
    for (size_t i = 0; i < formal.size(); ++i) {
      auto place = frame->places.find(list->parts[i].name);
      if (place == frame->places.end() || place->second.first != Space::Local)
        fail("'" + list->parts[i].name + "' is no .param variable");
      own.places[formal[i].name] = place->second;
    }
  };
  bind(callee.returns, at ? &all[0] : nullptr);
  bind(callee.parameters, all.size() > at + 1 ? &all[at + 1] : nullptr);
  calls.push_back(&callee);
  const Statement *before = statement;
  body(own);
  for (uint32_t place : own.returns)
    kernel->code[place].target = static_cast<uint32_t>(kernel->code.size());
  resolve(own);
  calls.pop_back();
  statement = before;
}

} // namespace heddle::emulator
