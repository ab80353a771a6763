// Records: a row for each candidate, and one for each group. A rollback journal, not WAL: so a file
// of records can be read where nothing may be written beside it, and copied as it is.

#include "compiler/records/Records.h"

#include "compiler/support/Error.h"

#include <nlohmann/json.hpp>
#include <sqlite3.h>

using namespace mlir;
using Json = nlohmann::ordered_json;

namespace heddle::records {

static constexpr int64_t kApplication = 0x48444c52; // "HDLR"
static constexpr int64_t kVersion = 2;
static constexpr int kBusyMilliseconds = 20000; // that another process may keep the file

static const char *const kSchema = R"(
CREATE TABLE trial (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL, target TEXT NOT NULL, threads INTEGER NOT NULL,
  machine TEXT NOT NULL, nest TEXT NOT NULL, sizes TEXT NOT NULL, base TEXT NOT NULL,
  card TEXT NOT NULL, card_hash TEXT NOT NULL, knobs TEXT NOT NULL,
  seconds REAL, speedup REAL, confirmed INTEGER NOT NULL, failure TEXT, limit_seconds REAL,
  UNIQUE (key, target, threads, sizes, base, card, card_hash, knobs));
)";

/// What version 2 has beside version 1, which had the trials alone.
static const char *const kSubjects =
    "CREATE TABLE subject (key TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;";

std::string textOf(const plan::Choice &choice) {
  if (!choice.card)
    return "none";
  std::string text = choice.card->name + "@" + choice.card->hash;
  for (auto &[name, value] : choice.knobs)
    text += " " + name + "=" + std::to_string(value);
  for (const plan::Version &version : choice.versions) { // symbols have other names elsewhere
    text += ";";
    for (auto &[size, most] : version.when)
      text += " <=" + std::to_string(most);
    for (auto &[name, value] : version.knobs)
      text += " " + name + "=" + std::to_string(value);
  }
  return text;
}

bool Record::isSameCandidate(const Record &other) const {
  return card == other.card && cardHash == other.cardHash && knobs == other.knobs;
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

static const std::string kTrials =
    "SELECT key, target, threads, machine, nest, sizes, base, card, card_hash, knobs, seconds, "
    "speedup, confirmed, failure, limit_seconds FROM trial ";

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
  hasSubjects = *version == kVersion;
  return access == Access::Read || hasSubjects ? llvm::Error::success() : bringUpToDate();
}

/// Makes the tables of an empty file, and those that an older one lacks.
llvm::Error Records::bringUpToDate() {
  // Another process may be doing so at this moment: the first wins.
  if (llvm::Error error = run("BEGIN IMMEDIATE"))
    return error;
  auto version = number("PRAGMA user_version");
  if (!version)
    return version.takeError();
  std::string make;
  if (*version == 0)
    make = kSchema + ("PRAGMA application_id = " + std::to_string(kApplication)) + ";";
  if (*version < kVersion)
    make += kSubjects + ("PRAGMA user_version = " + std::to_string(kVersion));
  if (llvm::Error error = run(make.c_str()))
    return error;
  hasSubjects = true;
  return run("COMMIT");
}

llvm::Expected<std::unique_ptr<Records>> Records::open(StringRef path, Access access) {
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

llvm::Expected<std::vector<Record>> Records::find(const Situation &situation) {
  Statement statement(database,
                      kTrials + "WHERE key = ? AND target = ? AND threads = ? ORDER BY id");
  statement.bind(situation.key).bind(situation.target).bind(situation.threads);
  return read(statement);
}

llvm::Expected<std::vector<Record>> Records::all() {
  Statement statement(database, kTrials + "ORDER BY id");
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
    auto knobs = Json::parse(statement.text(), nullptr, false);
    for (auto &[name, value] : knobs.items())
      if (value.is_number_integer())
        record.knobs[name] = value.get<int64_t>();
    record.seconds = statement.real();
    record.speedup = statement.real();
    record.isConfirmed = statement.integer();
    record.failure = statement.text();
    record.limitSeconds = statement.real();
  }
  if (code != SQLITE_DONE)
    return problem();
  return found;
}

llvm::Error Records::add(const Record &record) {
  Statement statement(
      database,
      "INSERT INTO trial (key, target, threads, machine, nest, sizes, base, card, card_hash, "
      "knobs, seconds, speedup, confirmed, failure, limit_seconds) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
      "ON CONFLICT DO UPDATE SET machine = excluded.machine, seconds = excluded.seconds, "
      "speedup = excluded.speedup, confirmed = excluded.confirmed, failure = excluded.failure, "
      "limit_seconds = excluded.limit_seconds WHERE excluded.confirmed >= confirmed");
  const Situation &situation = record.situation;
  const std::string knobs = record.knobs.empty() ? "{}" : Json(record.knobs).dump();
  statement.bind(situation.key).bind(situation.target).bind(situation.threads);
  for (const std::string *text : {&record.machine, &record.nest, &record.sizes, &record.base,
                                  &record.card, &record.cardHash, &knobs})
    statement.bind(*text);
  statement.bind(record.seconds).bind(record.speedup).bind(int64_t(record.isConfirmed));
  statement.bind(record.failure).bind(record.limitSeconds);
  return statement.step() == SQLITE_DONE ? llvm::Error::success() : problem();
}

llvm::Error Records::describe(const std::string &key, const std::string &text) {
  Statement statement(database, "INSERT OR IGNORE INTO subject (key, text) VALUES (?, ?)");
  statement.bind(key).bind(text);
  return statement.step() == SQLITE_DONE ? llvm::Error::success() : problem();
}

llvm::Expected<std::string> Records::description(const std::string &key) {
  if (!hasSubjects)
    return "";
  Statement statement(database, "SELECT text FROM subject WHERE key = ?");
  int code = statement.bind(key).step();
  if (code == SQLITE_ROW)
    return statement.text();
  return code == SQLITE_DONE ? llvm::Expected<std::string>("") : problem();
}

} // namespace heddle::records
