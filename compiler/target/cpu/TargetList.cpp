// TargetList: several targets of one artefact, written as one word.
//
//   list = part { "+" part }
//   part = a name that targetFor knows, or, after the first part, what follows its family's name
//          and a hyphen: "v3" after "x86-64-v2" is "x86-64-v3".
//
// Each part is one target, so there is one way to read a list: features that a target has besides
// its level's are a name of their own, as "x86-64-vnni".

#include "compiler/target/cpu/Target.h"

namespace heddle::cpu {

/// "x86-64" of "x86-64-v3"; empty for a CPU's name.
static llvm::StringRef familyOf(llvm::StringRef name) {
  for (llvm::StringRef family : {"x86-64", "aarch64"})
    if (name == family || (name.starts_with(family) && name[family.size()] == '-'))
      return family;
  return "";
}

static llvm::Expected<Target> partOf(llvm::StringRef part, llvm::StringRef family) {
  auto target = targetFor(part);
  if (target || family.empty())
    return target;
  auto level = targetFor((family + "-" + part).str());
  if (!level) {
    llvm::consumeError(level.takeError());
    return target.takeError();
  }
  llvm::consumeError(target.takeError());
  return level;
}

llvm::Expected<std::vector<Target>> targetsFor(llvm::StringRef list) {
  llvm::SmallVector<llvm::StringRef> parts;
  list.split(parts, '+');
  llvm::StringRef family = familyOf(parts.front());
  std::vector<Target> targets;
  auto refuse = [&](const llvm::Twine &why) {
    return makeError(ErrorCode::Usage, "error: target '" + list + "': " + why);
  };
  for (llvm::StringRef part : parts) {
    if (part.empty() && parts.size() > 1)
      return refuse("there is no name on one side of a '+'");
    auto target = partOf(part, family);
    if (!target)
      return target.takeError();
    for (const Target &other : targets) {
      if (other.triple != target->triple)
        return refuse("'" + llvm::Twine(other.name) + "' and '" + target->name +
                      "' are of different architectures, which need a file each");
      if (other.required == target->required)
        return refuse("'" + llvm::Twine(other.name) + "' and '" + target->name +
                      "' need the same of a CPU, so only one of them would run; leave one out");
    }
    targets.push_back(std::move(*target));
  }
  llvm::sort(targets, [](const Target &x, const Target &y) {
    return std::make_pair(x.required.size(), x.name) < std::make_pair(y.required.size(), y.name);
  });
  return targets;
}

} // namespace heddle::cpu
