// Versions: the main graph read in steps, and read on twice from a step that asks a question.

#include "compiler/onnx/ranks/Versions.h"

#include "compiler/onnx/Reader.h"
#include "compiler/onnx/ranks/Branches.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

Value Question::condition(Emitter &e) const {
  if (!value)
    return e.compare<EqualOp>(e.size(size), e.integerScalar(e.i64(), 1));
  if (!listOf(value))
    return e.reshape(value, {});
  Value rank = e.typed<ListRankOp>(e.tensor({}, e.i64()), value);
  return e.compare<EqualOp>(rank, e.size(size));
}

Question isOne(const Dim &size) { return {size.str() + " is 1", {}, size, {}}; }

Question holds(Value condition, StringRef node) {
  return {"the condition of node '" + node.str() + "' holds", condition, Dim(), {}};
}

Question hasRank(Value list, int64_t rank, StringRef input) {
  std::string name = input.str();
  return {"input '" + name + "' has rank " + std::to_string(rank),
          list,
          Dim(rank),
          {"the rank of input '" + name +
               "' is not known: the model does not declare it, and its " +
               "nodes take none of the ranks 0 to " + std::to_string(kMostVersions - 1),
           "give its shape, for example --shape " + name + "=1x3x224x224"}};
}

std::optional<bool> Reader::answered(Emitter &e, const Question &question) {
  if (!question.value)
    if (auto known = withoutOnes(question.size).constant())
      return *known == 1;
  auto found = answers.find(keyOf(question));
  if (found == answers.end())
    return std::nullopt;
  // Said here, since only what is computed asks for it: not in a branch that the run does not take.
  Answer &answer = found->second;
  if (answer.isOnly && !answer.isSaid)
    require(e, question, answer.is, answer.why);
  answer.isSaid |= builder.getInsertionBlock() == step.block;
  return answer.is;
}

Dim Reader::withoutOnes(const Dim &size) const {
  return size.substitute(
      [&](StringRef name) { return ones.contains(name) ? std::optional(Dim(1)) : std::nullopt; });
}

Reader::Key Reader::keyOf(const Question &question) const {
  return {question.value ? question.text : withoutOnes(question.size).str(),
          question.value.getAsOpaquePointer()};
}

void Reader::answer(const Question &question, bool answer) {
  answers[keyOf(question)] = {answer};
  if (auto name = question.size.symbolName(); answer && name)
    ones.insert(*name);
}

/// Whether the answer is there before the step of the main graph that is read now.
bool Reader::isAskable(const Question &question) const {
  if (!step.block || options.marksWeights)
    return false;
  if (!question.value)
    return !isLocal(question.size, step.symbols);
  Value value = question.value;
  Operation *maker = value.getDefiningOp();
  if (value.getParentBlock() == step.block)
    return !maker || (step.last && !step.last->isBeforeInBlock(maker));
  return value.getParentRegion()->isProperAncestor(step.block->getParent());
}

bool Reader::ask(Emitter &e, const Question &question, std::optional<bool> likely) {
  if (auto known = answered(e, question))
    return *known;
  if (isAskable(question)) {
    if (versions < kMostVersions && tried < kMostTried)
      throw question;
    if (!likely)
      stop("", "ranks depend on whether " + question.text + ", which is one question more than " +
                   Twine(kMostVersions) + " versions of the model answer; give the shapes of its " +
                   "inputs (--shape)");
  }
  if (!likely)
    refuse("the rank of the result depends on whether " + question.text,
           "ranks that differ from run to run are supported only outside of loops, functions and "
           "training");
  require(e, question, *likely, "give the sizes of the inputs when compiling (--shape)");
  return *likely;
}

void Reader::require(Emitter &e, const Question &question, bool answer, StringRef why) {
  Value sign;                    // negative where the answer is another one
  if (answer && !question.value) // sizes are checked before all that follows from them
    sign = e.sizes({question.size - Dim(1), Dim(1) - question.size});
  else if (Value isTrue = e.cast(question.condition(e), e.i64()))
    sign = answer ? e.sub(isTrue, e.integerScalar(e.i64(), 1))
                  : e.sub(e.integerScalar(e.i64(), 0), isTrue);
  std::string text;
  for (char c : ("in this run " + (answer ? "it is not so that " + question.text : question.text) +
                 ", for which the model could not be compiled: " + why)
                    .str())
    text += c == '%' ? "%%" : std::string(1, c);
  e.requireNotNegative(sign, text);
}

/// Takes back what was built after `last`.
void Reader::undo(Block *block, Operation *last) {
  auto forget = [&](Value value) {
    labels.erase(value);
    maps.erase(value);
  };
  while (!block->empty() && &block->back() != last) {
    block->back().walk([&](Operation *op) { llvm::for_each(op->getResults(), forget); });
    block->back().erase();
  }
  for (auto &[key, answer] : answers)
    answer.isSaid = false; // perhaps there
  builder.setInsertionPointToEnd(block);
}

Reader::Outputs Reader::readSteps(ArrayRef<Step> steps, Scope &scope, const Finish &finish) {
  Block *block = builder.getInsertionBlock();
  for (size_t i = 0; i < steps.size(); ++i) {
    Operation *last = block->empty() ? nullptr : &block->back();
    std::optional<Question> asked;
    Emitter e(builder, builder.getUnknownLoc(), diagnostics);
    step = {block, last, symbolCount(e)};
    try {
      steps[i](scope);
    } catch (const Question &question) {
      asked = question;
    }
    step = {};
    if (!asked)
      continue;
    undo(block, last);
    return readVersions(*asked, steps.drop_front(i), scope, finish);
  }
  return finish(scope);
}

/// The type that results of two versions become: null if they have one.
static Type commonRank(Emitter &e, Value x, Value y) {
  ListType a = listOf(x), b = listOf(y);
  if (a && b)
    return joinedList(e, a, b);
  if (!a && !b && (elementOf(x) != elementOf(y) || rankOf(x) == rankOf(y)))
    return {};
  Type element = a ? a.getElement() : elementOf(x);
  return element == (b ? b.getElement() : elementOf(y))
             ? listTensor(e.context(), kAnyRank, element, -2)
             : Type();
}

Reader::Outputs Reader::readVersions(const Question &question, ArrayRef<Step> steps,
                                     const Scope &scope, const Finish &finish) {
  Emitter e(builder, NameLoc::get(builder.getStringAttr(question.text)), diagnostics);
  Block *block = builder.getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  const auto before = std::tuple(problems, answers, ones, isTrying);
  const int64_t hadVersions = versions;
  ++tried;
  ++versions;
  Outputs outputs[2];
  std::map<Key, Answer> learned; // keys whose answer is no
  std::optional<Branches> branches(std::in_place, e, question.condition(e));
  for (bool is : {false, true}) { // if one is no version, it is mostly the first
    isTrying = true;
    answer(question, is);
    Scope own = scope;
    branches->fill(!is, [&] {
      try {
        outputs[!is] = readSteps(steps, own, finish);
      } catch (const NoVersion &) {
      }
      return outputs[!is].values;
    });
    Problems found = problems;
    if (!is)
      learned = answers;
    std::tie(problems, answers, ones, isTrying) = before;
    if (found.count() == problems.count())
      continue;
    // The other one is the only version: it is read in place of both, with the answers learned for
    // later questions, so that none is looked into again.
    branches.reset();
    undo(block, last);
    versions = hadVersions;
    for (auto &[later, answer] : learned)
      if (is && answer.isOnly)
        answers.try_emplace(later, Answer{answer.is, true, answer.why});
    answers[keyOf(question)] = {!is, true, found.firstAfter(problems).str()};
    Scope only = scope;
    Outputs made = readSteps(steps, only, finish);
    if (problems.count() != std::get<Problems>(before).count() &&
        !question.ifNone.message.empty()) {
      problems = std::get<Problems>(before);
      problems.add("", question.ifNone);
    }
    return made;
  }
  try {
    if (outputs[0].attributes != outputs[1].attributes)
      refuse("the labels of its results differ where " + question.text);
    branches->join([&](size_t, Value x, Value y) { return commonRank(e, x, y); });
    Operation *made = branches->make();
    return {llvm::to_vector_of<Value>(made->getResults()), outputs[0].attributes};
  } catch (const Refusal &refusal) {
    problems.add("", refusal);
    return {};
  }
}

} // namespace heddle::onnx
