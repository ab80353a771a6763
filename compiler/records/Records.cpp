// Records: a row for each candidate, and one for each group. A rollback journal, not WAL: so a file
// of records can be read where nothing may be written beside it, and copied as it is.

#include "compiler/records/Records.h"

#include "compiler/support/Files.h"
#include "compiler/support/Json.h"

#include <sqlite3.h>

using namespace mlir;

namespace heddle::records {

static constexpr int64_t kApplication = 0x48444c52; // "HDLR"
static constexpr int64_t kVersion = 5, kSubjects = 2, kOrigins = 3, kPlans = 4, kPrecisions = 5;
static constexpr int kBusyMilliseconds = 20000; // for another process that holds the file

/// Tables that each version adds to the one before it.
static const char *const kTables[] = {R"(
CREATE TABLE trial (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL, target TEXT NOT NULL, threads INTEGER NOT NULL,
  machine TEXT NOT NULL, nest TEXT NOT NULL, sizes TEXT NOT NULL, base TEXT NOT NULL,
  card TEXT NOT NULL, card_hash TEXT NOT NULL, knobs TEXT NOT NULL,
  seconds REAL, speedup REAL, confirmed INTEGER NOT NULL, failure TEXT, limit_seconds REAL,
  UNIQUE (key, target, threads, sizes, base, card, card_hash, knobs));
)",
                                      R"(
CREATE TABLE subject (key TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
)",
                                      R"(
CREATE TABLE origin (
  key TEXT NOT NULL, model TEXT NOT NULL, count INTEGER NOT NULL,
  PRIMARY KEY (key, model)) WITHOUT ROWID;
CREATE TABLE card (
  name TEXT NOT NULL, hash TEXT NOT NULL, mechanism TEXT NOT NULL,
  PRIMARY KEY (name, hash)) WITHOUT ROWID;
CREATE TABLE machine (
  target TEXT NOT NULL, threads INTEGER NOT NULL, machine TEXT NOT NULL,
  lanes INTEGER NOT NULL, registers INTEGER NOT NULL, l1_bytes INTEGER NOT NULL,
  l2_bytes INTEGER NOT NULL, workers INTEGER NOT NULL, dot INTEGER NOT NULL,
  permutes_words INTEGER NOT NULL, permutes_bytes INTEGER NOT NULL,
  PRIMARY KEY (target, threads, machine)) WITHOUT ROWID;
)",
                                      R"(
CREATE TABLE plan (
  id INTEGER PRIMARY KEY,
  model TEXT NOT NULL, target TEXT NOT NULL, threads INTEGER NOT NULL, machine TEXT NOT NULL,
  sizes TEXT NOT NULL, base TEXT NOT NULL, decisions TEXT NOT NULL, groups TEXT NOT NULL,
  seconds REAL, speedup REAL, confirmed INTEGER NOT NULL, failure TEXT,
  UNIQUE (model, target, threads, sizes, base, decisions));
)",
                                      R"(
ALTER TABLE trial RENAME TO older;
CREATE TABLE trial (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL, target TEXT NOT NULL, threads INTEGER NOT NULL,
  machine TEXT NOT NULL, nest TEXT NOT NULL, sizes TEXT NOT NULL, base TEXT NOT NULL,
  card TEXT NOT NULL, card_hash TEXT NOT NULL, knobs TEXT NOT NULL,
  seconds REAL, speedup REAL, confirmed INTEGER NOT NULL, failure TEXT, limit_seconds REAL,
  precision TEXT NOT NULL DEFAULT 'f32',
  UNIQUE (key, target, threads, sizes, base, card, card_hash, knobs, precision));
INSERT INTO trial SELECT id, key, target, threads, machine, nest, sizes, base, card, card_hash,
  knobs, seconds, speedup, confirmed, failure, limit_seconds, 'f32' FROM older;
DROP TABLE older;
)"};
static_assert(std::size(kTables) == kVersion);

static constexpr const char *kShort = "bf16", *kExact = "f32"; // precisions

static std::string textOf(const std::string &card, const std::string &hash, bool isShort,
                          const warehouse::KnobValues &knobs) {
  std::string text = card.empty() ? "none" : card + "@" + hash;
  if (isShort)
    text += std::string(" ") + kShort;
  for (auto &[name, value] : knobs)
    text += " " + name + "=" + std::to_string(value);
  return text;
}

std::string textOf(const Record &record) {
  return textOf(record.card, record.cardHash, record.isShort, record.knobs);
}

std::string textOf(const plan::Choice &choice) {
  if (!choice.card)
    return textOf("", "", choice.isShort, {});
  std::string text = textOf(choice.card->name, choice.card->hash, choice.isShort, choice.knobs);
  for (const plan::Version &version : choice.versions) { // symbols have other names elsewhere
    text += ";";
    for (auto &[size, most] : version.when)
      text += " <=" + std::to_string(most);
    for (auto &[name, value] : version.knobs)
      text += " " + name + "=" + std::to_string(value);
  }
  return text;
}

plan::Choice shortened(plan::Choice choice) {
  choice.isShort = true;
  choice.versions.clear();
  return choice;
}

bool Record::isSameCandidate(const Record &other) const {
  return card == other.card && cardHash == other.cardHash && knobs == other.knobs &&
         isShort == other.isShort;
}

/// One statement, from its text to its rows.
class Statement {
public:
  Statement(sqlite3 *database, const std::string &sql) {
    sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement); }

  Statement &bind(const std::string &text) {
    sqlite3_bind_text(statement, ++bound, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
    return *this;
  }
  Statement &bind(int64_t number) {
    sqlite3_bind_int64(statement, ++bound, number);
    return *this;
  }
  Statement &bind(double number) {
    sqlite3_bind_double(statement, ++bound, number);
    return *this;
  }
  int step() { return statement ? sqlite3_step(statement) : SQLITE_ERROR; }

  std::string text() {
    const unsigned char *bytes = sqlite3_column_text(statement, column);
    int64_t count = sqlite3_column_bytes(statement, column++);
    return bytes ? std::string(reinterpret_cast<const char *>(bytes), count) : "";
  }
  int64_t integer() { return sqlite3_column_int64(statement, column++); }
  double real() { return sqlite3_column_double(statement, column++); }
  void nextRow() { column = 0; }

private:
  sqlite3_stmt *statement = nullptr;
  int bound = 0, column = 0;
};

/// The beginning of a query for trials; those of an older file are of f32.
static std::string trialsOf(int64_t version) {
  return "SELECT key, target, threads, machine, nest, sizes, base, card, card_hash, knobs, "
         "seconds, speedup, confirmed, failure, limit_seconds, " +
         std::string(version < kPrecisions ? "'f32'" : "precision") + " FROM trial ";
}

static llvm::Error refuse(const std::string &path, const Twine &why, const Twine &wayOut) {
  return makeError(ErrorCode::Usage,
                   "cannot use tuning records '" + path + "': error: " + why + "\nnote: " + wayOut);
}

static constexpr const char *kOtherFile =
    "name another file with --records or HEDDLE_RECORDS, or remove this one";

llvm::Error Records::problem() {
  int code = sqlite3_errcode(database);
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
    return refuse(path, "it is no SQLite file, or a damaged one", kOtherFile);
  if (code == SQLITE_BUSY)
    return refuse(path,
                  "another process has kept it for " + Twine(kBusyMilliseconds / 1000) + " seconds",
                  "try again when that has ended");
  return refuse(path, sqlite3_errmsg(database), kOtherFile);
}

llvm::Error Records::run(const char *sql) {
  return sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK
             ? llvm::Error::success()
             : problem();
}

llvm::Expected<int64_t> Records::number(const char *pragma) {
  Statement statement(database, pragma);
  if (statement.step() != SQLITE_ROW)
    return problem();
  return statement.integer();
}

llvm::Error Records::prepare(Access access) {
  sqlite3_busy_timeout(database, kBusyMilliseconds);
  // One state of the file: another process may be making it between these questions.
  if (llvm::Error error = run("BEGIN"))
    return error;
  auto application = number("PRAGMA application_id"), version = number("PRAGMA user_version"),
       tables = number("SELECT count(*) FROM sqlite_master");
  llvm::Error error = llvm::Error::success();
  for (auto *each : {&application, &version, &tables})
    if (!*each) {
      llvm::consumeError(std::move(error));
      error = each->takeError();
    }
  if (error)
    return error;
  if (llvm::Error error = run("COMMIT"))
    return error;
  bool isEmpty = *tables == 0 && access == Access::Write;
  if (!isEmpty && *application != kApplication)
    return refuse(path, "it is an SQLite file, but holds no tuning records", kOtherFile);
  if (!isEmpty && (*version < 1 || *version > kVersion))
    return refuse(path,
                  "its schema is version " + Twine(*version) + ", this heddle reads 1 to " +
                      Twine(kVersion),
                  kOtherFile);
  this->version = *version;
  bool isUpToDate = *version == kVersion;
  return access == Access::Read || isUpToDate ? llvm::Error::success() : bringUpToDate();
}

/// Makes the tables of an empty file, and those that an older one lacks.
llvm::Error Records::bringUpToDate() {
  // Another process may be doing so at this moment: the first wins.
  if (llvm::Error error = run("BEGIN IMMEDIATE"))
    return error;
  auto version = number("PRAGMA user_version");
  if (!version)
    return version.takeError();
  std::string make = "PRAGMA application_id = " + std::to_string(kApplication) +
                     ";PRAGMA user_version = " + std::to_string(kVersion) + ";";
  for (int64_t missing = *version; missing < kVersion; ++missing)
    make += kTables[missing];
  if (llvm::Error error = run(make.c_str()))
    return error;
  this->version = kVersion;
  return run("COMMIT");
}

llvm::Expected<std::unique_ptr<Records>> Records::open(StringRef path, Access access) {
  if (std::string problem = support::irregularity(path); !problem.empty())
    return refuse(path.str(), problem, kOtherFile);
  sqlite3 *database = nullptr;
  int flags =
      access == Access::Write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  int code = sqlite3_open_v2(path.str().c_str(), &database, flags, nullptr);
  std::unique_ptr<Records> records(new Records(path.str(), database));
  if (code != SQLITE_OK)
    return refuse(records->path, sqlite3_errmsg(database),
                  access == Access::Read ? "'heddle tune' makes such a file"
                                         : "the folder must exist and be open to writing");
  if (llvm::Error error = records->prepare(access))
    return std::move(error);
  return records;
}

Records::~Records() { sqlite3_close(database); }

llvm::Expected<std::vector<Record>> Records::find(const RecordKey &situation) {
  Statement statement(database, trialsOf(version) +
                                    "WHERE key = ? AND target = ? AND threads = ? ORDER BY id");
  statement.bind(situation.key).bind(situation.target).bind(situation.threads);
  return read(statement);
}

llvm::Expected<std::vector<Record>> Records::all() {
  Statement statement(database, trialsOf(version) + "ORDER BY id");
  return read(statement);
}

llvm::Expected<std::vector<Record>> Records::read(Statement &statement) {
  std::vector<Record> found;
  int code;
  for (; (code = statement.step()) == SQLITE_ROW; statement.nextRow()) {
    Record &record = found.emplace_back();
    record.situation.key = statement.text();
    record.situation.target = statement.text();
    record.situation.threads = statement.integer();
    for (std::string *text : {&record.machine, &record.nest, &record.sizes, &record.base,
                              &record.card, &record.cardHash})
      *text = statement.text();
    auto knobs = parseJson(statement.text());
    for (auto &[name, value] : knobs.items())
      if (value.is_number_integer())
        record.knobs[name] = value.get<int64_t>();
    record.seconds = statement.real();
    record.speedup = statement.real();
    record.isConfirmed = statement.integer();
    record.failure = statement.text();
    record.limitSeconds = statement.real();
    record.isShort = statement.text() == kShort;
  }
  if (code != SQLITE_DONE)
    return problem();
  return found;
}

llvm::Error Records::add(const Record &record) {
  Statement statement(
      database,
      "INSERT INTO trial (key, target, threads, machine, nest, sizes, base, card, card_hash, "
      "knobs, seconds, speedup, confirmed, failure, limit_seconds, precision) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
      "ON CONFLICT DO UPDATE SET machine = excluded.machine, seconds = excluded.seconds, "
      "speedup = excluded.speedup, confirmed = excluded.confirmed, failure = excluded.failure, "
      "limit_seconds = excluded.limit_seconds WHERE excluded.confirmed >= confirmed");
  const RecordKey &situation = record.situation;
  const std::string knobs = record.knobs.empty() ? "{}" : Json(record.knobs).dump();
  statement.bind(situation.key).bind(situation.target).bind(situation.threads);
  for (const std::string *text : {&record.machine, &record.nest, &record.sizes, &record.base,
                                  &record.card, &record.cardHash, &knobs})
    statement.bind(*text);
  statement.bind(record.seconds).bind(record.speedup).bind(int64_t(record.isConfirmed));
  statement.bind(record.failure).bind(record.limitSeconds);
  return finish(statement.bind(std::string(record.isShort ? kShort : kExact)));
}

llvm::Error Records::finish(Statement &statement) {
  return statement.step() == SQLITE_DONE ? llvm::Error::success() : problem();
}

llvm::Error Records::add(const PlanRecord &record) {
  Statement statement(database,
                      "INSERT OR REPLACE INTO plan (model, target, threads, machine, sizes, base, "
                      "decisions, groups, seconds, speedup, confirmed, failure) "
                      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  statement.bind(record.model).bind(record.target).bind(record.threads);
  for (const std::string *text :
       {&record.machine, &record.sizes, &record.base, &record.decisions, &record.groups})
    statement.bind(*text);
  statement.bind(record.seconds).bind(record.speedup).bind(int64_t(record.isConfirmed));
  return finish(statement.bind(record.failure));
}

llvm::Expected<std::vector<PlanRecord>> Records::plansLike(const PlanRecord &like) {
  std::vector<PlanRecord> found;
  if (version < kPlans)
    return found;
  Statement statement(database,
                      "SELECT machine, decisions, groups, seconds, speedup, confirmed, failure "
                      "FROM plan WHERE model = ? AND target = ? AND threads = ? AND sizes = ? "
                      "AND base = ? ORDER BY id");
  statement.bind(like.model).bind(like.target).bind(like.threads).bind(like.sizes).bind(like.base);
  int code;
  for (; (code = statement.step()) == SQLITE_ROW; statement.nextRow()) {
    PlanRecord &record = found.emplace_back(like);
    for (std::string *text : {&record.machine, &record.decisions, &record.groups})
      *text = statement.text();
    record.seconds = statement.real();
    record.speedup = statement.real();
    record.isConfirmed = statement.integer();
    record.failure = statement.text();
  }
  if (code != SQLITE_DONE)
    return problem();
  return found;
}

llvm::Error Records::describe(const std::string &key, const std::string &text) {
  Statement statement(database, "INSERT OR IGNORE INTO subject (key, text) VALUES (?, ?)");
  return finish(statement.bind(key).bind(text));
}

llvm::Expected<std::string> Records::description(const std::string &key) {
  if (version < kSubjects)
    return "";
  Statement statement(database, "SELECT text FROM subject WHERE key = ?");
  int code = statement.bind(key).step();
  if (code == SQLITE_ROW)
    return statement.text();
  return code == SQLITE_DONE ? llvm::Expected<std::string>("") : problem();
}

llvm::Error Records::addOrigin(const std::string &key, const std::string &model, int64_t count) {
  Statement statement(database,
                      "INSERT OR REPLACE INTO origin (key, model, count) VALUES (?, ?, ?)");
  return finish(statement.bind(key).bind(model).bind(count));
}

llvm::Expected<std::multimap<std::string, std::string>> Records::origins() {
  std::multimap<std::string, std::string> found;
  if (version < kOrigins)
    return found;
  Statement statement(database, "SELECT key, model FROM origin ORDER BY key, model");
  int code;
  for (; (code = statement.step()) == SQLITE_ROW; statement.nextRow()) {
    std::string key = statement.text();
    found.emplace(std::move(key), statement.text());
  }
  if (code != SQLITE_DONE)
    return problem();
  return found;
}

llvm::Error Records::addCard(const warehouse::Card &card) {
  Statement statement(database, "INSERT OR IGNORE INTO card (name, hash, mechanism) "
                                "VALUES (?, ?, ?)");
  return finish(statement.bind(card.name).bind(card.hash).bind(card.mechanism->name.str()));
}

llvm::Expected<std::map<Records::CardName, std::string>> Records::mechanisms() {
  std::map<CardName, std::string> found;
  if (version < kOrigins)
    return found;
  Statement statement(database, "SELECT name, hash, mechanism FROM card");
  int code;
  for (; (code = statement.step()) == SQLITE_ROW; statement.nextRow()) {
    std::string name = statement.text(), hash = statement.text();
    found[{name, hash}] = statement.text();
  }
  if (code != SQLITE_DONE)
    return problem();
  return found;
}

llvm::Error Records::addMachine(const Record &record, const program::Machine &machine) {
  Statement statement(database,
                      "INSERT OR REPLACE INTO machine (target, threads, machine, lanes, registers, "
                      "l1_bytes, l2_bytes, workers, dot, permutes_words, permutes_bytes) "
                      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  statement.bind(record.situation.target).bind(record.situation.threads).bind(record.machine);
  for (int64_t value : {machine.lanes, machine.registers, machine.l1Bytes, machine.l2Bytes,
                        machine.workers, static_cast<int64_t>(machine.dot),
                        int64_t(machine.permutesWords), int64_t(machine.permutesBytes)})
    statement.bind(value);
  return finish(statement);
}

llvm::Expected<std::optional<program::Machine>>
Records::machine(const std::string &target, int64_t threads, const std::string &machine) {
  std::optional<program::Machine> found;
  if (version < kOrigins)
    return found;
  Statement statement(database, "SELECT lanes, registers, l1_bytes, l2_bytes, workers, dot, "
                                "permutes_words, permutes_bytes FROM machine "
                                "WHERE target = ? AND threads = ? AND machine = ?");
  int code = statement.bind(target).bind(threads).bind(machine).step();
  if (code == SQLITE_ROW) {
    found.emplace();
    for (int64_t *value :
         {&found->lanes, &found->registers, &found->l1Bytes, &found->l2Bytes, &found->workers})
      *value = statement.integer();
    found->dot = static_cast<program::Dot>(
        std::clamp<int64_t>(statement.integer(), 0, static_cast<int64_t>(program::Dot::Bytes)));
    found->permutesWords = statement.integer() != 0;
    found->permutesBytes = statement.integer() != 0;
    return found;
  }
  return code == SQLITE_DONE ? llvm::Expected<std::optional<program::Machine>>(found) : problem();
}

} // namespace heddle::records
