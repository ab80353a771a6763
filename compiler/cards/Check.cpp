// Check: random sizes and knobs, one kernel for some cases each, and last a kernel that is wrong.

#include "compiler/cards/Check.h"

#include "compiler/cards/Mutation.h"
#include "compiler/pipeline/Planning.h"
#include "compiler/reference/Interpreter.h"
#include "compiler/support/Error.h"
#include "compiler/support/Json.h"
#include "compiler/trial/Numbers.h"
#include "compiler/trial/Program.h"
#include "compiler/warehouse/Warehouse.h"

#include "mlir/Parser/Parser.h"

#include <chrono>

using namespace mlir;

namespace heddle::cards {

using namespace trial;

/// Cases of one kernel; every other kernel is made for the sizes of one case alone.
static constexpr int64_t kCasesOfKernel = 5;
static constexpr int64_t kMostMutations = 8;
static constexpr int64_t kMostDraws = 20; // draws of sizes, for a case that the interpreter takes

namespace {
struct Case {
  Sizes sizes;
  reference::Tensors inputs, expected;
};

class Checker {
public:
  Checker(const warehouse::Card &card, StringRef text, const CheckOptions &options, int64_t lanes)
      : card(card), text(text.str()), random(options.seed), lanes(lanes), seconds(options.seconds) {
    proof.card = card.name;
    proof.path = card.path;
    proof.mechanism = card.mechanism->name;
  }

  llvm::Expected<Proof> run(int64_t count) {
    auto trials = trialsOf(card, random, [this](const Trial &trial) { return mayRun(trial); });
    if (!trials)
      return trials.takeError();
    bool isCaught = false;
    for (const Trial &trial : *trials) {
      proof.groups.push_back(trial.name);
      if (llvm::Error error = tryOn(trial, llvm::divideCeil(count, trials->size())))
        return std::move(error);
      if (proof.difference)
        return std::move(proof);
      auto caught = mutationIsCaught(trial);
      if (!caught)
        return caught.takeError();
      isCaught |= *caught;
    }
    if (proof.carriedOut == 0)
      return makeError(ErrorCode::Usage,
                       card.path + ": error: mechanism '" + card.mechanism->name +
                           "' was carried out in none of " + Twine(proof.kernels) +
                           " kernels: the group ran element by element; see the card's Needs");
    if (!isCaught)
      return makeError(ErrorCode::Usage, card.path +
                                             ": error: the example proves nothing: no "
                                             "result changes when " +
                                             llvm::join(proof.missed, ", or ") +
                                             "; write one whose results depend on its ops");
    return std::move(proof);
  }

private:
  OwningOpRef<ModuleOp> parse(const std::string &module) {
    return parseSourceString<ModuleOp>(module, card.module.get().getContext());
  }

  warehouse::KnobValues randomKnobs(bool isFirst) {
    warehouse::KnobValues knobs;
    for (const warehouse::Knob &knob : card.knobs)
      knobs[knob.name] = isFirst ? knob.initial : knob.domain[random() % knob.domain.size()];
    return knobs;
  }

  /// Other knobs up to each of these sizes, so that the case of them is at a bound and others are
  /// on both sides of it; of every other kernel.
  std::vector<plan::Version> randomVersions(const Sizes &sizes) {
    std::vector<plan::Version> versions;
    if (card.knobs.empty() || random() % 2)
      return versions;
    for (auto &[symbol, size] : sizes)
      versions.push_back({{{symbol, size}}, randomKnobs(false)});
    return versions;
  }

  /// Sizes and inputs that the interpreter takes, and what it says of them.
  llvm::Expected<Case> makeCase(ModuleOp oracle, bool mayBeEmpty) {
    auto main = oracle.lookupSymbol<func::FuncOp>("main");
    std::string refusal = "a size is negative, or a tensor is too large";
    for (int64_t draw = 0; draw < kMostDraws; ++draw) {
      Case made;
      made.sizes = randomSizes(main, lanes, mayBeEmpty, random);
      if (isTooSlow(main, made.sizes))
        return makeError(ErrorCode::Usage, card.path + ": error: the example is too large to try: "
                                                       "give it smaller sizes, or symbols");
      auto inputs = randomInputs(main, made.sizes, random);
      if (!inputs)
        continue;
      made.inputs = std::move(*inputs);
      reference::Limits limits;
      limits.bytes = int64_t(1) << 30;
      auto expected = reference::Interpreter(oracle, limits).run(made.inputs);
      if (expected) {
        made.expected = std::move(*expected);
        return made;
      }
      refusal = llvm::toString(expected.takeError());
    }
    return makeError(ErrorCode::Usage,
                     card.path + ": error: the interpreter refuses the example: " + refusal);
  }

  bool mayRun(const Trial &trial) {
    OwningOpRef<ModuleOp> oracle = parse(trial.text);
    auto made = makeCase(*oracle, /*mayBeEmpty=*/false);
    if (!made)
      llvm::consumeError(made.takeError());
    return static_cast<bool>(made);
  }

  llvm::Error tryOn(const Trial &trial, int64_t count) {
    OwningOpRef<ModuleOp> oracle = parse(trial.text);
    cases.clear();
    for (int64_t done = 0; done < count && !proof.difference;) {
      bool isFixed = proof.kernels % 2 == 1;
      std::vector<Case> wanted;
      for (int64_t i = 0; i < (isFixed ? 1 : kCasesOfKernel); ++i) {
        auto made = makeCase(*oracle, !isFixed);
        if (!made && trial.isVariation) {
          llvm::consumeError(made.takeError());
          return llvm::Error::success();
        }
        if (!made)
          return made.takeError();
        wanted.push_back(std::move(*made));
      }
      done += wanted.size();
      if (llvm::Error error =
              tryKernel(trial, wanted, randomKnobs(done <= kCasesOfKernel), isFixed))
        return error;
      llvm::move(wanted, std::back_inserter(cases));
    }
    return llvm::Error::success();
  }

  llvm::Error tryKernel(const Trial &trial, ArrayRef<Case> wanted,
                        const warehouse::KnobValues &knobs, bool isFixed) {
    std::string module = trial.text;
    if (isFixed) {
      OwningOpRef<ModuleOp> fixed = parse(trial.text);
      fixSizes(*fixed, wanted.front().sizes);
      module = textOf(*fixed);
    }
    std::vector<plan::Version> versions =
        isFixed ? std::vector<plan::Version>() : randomVersions(wanted.back().sizes);
    auto program = Program::make(module, text, card.path, knobs, versions);
    if (!program)
      return program.takeError();
    ++proof.kernels;
    proof.carriedOut += (*program)->isCarriedOut;
    for (const Case &each : wanted) {
      ++proof.cases;
      std::string what = differenceOf(**program, each, trial.isVariation);
      if (!what.empty()) {
        proof.difference = {trial.name, what, each.sizes, knobs, std::move(versions), isFixed};
        break;
      }
    }
    return llvm::Error::success();
  }

  /// A variation may break what the run checks of sizes.
  std::string differenceOf(Program &program, const Case &each, bool isVariation = false) {
    SmallVector<Type> elements;
    for (const reference::Tensor &tensor : each.expected)
      elements.push_back(tensor.element);
    auto found = program.runApart(each.inputs, elements, seconds);
    if (!found) {
      std::string message;
      bool isCheck = false;
      llvm::handleAllErrors(found.takeError(), [&](const Error &error) {
        message = error.message;
        isCheck = error.code != ErrorCode::NumbersDiffer;
      });
      return isVariation && isCheck ? "" : message;
    }
    for (size_t i = 0; i < found->size(); ++i)
      if (std::string what = difference(each.expected[i], (*found)[i]); !what.empty())
        return "result " + std::to_string(i) + ": " + what;
    return "";
  }

  /// Whether the cases tell a kernel that is wrong from one that is right. A change that a result
  /// cannot show, as of the maximum that softmax subtracts, is followed by another one.
  llvm::Expected<bool> mutationIsCaught(const Trial &trial) {
    OwningOpRef<ModuleOp> module = parse(trial.text);
    std::vector<int64_t> order(countMutations(*module));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    order.resize(std::min<size_t>(order.size(), kMostMutations));
    for (int64_t number : order) {
      module = parse(trial.text);
      std::string change = mutate(*module, number);
      auto program = Program::make(textOf(*module), text, card.path, randomKnobs(true));
      if (!program)
        return program.takeError();
      if (llvm::any_of(cases, [&](auto &each) { return !differenceOf(**program, each).empty(); })) {
        proof.caught = change;
        return true;
      }
      proof.missed.push_back(change);
    }
    return false;
  }

  const warehouse::Card &card;
  std::string text;
  Random random;
  int64_t lanes, seconds;
  Proof proof;
  std::vector<Case> cases; // cases of the latest trial
};
} // namespace

llvm::Expected<Proof> checkText(StringRef text, StringRef path, const CheckOptions &options) {
  auto begin = std::chrono::steady_clock::now();
  auto context = makeContext();
  auto card = warehouse::parseCard(*context, text, path);
  if (!card)
    return card.takeError();
  target::Request request;
  request.oneDnn = options.oneDnn;
  auto targets = target::targetsFor("host", request);
  if (!targets)
    return targets.takeError();
  const target::Target &target = *targets->front();
  if (std::string why = whyMissing(*card, target); !why.empty())
    return makeError(ErrorCode::Usage, card->path + ": error: " + why);
  auto proof = Checker(*card, text, options, target.machine(1).lanes).run(options.count);
  if (proof)
    proof->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return proof;
}

llvm::Expected<Proof> check(StringRef path, const CheckOptions &options) {
  auto text = warehouse::readCard(path);
  if (!text)
    return text.takeError();
  return checkText((*text)->getBuffer(), path, options);
}

std::string Proof::json() const {
  Json json = {{"card", card},           {"path", path},
               {"mechanism", mechanism}, {"passes", !difference},
               {"groups", groups},       {"cases", cases},
               {"kernels", kernels},     {"carried_out", carriedOut},
               {"mutation", caught},     {"mutations_missed", missed},
               {"seconds", seconds}};
  if (!difference)
    return json.dump(2, ' ', false, Json::error_handler_t::replace);
  auto versions = Json::array();
  for (const plan::Version &version : difference->versions)
    versions.push_back({{"when", version.when}, {"knobs", version.knobs}});
  json["difference"] = {
      {"group", difference->group}, {"what", difference->what},
      {"sizes", difference->sizes}, {"knobs", difference->knobs},
      {"versions", versions},       {"compiled_for_these_sizes", difference->isFixed}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace heddle::cards
