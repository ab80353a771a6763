// AtSizes: a group at each of the sizes that it is tuned for together.
#ifndef HEDDLE_TUNER_ATSIZES_H
#define HEDDLE_TUNER_ATSIZES_H

#include "compiler/tuner/ExtractedGroup.h"
#include "compiler/tuner/GroupTuning.h"

namespace heddle::tuner {

/// A group at one of the sizes that it is tuned for.
struct AtSize {
  GroupTuning work;
  std::unique_ptr<ExtractedGroup> subject;
  std::shared_ptr<trial::Program> base; // one program for all sizes
};

/// The sizes that were asked for, made on demand.
class AtSizes {
public:
  using Make = std::function<llvm::Expected<std::unique_ptr<AtSize>>(size_t)>;
  explicit AtSizes(Make make) : make(std::move(make)) {}

  /// Null if the group cannot run at the size.
  llvm::Expected<AtSize *> at(size_t number) {
    auto [known, isNew] = made.try_emplace(number);
    if (isNew) {
      auto size = make(number);
      if (!size)
        return size.takeError();
      known->second = std::move(*size);
    }
    return known->second.get();
  }

  /// The sizes asked for at which the group runs, in order.
  std::vector<AtSize *> all() const {
    std::vector<AtSize *> sizes;
    for (auto &[number, size] : made)
      if (size)
        sizes.push_back(size.get());
    return sizes;
  }

private:
  Make make;
  std::map<size_t, std::unique_ptr<AtSize>> made;
};

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_ATSIZES_H
