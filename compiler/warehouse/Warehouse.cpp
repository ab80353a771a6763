// Warehouse: finding the cards, their order, and offering them.

#include "compiler/warehouse/Warehouse.h"

#include "compiler/program/Dialect.h"
#include "compiler/support/Files.h"
#include "compiler/warehouse/Builtin.h"
#include "compiler/warehouse/TransformOps.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace heddle::warehouse {

void registerDialects(DialectRegistry &registry) {
  registry.insert<transform::TransformDialect, func::FuncDialect, graph::GraphDialect>();
  // Dialects that kernels are written in.
  registry
      .insert<arith::ArithDialect, cf::ControlFlowDialect, math::MathDialect, memref::MemRefDialect,
              program::ProgramDialect, scf::SCFDialect, vector::VectorDialect>();
  registerTransformOps(registry);
}

static void prepare(MLIRContext &context) {
  DialectRegistry registry;
  registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.getOrLoadDialect<transform::TransformDialect>();
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readCard(StringRef path) {
  return support::readFile("card", path, kMaxCardBytes);
}

llvm::Expected<Card> loadCard(MLIRContext &context, StringRef path) {
  prepare(context);
  auto text = readCard(path);
  if (!text)
    return text.takeError();
  return parseCard(context, (*text)->getBuffer(), path);
}

/// Paths of the cards below a folder, sorted: a directory lists its files in any order.
static llvm::Expected<std::vector<std::string>> cardsBelow(StringRef folder) {
  namespace fs = llvm::sys::fs;
  std::error_code error;
  std::vector<std::string> paths;
  for (fs::recursive_directory_iterator entry(folder, error), end; entry != end && !error;
       entry.increment(error)) {
    StringRef path = entry->path();
    if (llvm::sys::path::filename(path) == "Inputs")
      entry.no_push();
    else if (path.ends_with(".mlir") && !fs::is_directory(path))
      paths.push_back(path.str());
  }
  if (error)
    return makeError(ErrorCode::Usage, "cannot read the folder of cards '" + folder +
                                           "': error: " + error.message() +
                                           "; name folders with --schedules or HEDDLE_SCHEDULES");
  llvm::sort(paths);
  return paths;
}

llvm::Expected<Warehouse> Warehouse::load(MLIRContext &context, ArrayRef<std::string> folders) {
  prepare(context);
  Warehouse warehouse;
  llvm::Error problems = llvm::Error::success();
  auto add = [&](llvm::Expected<Card> card, bool isBuiltIn) {
    if (!card) {
      problems = llvm::joinErrors(std::move(problems), card.takeError());
      return;
    }
    card->isBuiltIn = isBuiltIn;
    llvm::erase_if(warehouse.all, [&](const Card &old) { return old.name == card->name; });
    warehouse.all.push_back(std::move(*card));
  };
  for (const BuiltinCard &card : builtinCards())
    add(parseCard(context, card.text, card.path), true);
  for (StringRef folder : folders) {
    auto paths = cardsBelow(folder);
    if (!paths) {
      problems = llvm::joinErrors(std::move(problems), paths.takeError());
      continue;
    }
    for (const std::string &path : *paths)
      add(loadCard(context, path), false);
  }
  if (problems)
    return makeError(ErrorCode::Usage, llvm::toString(std::move(problems)));
  llvm::sort(warehouse.all, [](const Card &a, const Card &b) {
    return std::make_pair(-a.priority, StringRef(a.name)) <
           std::make_pair(-b.priority, StringRef(b.name));
  });
  return warehouse;
}

const Card *Warehouse::find(StringRef name) const {
  auto found = llvm::find_if(all, [&](const Card &card) { return card.name == name; });
  return found == all.end() ? nullptr : &*found;
}

void Warehouse::requireStrict() {
  for (const Card &card : all)
    if (!card.isStrict)
      withdraw(card.name, "its math is fast, which --math strict rules out");
}

std::pair<Fit, const mechanism::Mechanism *> Warehouse::fit(ArrayRef<Operation *> ops,
                                                            bool several) const {
  std::pair<Fit, const mechanism::Mechanism *> best(Fit::No, nullptr);
  for (const Card &card : all) {
    bool isAsked = !withdrawn.count(card.name) && !card.isOfThreads() &&
                   (!several || card.mechanism->storesSeveral);
    Fit found = isAsked ? card.fit(ops) : Fit::No;
    if (found > best.first)
      best = {found, card.mechanism};
  }
  return best;
}

bool Warehouse::takes(ArrayRef<Operation *> ops, const mechanism::Mechanism &mechanism) const {
  return llvm::any_of(all, [&](const Card &card) {
    return card.mechanism == &mechanism && !withdrawn.count(card.name) && !card.isOfThreads() &&
           card.refusal(ops).empty();
  });
}

std::vector<Offer> Warehouse::offer(graph::GroupOp group) const {
  std::vector<Offer> offers;
  for (const Card &card : all) {
    auto gone = withdrawn.find(card.name);
    std::string refusal = card.refusal(group);
    // The card's own refusal is the better reason.
    if (refusal.empty() && gone != withdrawn.end())
      refusal = gone->second;
    if (refusal.empty() && card.isOfThreads() && !devices.count(card.target))
      refusal = "its target is '" + card.target + "', and there is no such device";
    offers.push_back({&card, std::move(refusal)});
  }
  return offers;
}

} // namespace heddle::warehouse
