// Instances: see Instances.h.

#include "compiler/tuner/joint/Instances.h"

#include "compiler/support/Files.h"

namespace heddle::tuner {

static constexpr int64_t kMostSizes = 1 << 16;

static llvm::Error addRange(llvm::StringRef item, std::map<int64_t, double> &weights,
                            const llvm::Twine &problem) {
  auto [range, weightText] = item.trim().split(':');
  auto [lowText, highText] = range.split("..");
  int64_t low = 0, high = 0;
  double weight = 1;
  bool isWrong = lowText.getAsInteger(10, low) || low < 1;
  if (range.contains(".."))
    isWrong |= highText.getAsInteger(10, high) || high < low || high - low >= kMostSizes;
  else
    high = low;
  if (item.contains(':'))
    isWrong |= weightText.getAsDouble(weight) || !(weight > 0) || weight > 1e9;
  if (isWrong)
    return makeError(ErrorCode::Usage, problem);
  for (int64_t size = low; size <= high; ++size)
    weights[size] += weight;
  return llvm::Error::success();
}

llvm::Error addOver(llvm::StringRef text, Over &over) {
  auto [name, list] = text.split('=');
  std::string problem = ("error: '" + text +
                         "' gives no sizes to tune over; write NAME=SIZES, where SIZES are as in "
                         "5,24:0.2,43 (with weights), 1..128 or @FILE of observed sizes")
                            .str();
  name = name.trim();
  if (name.empty() || list.trim().empty())
    return makeError(ErrorCode::Usage, problem);
  if (over.count(name.str()))
    return makeError(ErrorCode::Usage, "error: '" + name + "' is twice in what to tune over");
  std::map<int64_t, double> weights;
  llvm::SmallVector<llvm::StringRef> items;
  std::unique_ptr<llvm::MemoryBuffer> file;
  if (list.consume_front("@")) {
    auto read =
        support::readFile(("the sizes of '" + name + "' from").str(), list, support::kMaxTextBytes);
    if (!read)
      return read.takeError();
    file = std::move(*read);
    llvm::SplitString(file->getBuffer(), items, ", \t\r\n");
    problem = ("error: '" + list +
               "' holds something that is no size; it must be whole numbers "
               "from 1 on, with spaces, commas or line ends between them")
                  .str();
    if (items.empty())
      return makeError(ErrorCode::Usage, "error: '" + list + "' holds no sizes");
  } else {
    list.split(items, ',');
  }
  for (llvm::StringRef item : items)
    if (llvm::Error error = addRange(item, weights, problem))
      return error;
  for (auto &[size, weight] : weights)
    over[name.str()].push_back({size, weight});
  return llvm::Error::success();
}

llvm::Error checkOver(const Over &over, const std::set<std::string> &known) {
  for (auto &[symbol, sizes] : over)
    if (!known.count(symbol))
      return makeError(ErrorCode::Usage, "error: no group has a size '" + symbol +
                                             "' to tune over; there are: " +
                                             (known.empty() ? "none" : llvm::join(known, ", ")));
  return llvm::Error::success();
}

std::vector<Instance> instancesOf(const Over &over, llvm::ArrayRef<std::string> symbols,
                                  size_t most) {
  std::vector<Instance> all(1);
  for (const std::string &symbol : symbols) {
    auto sizes = over.find(symbol);
    if (sizes == over.end())
      continue;
    std::vector<Instance> more;
    for (const Instance &instance : all)
      for (const Observed &observed : sizes->second) {
        more.push_back(instance);
        more.back().sizes[symbol] = observed.size;
        more.back().weight *= observed.weight;
      }
    all.clear();
    size_t count = std::min(most, more.size());
    for (size_t i = 0; i < count; ++i) // the first and the last are among them
      all.push_back(more[count == 1 ? 0 : i * (more.size() - 1) / (count - 1)]);
  }
  return all;
}

} // namespace heddle::tuner
