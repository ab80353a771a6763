// heddle config: what a C or C++ compiler and CMake are told to build programs that run models, as
// pkg-config would say it. Headers and libraries are those beside this binary: of an installation,
// of the wheel, or of a checkout.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/model.h"
#include "tools/heddle/terminal/terminal.h"

#include <filesystem>

namespace heddle::cli {

namespace fs = std::filesystem;

namespace {
struct Options {
  bool hasFlags = false, hasLibraries = false, hasPackage = false, isJson = false;
};
} // namespace

/// The first of the folders that has the file.
static fs::path findFolder(const std::vector<fs::path> &folders, const std::string &file,
                           const std::string &wayOut) {
  std::error_code error;
  for (const fs::path &folder : folders)
    if (fs::exists(folder / file, error))
      return folder.lexically_normal();
  failUsage("there is no '" + file + "' in '" + folders.front().string() + "'\nnote: " + wayOut);
}

static int run(const Options &options) {
  fs::path prefix = binaryFolder().parent_path(); // or the build folder of a checkout
  fs::path include = findFolder({prefix / "include", prefix / "../../include"}, "heddle/runtime.h",
                                "'cmake --install' and the wheel have it beside 'bin'");
  auto library = [&](const char *name) {
    return shellWord(findFolder({prefix / "lib"}, name, "'./dev build' makes it") / name);
  };
  Json told = Json::object();
  if (options.hasFlags)
    told["cflags"] = shellWord("-I" + include.string());
  if (options.hasLibraries) // sessions find the pool by a weak name, which pulls nothing in
    told["libs"] = library("libheddle_pool.a") + " -Wl,-u,heddle_pool_create " +
                   library("libheddle_runtime.a") + " -pthread -lm";
  if (options.hasPackage)
    told["cmakedir"] = findFolder({prefix / "lib/cmake/heddle"}, "heddleConfig.cmake",
                                  "of a checkout, 'cmake --install build/release --prefix DIR' "
                                  "makes the package in DIR/lib/cmake/heddle")
                           .string();
  if (told.empty())
    failUsage("heddle config: nothing is asked for\nnote: --cflags and --libs are for compilers, "
              "--cmakedir for find_package(heddle)");
  std::string line;
  for (const auto &[name, text] : told.items())
    line += (line.empty() ? "" : " ") + text.get<std::string>();
  if (options.isJson)
    print(told);
  else
    print(line + "\n");
  return HEDDLE_OK;
}

Run addConfig(Parser app) {
  auto options = std::make_shared<Options>();
  app.addFlag("--cflags", &options->hasFlags, "print what finds the headers");
  app.addFlag("--libs", &options->hasLibraries,
              "print what links the runtime into a program: it loads m.so, and has m.o inside");
  app.addFlag("--cmakedir", &options->hasPackage,
              "print the folder for CMake: -Dheddle_DIR=\"$(heddle config --cmakedir)\"");
  app.addJson(&options->isJson);
  return [options] { return run(*options); };
}

} // namespace heddle::cli
