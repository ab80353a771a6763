// Cache_test: hits, dropped entries, and the effects of two processes on each other.

#include "compiler/cache/Cache.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace heddle::cache;

namespace {

class CacheTest : public testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/heddle-cache-XXXXXX";
    folder = mkdtemp(name);
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string fileOf(const Digest &key) const { return folder + "/" + hexOf(key); }
  void change(const Digest &key, int64_t place) const {
    std::fstream file(fileOf(key), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(place);
    char byte = file.get();
    file.seekp(place);
    file.put(byte ^ 1);
  }
  /// Last used so many seconds after 1970.
  void setUsed(const Digest &key, time_t seconds) const {
    timespec times[2] = {{seconds, 0}, {seconds, 0}};
    utimensat(AT_FDCWD, fileOf(key).c_str(), times, 0);
  }
  std::string found(const Cache &cache, const Digest &key) const {
    auto entry = cache.find(key);
    return entry ? entry->getBuffer().str() : "nothing";
  }

  std::string folder;
};

Digest keyOf(int64_t number) { return Key("test").add(number).digest(); }

TEST_F(CacheTest, KeysTellListsOfTextsApart) {
  EXPECT_NE(Key("k").add("ab").add("c").digest(), Key("k").add("a").add("bc").digest());
  EXPECT_NE(Key("k").add("a").digest(), Key("j").add("a").digest());
  EXPECT_EQ(Key("k").add("a").add(7).digest(), Key("k").add("a").add(7).digest());
}

TEST_F(CacheTest, LongAndShortTextsHaveDigests) {
  std::string text(9 << 20, 'x');
  Digest whole = digestOf(text);
  EXPECT_EQ(whole, digestOf(text));
  text[5 << 20] = 'y';
  EXPECT_NE(whole, digestOf(text));
  EXPECT_NE(digestOf(""), digestOf("a"));
}

TEST_F(CacheTest, GivesBackWhatWasStored) {
  Cache cache(folder + "/deep/inside");
  EXPECT_EQ(found(cache, keyOf(1)), "nothing");
  cache.store(keyOf(1), "one", "its note");
  cache.store(keyOf(2), "");
  EXPECT_EQ(found(cache, keyOf(1)), "one");
  EXPECT_EQ(found(cache, keyOf(2)), "");
  EXPECT_EQ(found(cache, keyOf(3)), "nothing");
  EXPECT_EQ(cache.open(keyOf(1))->note(), "its note");
  EXPECT_EQ(cache.usage().entries, 2);
}

TEST_F(CacheTest, CopiesFilesInAndOut) {
  Cache cache(folder);
  std::string text(3 << 20, 'm'), source = folder + "/source", copy = folder + "/copy";
  std::ofstream(source) << text;
  cache.storeFile(keyOf(1), source, "note");
  ASSERT_TRUE(cache.open(keyOf(1)));
  EXPECT_EQ(cache.open(keyOf(1))->copyTo(copy), 0);
  auto read = llvm::MemoryBuffer::getFile(copy);
  ASSERT_TRUE(bool(read));
  EXPECT_EQ((*read)->getBuffer(), text);
  change(keyOf(1), 1 << 20);
  EXPECT_EQ(cache.open(keyOf(1))->copyTo(copy), EBADMSG);
}

TEST_F(CacheTest, DropsWhatIsDamaged) {
  Cache cache(folder);
  for (int64_t place : {0, 3, 5, 12, 40, 60}) { // the body, the note, the footer
    cache.store(keyOf(1), "body", "note");
    change(keyOf(1), place);
    EXPECT_EQ(found(cache, keyOf(1)), "nothing") << place;
    EXPECT_FALSE(llvm::sys::fs::exists(fileOf(keyOf(1)))) << place;
  }
  for (int64_t size : {0, 10, 70}) {
    cache.store(keyOf(1), "body", "note");
    ASSERT_EQ(truncate(fileOf(keyOf(1)).c_str(), size), 0);
    EXPECT_EQ(found(cache, keyOf(1)), "nothing") << size;
  }
  cache.store(keyOf(1), "body", "note");
  EXPECT_EQ(found(cache, keyOf(1)), "body");
}

TEST_F(CacheTest, OnlyTheOwnerMayReadAndWrite) {
  folder += "/inner";
  Cache cache(folder);
  cache.store(keyOf(1), "body");
  struct stat status;
  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(fileOf(keyOf(1)).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(cache.complaint(), "");
}

TEST_F(CacheTest, AFolderThatOthersMayWriteToIsNotUsed) {
  Cache cache(folder);
  cache.store(keyOf(1), "body");
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  EXPECT_EQ(found(cache, keyOf(1)), "nothing");
  EXPECT_EQ(cache.usage().entries, 0);
  EXPECT_EQ(cache.complaint(), "other users may write to it");
  cache.store(keyOf(2), "body");
  EXPECT_FALSE(llvm::sys::fs::exists(fileOf(keyOf(2))));
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0); // as its owner wants it
  EXPECT_EQ(found(cache, keyOf(1)), "body");
  struct stat status;
  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0755u);
}

TEST_F(CacheTest, NeitherLinksNorPipesStandForAnything) {
  std::string link = folder + "-link";
  ASSERT_EQ(symlink(folder.c_str(), link.c_str()), 0);
  Cache cache(folder), linked(link);
  cache.store(keyOf(1), "body");
  EXPECT_EQ(found(linked, keyOf(1)), "nothing");
  EXPECT_EQ(linked.complaint(), "it is no folder");
  unlink(link.c_str());
  ASSERT_EQ(symlink(fileOf(keyOf(1)).c_str(), fileOf(keyOf(2)).c_str()), 0);
  EXPECT_EQ(found(cache, keyOf(2)), "nothing");
  ASSERT_EQ(mkfifo(fileOf(keyOf(3)).c_str(), 0600), 0);
  EXPECT_EQ(found(cache, keyOf(3)), "nothing"); // and does not wait for a writer
  ASSERT_EQ(chmod(fileOf(keyOf(1)).c_str(), 0666), 0);
  EXPECT_EQ(found(cache, keyOf(1)), "nothing");
}

TEST_F(CacheTest, AnEntryOfAnotherKeyIsNotTaken) {
  Cache cache(folder);
  cache.store(keyOf(1), "one");
  ASSERT_EQ(rename(fileOf(keyOf(1)).c_str(), fileOf(keyOf(2)).c_str()), 0);
  EXPECT_EQ(found(cache, keyOf(2)), "nothing");
}

TEST_F(CacheTest, StaysBelowItsLimit) {
  std::string text(1000, 'x');
  for (int64_t i = 0; i < 50; ++i) {
    Cache cache(folder, 10000);
    cache.store(keyOf(i), text);
    setUsed(keyOf(i), i);
    if (i == 0 || !cache.find(keyOf(0))) // entry 0 is in use all the time, so it stays
      EXPECT_EQ(i, 0);
  }
  Cache cache(folder, 10000);
  EXPECT_LE(cache.usage().bytes, 12000);
  EXPECT_GE(cache.usage().entries, 5);
  EXPECT_EQ(found(cache, keyOf(49)), text);
  EXPECT_EQ(found(cache, keyOf(1)), "nothing");
  cache.store(keyOf(99), std::string(20000, 'x'));
  EXPECT_EQ(found(cache, keyOf(99)), "nothing"); // larger than all that may be kept
  EXPECT_EQ(cache.shrink(0).entries, 0);
  EXPECT_EQ(cache.usage().entries, 0);
}

TEST_F(CacheTest, AFolderThatCannotBeWrittenKeepsNothing) {
  std::ofstream(folder + "/file") << "in the way";
  Cache blocked(folder + "/file");
  blocked.store(keyOf(1), "one");
  EXPECT_EQ(found(blocked, keyOf(1)), "nothing");
  EXPECT_EQ(blocked.usage().entries, 0);
  {
    Cache cache(folder);
    cache.store(keyOf(1), "one");
  }
  chmod(folder.c_str(), 0555);
  Cache cache(folder);
  EXPECT_EQ(found(cache, keyOf(1)), "one");
  if (geteuid() != 0) { // who root is may write all the same
    cache.store(keyOf(2), "two");
    EXPECT_EQ(found(cache, keyOf(2)), "nothing");
  }
  chmod(folder.c_str(), 0755);
}

/// Several processes store and read the same keys, below a limit that makes them remove each
/// other's entries: what is found is always right.
TEST_F(CacheTest, ProcessesShareAFolder) {
  auto textOf = [](int64_t i) { return std::string(500 + 37 * i, char('a' + i)); };
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    pid_t id = fork();
    ASSERT_GE(id, 0);
    if (id == 0) {
      bool isRight = true;
      for (int round = 0; round < 40; ++round) {
        Cache cache(folder, 8000);
        for (int64_t i = 0; i < 20; ++i) {
          auto entry = cache.find(keyOf(i));
          isRight &= !entry || entry->getBuffer() == textOf(i);
          cache.store(keyOf(i), textOf(i));
        }
      }
      _exit(isRight ? 0 : 1);
    }
    children.push_back(id);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  Cache cache(folder, 8000);
  EXPECT_LE(cache.usage().bytes, 4 * 20 * 1300);
  for (int64_t i = 0; i < 20; ++i)
    if (auto entry = cache.find(keyOf(i)))
      EXPECT_EQ(entry->getBuffer(), textOf(i));
}

} // namespace
