// Records: what was measured of candidates for groups, kept in a SQLite file that several processes
// may read and write at once (docs/spec/records.md).
#ifndef HEDDLE_RECORDS_RECORDS_H
#define HEDDLE_RECORDS_RECORDS_H

#include "compiler/plan/Chooser.h"

struct sqlite3;

namespace heddle::records {

/// Conditions that a measurement holds for.
struct RecordKey {
  std::string key;    // GroupKey::hash
  std::string target; // target::Target::identity
  int64_t threads = 1;
};

struct Record {
  RecordKey situation;
  std::string machine, nest; // for the reader
  std::string sizes;         // of the symbols at which it was measured: "32,128"
  std::string base;          // the default choice beside which it was measured, as `textOf` has it
  std::string card, cardHash;
  warehouse::KnobValues knobs;
  bool isShort = false;     // factors of products were rounded to bf16
  double seconds = 0;       // median of one run
  double speedup = 0;       // the default's seconds by these, the median of runs by turns
  bool isConfirmed = false; // measured at length
  std::string failure;      // why there are no seconds
  double limitSeconds = 0;  // limit of a candidate that did not end in time

  bool isSameCandidate(const Record &other) const;
};

/// Measurement of a whole model under one plan (tuner/plans).
struct PlanRecord {
  std::string model;  // its fingerprint, as plans have it
  std::string target; // target::Target::identity
  int64_t threads = 1;
  std::string machine, sizes; // as in Record; sizes with their symbols: "batch=4,seq=32"
  std::string base;           // a hash of the plan that the compiler makes by itself
  std::string decisions;      // the plan, with the sections alone that differ from that
  std::string groups;         // JSON: how many groups of each key there are
  double seconds = 0;         // time of one run
  double speedup = 0;         // over the plan that the compiler makes by itself
  bool isConfirmed = false;   // measured at length
  std::string failure;        // why there are no seconds
};

/// "matmul@4f0c... m=8 n=48; <=16 m=14 n=16"; "none" for the default form of the group's kind; with
/// " bf16" before the knobs if factors are rounded.
std::string textOf(const plan::Choice &choice);
/// The choice for all sizes, with factors rounded to bf16.
plan::Choice shortened(plan::Choice choice);
/// Text of the record's candidate.
std::string textOf(const Record &record);

/// Least speedup that counts: timing is no better than this.
constexpr double kClearly = 1.02;

class Statement;

class Records {
public:
  enum class Access { Read, Write };
  /// Write makes the file if there is none. An error that names the file when it is none of
  /// records, or of another version.
  static llvm::Expected<std::unique_ptr<Records>> open(llvm::StringRef path, Access access);
  ~Records();

  /// All records of this key, in the order in which they were first written.
  llvm::Expected<std::vector<Record>> find(const RecordKey &situation);
  /// All records, in the same order.
  llvm::Expected<std::vector<Record>> all();
  /// Replaces what is known of the candidate, unless that was measured at more length.
  llvm::Error add(const Record &record);

  /// Replaces what is known of the plan.
  llvm::Error add(const PlanRecord &record);
  /// Plans of the same model, target, threads, sizes and base as `like`.
  llvm::Expected<std::vector<PlanRecord>> plansLike(const PlanRecord &like);

  /// Keeps what the group is, GroupKey::text.
  llvm::Error describe(const std::string &key, const std::string &text);
  /// The group's text; "" if unknown, since an older heddle wrote the file.
  llvm::Expected<std::string> description(const std::string &key);
  /// Keeps that so many groups of a model are this one.
  llvm::Error addOrigin(const std::string &key, const std::string &model, int64_t count);
  /// The models of each group, by key; empty if an older heddle wrote the file.
  llvm::Expected<std::multimap<std::string, std::string>> origins();
  /// Keeps by which mechanism a card makes kernels.
  llvm::Error addCard(const warehouse::Card &card);
  /// Mechanisms by the cards' names and hashes.
  using CardName = std::pair<std::string, std::string>;
  llvm::Expected<std::map<CardName, std::string>> mechanisms();
  /// Keeps what schedules were told of the machine, for records of its target and threads.
  llvm::Error addMachine(const Record &record, const program::Machine &machine);
  /// The machine by Record::machine; nullopt if unknown.
  llvm::Expected<std::optional<program::Machine>>
  machine(const std::string &target, int64_t threads, const std::string &machine);

private:
  Records(std::string path, sqlite3 *database) : path(std::move(path)), database(database) {}
  llvm::Error prepare(Access access);
  llvm::Error bringUpToDate();
  llvm::Expected<std::vector<Record>> read(Statement &statement);
  llvm::Error run(const char *sql);
  llvm::Error problem();
  llvm::Expected<int64_t> number(const char *pragma);
  llvm::Error finish(Statement &statement);

  std::string path;
  sqlite3 *database;
  int64_t version = 0; // the file's, which may lack tables of a later one
};

} // namespace heddle::records

#endif // HEDDLE_RECORDS_RECORDS_H
