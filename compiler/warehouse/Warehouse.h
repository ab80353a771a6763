// Warehouse: all cards, those built in and those of the user's folders, and which of them are for a
// group.
//
// It says what may be done, never what should: only the chooser (compiler/plan) knows about speed.
#ifndef HEDDLE_WAREHOUSE_WAREHOUSE_H
#define HEDDLE_WAREHOUSE_WAREHOUSE_H

#include "compiler/warehouse/Card.h"

#include "llvm/Support/MemoryBuffer.h"

#include <set>

namespace heddle::warehouse {

/// A card for a group, or why it is not for it.
struct Offer {
  const Card *card = nullptr;
  std::string refusal; // "" when offered
  bool isOffered() const { return refusal.empty(); }
};

/// Registers what cards are written with, for contexts that are made from this registry.
void registerDialects(mlir::DialectRegistry &registry);

class Warehouse {
public:
  /// The built-in cards, then every *.mlir below the folders of HEDDLE_SCHEDULES (separated by ':')
  /// and below `folders`, but for those in folders named Inputs. A later card replaces an earlier
  /// one of its name.
  static llvm::Expected<Warehouse> load(mlir::MLIRContext &context,
                                        llvm::ArrayRef<std::string> folders = {});

  /// Highest priority first, then by name.
  llvm::ArrayRef<Card> cards() const { return all; }
  const Card *find(llvm::StringRef name) const;
  /// Withdraws the card of this name from all groups, for this reason: it is for another target,
  /// say, or a library that it needs is not there.
  void withdraw(llvm::StringRef name, std::string why) { withdrawn[name.str()] = std::move(why); }
  /// Offers the cards of this device, too.
  void admit(llvm::StringRef device) { devices.insert(device.str()); }
  /// Withdraws the cards of `math = "fast"`.
  void requireStrict();
  /// The best that any card with a nest makes of these ops, operands first, and the mechanism of
  /// the first card that makes it so, of those for the machine itself. `several`: of those alone
  /// whose mechanism stores several results.
  std::pair<Fit, const mechanism::Mechanism *> fit(llvm::ArrayRef<mlir::Operation *> ops,
                                                   bool several = false) const;
  /// Whether such a card of this mechanism is for these ops, operands first.
  bool takes(llvm::ArrayRef<mlir::Operation *> ops, const mechanism::Mechanism &mechanism) const;
  /// Every card, in their order, with the reason of those that are refused.
  std::vector<Offer> offer(graph::GroupOp group) const;

private:
  std::vector<Card> all;
  std::map<std::string, std::string> withdrawn; // reasons, by name
  std::set<std::string> devices;
};

constexpr int64_t kMaxCardBytes = 1 << 20; // limit of a card, and of a kernel's source

/// The text of a card's file.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readCard(llvm::StringRef path);
/// One card from a file.
llvm::Expected<Card> loadCard(mlir::MLIRContext &context, llvm::StringRef path);

} // namespace heddle::warehouse

#endif // HEDDLE_WAREHOUSE_WAREHOUSE_H
