// Failure: from a status to an exception; the nearest name for a wrong one.

#include "tools/heddle/failure.h"

#include <algorithm>
#include <memory>
#include <numeric>

namespace heddle::cli {

void failUsage(const std::string &message) { throw Failure(HEDDLE_USAGE, message); }

void check(heddle_status_t *status) {
  if (!status)
    return;
  std::unique_ptr<heddle_status_t, decltype(&heddle_status_destroy)> owned(status,
                                                                           heddle_status_destroy);
  throw Failure(heddle_status_code(status), heddle_status_message(status));
}

static size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string nearest(const std::string &word, const std::vector<std::string> &names) {
  std::string best;
  size_t bestDistance = std::min(word.size(), std::max<size_t>(1, word.size() / 3) + 1);
  for (const std::string &name : names) {
    size_t distance = editDistance(word, name);
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

std::string didYouMean(const std::string &word, const std::vector<std::string> &names) {
  std::string name = nearest(word, names);
  return name.empty() ? "" : "; did you mean '" + name + "'?";
}

} // namespace heddle::cli
