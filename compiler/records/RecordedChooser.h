// RecordedChooser: what tuning has found fastest for a group; what another chooser says where
// nothing was found.
#ifndef HEDDLE_RECORDS_RECORDEDCHOOSER_H
#define HEDDLE_RECORDS_RECORDEDCHOOSER_H

#include "compiler/records/Records.h"

namespace heddle::records {

/// The sizes at which it was measured; nullopt if they are not `count` numbers.
std::optional<std::vector<int64_t>> sizesOf(const Record &record, size_t count);

/// Whether the other choice, of bf16, was tried beside this one of f32: at length, or it was not
/// clearly faster at a look, or failed.
bool hasTried(llvm::ArrayRef<Record> records, const plan::Choice &base, const plan::Choice &other);

/// The best of these records that may be applied: its card is offered and has not changed since,
/// its knobs are of the card's domains, it was measured at length beside `base`, at every size of
/// symbols that was tried, and is clearly faster; in bf16 clearly faster than the best in f32.
/// None: `base`. With names for the symbols, its card's best knobs may differ from size to size,
/// where that is faster still.
plan::Choice bestOf(llvm::ArrayRef<Record> records, llvm::ArrayRef<warehouse::Offer> offers,
                    const plan::Choice &base, llvm::ArrayRef<std::string> symbols = {});

/// With `shortly`, factors may be rounded to bf16: that chooser decides where records have not
/// compared both, and what was measured of f32 says nothing of its choices of bf16. Null: what was
/// measured of bf16 says nothing.
class RecordedChooser : public plan::Chooser {
public:
  RecordedChooser(Records &records, std::string target, int64_t threads, plan::Chooser &otherwise,
                  plan::Chooser *shortly = nullptr)
      : records(records), target(std::move(target)), threads(threads), otherwise(otherwise),
        shortly(shortly) {}
  llvm::Expected<plan::Choice> choose(graph::GroupOp group, llvm::ArrayRef<warehouse::Offer> offers,
                                      const program::Machine &machine) override;

private:
  Records &records;
  std::string target;
  int64_t threads;
  plan::Chooser &otherwise;
  plan::Chooser *shortly;
};

/// The number of threads that runs will have, as records count them: 0 is all of this machine.
int64_t threadsOf(int64_t asked);

} // namespace heddle::records

#endif // HEDDLE_RECORDS_RECORDEDCHOOSER_H
