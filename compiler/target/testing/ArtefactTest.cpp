// ArtefactTest: a program runs from memory, from a shared library and from an object; files appear
// whole or not at all.

#include "compiler/target/cpu/artefact/Artefact.h"
#include "compiler/cache/Cache.h"
#include "compiler/support/Files.h"
#include "compiler/target/cpu/artefact/Descriptor.h"
#include "compiler/target/cpu/artefact/Linker.h"
#include "compiler/target/testing/Programs.h"

#include "llvm/Support/FileSystem.h"

#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace heddle;
using namespace heddle::testing;

namespace {

const std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

void expectScaled(const heddle_executable_t &executable, float bias) {
  std::vector<float> y = runScale(executable, numbers);
  for (size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(y[i], 2 * numbers[i] + bias);
}

std::string contentOf(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

class Artefact : public ::testing::Test {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/heddle-target-test-XXXXXX";
    folder = mkdtemp(pattern);
    emit({0.5f, 7.0f});
  }
  void TearDown() override {
    chmod(folder.c_str(), 0700);
    llvm::sys::fs::remove_directories(folder);
  }
  void emit(std::vector<float> weights) {
    program = scaleProgram(context, std::move(weights));
    objects = llvm::cantFail(cpu::emitObjects(program, host(), 3, 2));
  }
  std::string write(const std::string &kind, const std::string &path) {
    cpu::ArtefactOptions options;
    options.kind = kind;
    return llvm::toString(cpu::writeArtefact(program, host(), objects, options, path));
  }
  std::string path(const std::string &name) const { return folder + "/" + name; }
  int filesInFolder() const {
    std::error_code error;
    int count = 0;
    for (llvm::sys::fs::directory_iterator at(folder, error), end; at != end && !error;
         at.increment(error))
      ++count;
    return count;
  }

  mlir::MLIRContext context;
  program::Program program;
  cpu::Objects objects;
  std::string folder;
};

TEST_F(Artefact, RunsFromMemory) {
  auto loaded = cpu::load(program, host(), objects);
  ASSERT_TRUE(bool(loaded));
  const heddle_executable_t &executable = *(*loaded)->executable();
  EXPECT_EQ(executable.magic, HEDDLE_EXECUTABLE_MAGIC);
  EXPECT_STREQ(executable.model, "scale-v1");
  EXPECT_EQ(executable.weights_bytes, 8);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(executable.weights) % 64, 0u);
  EXPECT_STREQ(executable.inputs[0].name, "x");
  EXPECT_EQ(executable.inputs[0].rank, 1);
  EXPECT_EQ(executable.outputs[0].dims[0].symbol, 0);
  EXPECT_STREQ(executable.outputs[0].dims[0].text, "n");
  EXPECT_STREQ(executable.kernels[0], "scale");
  expectScaled(executable, 0.5f);
}

TEST_F(Artefact, ProgramsInMemoryDoNotMeet) {
  auto first = cpu::load(program, host(), objects);
  emit({100.0f});
  auto second = cpu::load(program, host(), objects);
  ASSERT_TRUE(first && second);
  expectScaled(*(*first)->executable(), 0.5f);
  expectScaled(*(*second)->executable(), 100.0f);
}

TEST_F(Artefact, RunsFromASharedLibrary) {
  ASSERT_EQ(write("so", path("a.so")), "");
  EXPECT_EQ(filesInFolder(), 1);
  void *library = dlopen(path("a.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  auto *entry = static_cast<const heddle_executable_t *>(dlsym(library, HEDDLE_ENTRY_SYMBOL));
  ASSERT_TRUE(entry);
  EXPECT_EQ(dlsym(library, "scale_v1_executable"), static_cast<const void *>(entry));
  EXPECT_EQ(dlsym(library, "heddle_program_run"), nullptr);
  expectScaled(*entry, 0.5f);
  dlclose(library);
}

TEST_F(Artefact, ObjectsOfTwoModelsLinkTogether) {
  ASSERT_EQ(write("o", path("a.o")), "");
  emit({3.0f});
  program.model = "models/other.onnx";
  ASSERT_EQ(write("o", path("b.o")), "");
  EXPECT_EQ(filesInFolder(), 2);
  std::string both = path("both.so");
  ASSERT_FALSE(bool(cpu::runLinker({"-shared", "-o", both, path("a.o"), path("b.o")}, both)));
  void *library = dlopen(both.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  auto entry = [&](const char *name) {
    return static_cast<const heddle_executable_t *>(dlsym(library, name));
  };
  ASSERT_TRUE(entry("scale_v1_executable") && entry("other_executable"));
  EXPECT_FALSE(entry(HEDDLE_ENTRY_SYMBOL));
  expectScaled(*entry("scale_v1_executable"), 0.5f);
  expectScaled(*entry("other_executable"), 3.0f);
  dlclose(library);
}

TEST_F(Artefact, BytesAreReproducible) {
  ASSERT_EQ(write("so", path("a.so")), "");
  ASSERT_EQ(write("o", path("a.o")), "");
  objects = llvm::cantFail(cpu::emitObjects(program, host(), 3, 1));
  ASSERT_EQ(write("so", path("b.so")), "");
  ASSERT_EQ(write("o", path("b.o")), "");
  EXPECT_TRUE(contentOf(path("a.so")) == contentOf(path("b.so")));
  EXPECT_TRUE(contentOf(path("a.o")) == contentOf(path("b.o")));
}

TEST_F(Artefact, ObjectsComeFromTheCache) {
  cache::Cache kept(path("cache"));
  for (int64_t isAgain : {0, 1}) {
    cpu::CodeCache code;
    code.objects = &kept;
    program = scaleProgram(context, {0.5f, 7.0f});
    cpu::Objects made = llvm::cantFail(cpu::emitObjects(program, host(), 3, 2, code));
    EXPECT_EQ(code.found, isAgain * int64_t(made.size()));
    ASSERT_EQ(made.size(), objects.size());
    for (auto [one, other] : llvm::zip(made, objects))
      EXPECT_TRUE(one->getBuffer() == other->getBuffer());
  }
  cpu::CodeCache code;
  code.objects = &kept;
  program = scaleProgram(context, {0.5f, 7.0f});
  llvm::cantFail(cpu::emitObjects(program, host(), 1, 2, code));
  EXPECT_EQ(code.found, 0); // cached code is of another level
}

TEST_F(Artefact, TextForms) {
  ASSERT_EQ(write("ll", path("a.ll")), "");
  ASSERT_EQ(write("asm", path("a.s")), "");
  ASSERT_EQ(write("h", path("a.h")), "");
  EXPECT_NE(contentOf(path("a.ll")).find("define hidden i32 @heddle_program_run"),
            std::string::npos);
  EXPECT_NE(contentOf(path("a.s")).find("heddle_program_run:"), std::string::npos);
  std::string header = contentOf(path("a.h"));
  EXPECT_NE(header.find("extern const heddle_executable_t scale_v1_executable;"),
            std::string::npos);
  EXPECT_NE(header.find("input  x: float32[n]") + header.find("input x: float32[n]"),
            std::string::npos);
}

TEST_F(Artefact, AFolderThatIsNotThereIsNamed) {
  std::string error = write("so", path("none/a.so"));
  EXPECT_EQ(error, "error: cannot write '" + path("none/a.so") + "': No such file or directory");
}

TEST_F(Artefact, AnUnknownKindIsRefused) {
  EXPECT_EQ(write("exe", path("a")),
            "error: unknown kind of artefact 'exe'\nnote: known: so, o, h, ll, asm");
}

TEST_F(Artefact, AFolderWithoutPermissionStaysAsItWas) {
  if (geteuid() == 0)
    GTEST_SKIP() << "skipped: root may write anywhere";
  chmod(folder.c_str(), 0500);
  EXPECT_EQ(write("so", path("a.so")),
            "error: cannot write '" + path("a.so") + "': Permission denied");
}

/// Limits files as a full disk does.
TEST_F(Artefact, NothingIsLeftWhereThereIsNoRoom) {
  emit(std::vector<float>(1 << 20));
  ASSERT_EQ(write("h", path("a.so")), "");
  std::string before = contentOf(path("a.so"));
  auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  for (rlim_t limit : {100, 20000, 3 << 20}) {
    rlimit small = {limit, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    std::string so = write("so", path("a.so")), object = write("o", path("b.o"));
    setrlimit(RLIMIT_FSIZE, &old);
    EXPECT_EQ(so, "error: cannot write '" + path("a.so") + "': File too large");
    EXPECT_EQ(object, "error: cannot write '" + path("b.o") + "': File too large");
    EXPECT_EQ(contentOf(path("a.so")), before);
    EXPECT_EQ(filesInFolder(), 1);
  }
  std::signal(SIGXFSZ, previous);
}

TEST_F(Artefact, WithoutALinkerTheErrorSaysWhatToInstall) {
  std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  std::string error = write("so", this->path("a.so"));
  setenv("PATH", path.c_str(), 1);
  EXPECT_NE(error.find("no linker found in PATH\nnote: looked for ld.lld-"), std::string::npos)
      << error;
  EXPECT_EQ(filesInFolder(), 0);
}

TEST_F(Artefact, LargeWeightsKeepTheirPlaces) {
  std::vector<float> weights(3 << 20);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<float>(i);
  emit(weights);
  program.weights.own({'e', 'n', 'd'});
  ASSERT_EQ(write("so", path("a.so")), "");
  void *library = dlopen(path("a.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  auto *entry = static_cast<const heddle_executable_t *>(dlsym(library, HEDDLE_ENTRY_SYMBOL));
  const float *stored = reinterpret_cast<const float *>(entry->weights);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(stored) % 4096, 0u);
  EXPECT_EQ(stored[12345], 12345.0f);
  EXPECT_EQ(std::string(reinterpret_cast<const char *>(stored + weights.size()), 3), "end");
  dlclose(library);
}

} // namespace
