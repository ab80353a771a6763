// loader_test: sound artefacts load, everything else is refused with a reason and without harm.
// SPDX-License-Identifier: Apache-2.0
#include "heddle/runtime.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace fs = std::filesystem;

namespace {

struct Refusal {
  heddle_code_t code;
  std::string message;
};

Refusal load(const std::string &path) {
  heddle_module_t *module = nullptr;
  heddle_status_t *status = heddle_module_load(path.c_str(), &module);
  Refusal result = {heddle_status_code(status), heddle_status_message(status)};
  EXPECT_EQ(module != nullptr, status == nullptr);
  heddle_status_destroy(status);
  heddle_module_destroy(module);
  return result;
}

std::string read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The path of a file beside this program.
std::string beside(const char *name) {
  return fs::read_symlink("/proc/self/exe").replace_filename(name);
}

class Loader : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "heddle_loader_XXXXXX";
    folder = mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string write(const std::string &bytes) {
    std::string path = folder + "/case.so";
    fs::remove(path); // a new inode: dlopen remembers files by it
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::string folder;
};

#define EXPECT_REFUSED(refusal, expectedCode, part)                                                \
  do {                                                                                             \
    Refusal found = refusal;                                                                       \
    EXPECT_EQ(found.code, expectedCode);                                                           \
    EXPECT_NE(found.message.find(part), std::string::npos) << found.message;                       \
  } while (false)

} // namespace

TEST_F(Loader, LoadsAnArtefactAndCopiesOfIt) {
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(load(write(read(beside(ARTEFACT)))).message, "");
  EXPECT_EQ(load(beside(ARTEFACT)).message, "");
}

TEST_F(Loader, RefusesAMissingFile) {
  EXPECT_REFUSED(load("/none/model.so"), HEDDLE_USAGE,
                 "cannot open '/none/model.so': No such file or directory");
}

TEST_F(Loader, RefusesAFolder) { EXPECT_REFUSED(load(folder), HEDDLE_USAGE, "not a regular file"); }

TEST_F(Loader, RefusesWhatIsNoElfFile) {
  EXPECT_REFUSED(load(write("")), HEDDLE_REFUSED, "is not a compiled model");
  EXPECT_REFUSED(load(write(std::string(10000, 'o'))), HEDDLE_REFUSED, "it is no ELF");
}

TEST_F(Loader, RefusesEveryTruncation) {
  std::string whole = read(beside(ARTEFACT));
  for (size_t length = 0; length < whole.size(); length += 1 + whole.size() / 97)
    EXPECT_EQ(load(write(whole.substr(0, length))).code, HEDDLE_REFUSED) << length;
  EXPECT_REFUSED(load(write(whole.substr(0, whole.size() - 1))), HEDDLE_REFUSED, "is truncated: ");
}

TEST_F(Loader, RefusesAnotherMachine) {
  std::string bytes = read(beside(ARTEFACT));
  bytes[18] = static_cast<char>(bytes[18] == 40 ? 41 : 40); // e_machine: arm
  EXPECT_REFUSED(load(write(bytes)), HEDDLE_REFUSED, "was compiled for arm (32 bit), but this");
}

TEST_F(Loader, RefusesAProgram) {
  std::string bytes = read(beside(ARTEFACT));
  bytes[16] = 2; // e_type: ET_EXEC
  EXPECT_REFUSED(load(write(bytes)), HEDDLE_REFUSED, "a shared library (3) is needed");
}

TEST_F(Loader, RefusesDamagedTables) {
  std::string bytes = read(beside(ARTEFACT));
  for (size_t at = 24; at < 64; ++at) { // all offsets and counts of the header
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(0xff);
    load(write(damaged)); // refused or unharmed, never a crash
  }
}

TEST_F(Loader, RefusesAnotherLibraryBeforeItsCodeRuns) {
  EXPECT_REFUSED(load(beside(OTHER)), HEDDLE_REFUSED, "it does not export 'heddle_executable'");
}

TEST_F(Loader, RefusesAnotherVersion) {
  EXPECT_REFUSED(load(beside(OLD)), HEDDLE_REFUSED, "(artefact version 999, this runtime reads ");
}

TEST_F(Loader, RefusesWhatTheCpuCannotRunAndListsWhy) {
  EXPECT_REFUSED(load(beside(NEEDY)), HEDDLE_REFUSED,
                 "that this machine lacks: avx1024f, teleport;");
}

TEST_F(Loader, RefusesAWrongMagicNumber) {
  std::string bytes = read(beside(ARTEFACT));
  for (size_t at; (at = bytes.find("HDDL")) != std::string::npos;)
    bytes[at] = 'X';
  EXPECT_REFUSED(load(write(bytes)), HEDDLE_REFUSED, "no magic number");
}
