// Order: see order.h. Strongly connected parts of the control flow are its loops; they are ordered
// among each other, and each then in itself, without the ways back to its first piece.
#include "emulator/decode/order.h"

#include <algorithm>
#include <numeric>

namespace heddle::emulator {
namespace {

/// Instructions that follow each other, and the pieces that come next.
struct Piece {
  uint32_t begin, end;
  std::vector<uint32_t> next, before;
  uint32_t set = 0; // pieces of one set are being ordered
  uint32_t index = 0, low = 0;
  bool isOpen = false;
};

class Ranking {
public:
  explicit Ranking(Kernel &kernel) : kernel{kernel} { split(); }
  void run() {
    std::vector<uint32_t> all(pieces.size());
    std::iota(all.begin(), all.end(), 0);
    arrange(all, kNone);
    for (const Piece &piece : pieces) {
      Instruction &last = kernel.code[piece.end - 1];
      last.isBeforeLoop = piece.end < kernel.code.size() && kernel.code[piece.end].rank < last.rank;
    }
  }

private:
  static constexpr uint32_t kNone = ~uint32_t(0);
  Kernel &kernel;
  std::vector<Piece> pieces;
  std::vector<uint32_t> open; // of the search
  uint32_t sets = 0, counted = 0, ranks = 0;

  template <class F> void eachTarget(const Instruction &i, F use) const {
    if (i.flow == Flow::Branch)
      use(i.target);
    for (int64_t k = 0; i.flow == Flow::Table && k < i.number; ++k)
      use(kernel.tables[i.target + static_cast<size_t>(k)]);
  }

  void split() {
    const auto &code = kernel.code;
    std::vector<bool> isFirst(code.size() + 1);
    isFirst[0] = isFirst[code.size()] = true;
    for (size_t i = 0; i < code.size(); ++i) {
      eachTarget(code[i], [&](uint32_t target) { isFirst[target] = true; });
      if (code[i].flow != Flow::None)
        isFirst[i + 1] = true;
    }
    std::vector<uint32_t> pieceAt(code.size() + 1);
    for (uint32_t i = 0; i < code.size(); ++i) {
      if (isFirst[i])
        pieces.push_back({i, i, {}, {}});
      pieceAt[i] = static_cast<uint32_t>(pieces.size() - 1);
      pieces.back().end = i + 1;
    }
    for (uint32_t number = 0; number < pieces.size(); ++number) {
      Piece &piece = pieces[number];
      const Instruction &last = code[piece.end - 1];
      bool isLeaving = last.flow != Flow::None && last.flow != Flow::Barrier &&
                       last.flow != Flow::Arrive && last.guard < 0;
      if (!isLeaving && piece.end < code.size())
        piece.next.push_back(pieceAt[piece.end]);
      eachTarget(last, [&](uint32_t target) { piece.next.push_back(pieceAt[target]); });
      for (uint32_t next : piece.next)
        pieces[next].before.push_back(number);
    }
  }

  void number(uint32_t piece) {
    for (uint32_t i = pieces[piece].begin; i < pieces[piece].end; ++i)
      kernel.code[i].rank = kernel.code[i].again = ranks++;
  }

  /// Strongly connected parts of a set that are reached from a piece, the last ones first (Tarjan,
  /// "Depth-first search and linear graph algorithms", 1972). Ways to `first` are left out.
  void search(uint32_t from, uint32_t first, std::vector<std::vector<uint32_t>> &parts) {
    uint32_t set = pieces[from].set;
    std::vector<std::pair<uint32_t, size_t>> path; // pieces, and how many of the next were seen
    auto enter = [&](uint32_t piece) {
      pieces[piece].index = pieces[piece].low = ++counted;
      pieces[piece].isOpen = true;
      open.push_back(piece);
      path.emplace_back(piece, 0);
    };
    for (enter(from); !path.empty();) {
      uint32_t number = path.back().first;
      Piece &piece = pieces[number];
      if (path.back().second < piece.next.size()) {
        uint32_t next = piece.next[path.back().second++];
        if (next == first || pieces[next].set != set)
          continue;
        if (!pieces[next].index)
          enter(next);
        else if (pieces[next].isOpen)
          piece.low = std::min(piece.low, pieces[next].index);
        continue;
      }
      path.pop_back();
      if (!path.empty())
        pieces[path.back().first].low = std::min(pieces[path.back().first].low, piece.low);
      if (piece.low != piece.index)
        continue;
      auto begin = std::find(open.begin(), open.end(), number);
      parts.emplace_back(begin, open.end());
      for (uint32_t each : parts.back())
        pieces[each].isOpen = false;
      open.erase(begin, open.end());
    }
  }

  /// Numbers the pieces of a set; `first` is the one at which all ways into it begin.
  void arrange(const std::vector<uint32_t> &set, uint32_t first) {
    ++sets;
    for (uint32_t each : set)
      pieces[each].set = sets, pieces[each].index = 0;
    std::vector<std::vector<uint32_t>> parts;
    for (uint32_t each : set)
      if (!pieces[each].index)
        search(each, first, parts);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const auto &next = pieces[part->front()].next;
      bool isLoop =
          part->size() > 1 || (part->front() != first &&
                               std::find(next.begin(), next.end(), part->front()) != next.end());
      if (!isLoop) {
        number(part->front());
        continue;
      }
      std::sort(part->begin(), part->end());
      uint32_t entry = entryOf(*part);
      if (part->size() > 1)
        arrange(*part, entry);
      else
        number(entry);
      kernel.code[pieces[entry].begin].again = ranks++;
    }
  }

  /// The first piece of a loop that is reached from elsewhere.
  uint32_t entryOf(const std::vector<uint32_t> &loop) const {
    for (uint32_t each : loop) {
      auto isOutside = [&](uint32_t before) {
        return !std::binary_search(loop.begin(), loop.end(), before);
      };
      const auto &before = pieces[each].before;
      if (each == 0 || std::any_of(before.begin(), before.end(), isOutside))
        return each;
    }
    return loop.front();
  }
};

} // namespace

void rank(Kernel &kernel) { Ranking(kernel).run(); }

} // namespace heddle::emulator
