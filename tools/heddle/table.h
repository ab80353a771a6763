// Table: aligned columns on a terminal, and the units of the numbers in them.
#ifndef HEDDLE_TOOLS_HEDDLE_TABLE_H
#define HEDDLE_TOOLS_HEDDLE_TABLE_H

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::cli {

class Table {
public:
  explicit Table(std::vector<std::string> header) { rows.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  /// Columns of numbers are aligned to the right. One line a row, each with a line end.
  std::string text() const;
  /// Characters of its longest line.
  size_t width() const;

private:
  std::vector<size_t> widths() const;

  std::vector<std::vector<std::string>> rows;
};

std::string formatNumber(double value, int digits = 4); // significant digits
std::string formatBytes(int64_t bytes);                 // "1.5 MiB"
std::string formatSeconds(double seconds);              // "1.25 ms"

} // namespace heddle::cli

#endif
