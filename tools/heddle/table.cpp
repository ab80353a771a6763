// Table: see table.h.

#include "tools/heddle/table.h"

#include "tools/heddle/terminal/terminal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace heddle::cli {

static bool isNumber(const std::string &cell) {
  char *end = nullptr;
  std::strtod(cell.c_str(), &end);
  return !cell.empty() && *end == '\0';
}

/// Characters, not bytes: those of UTF-8 that continue one are not counted.
static size_t charactersOf(const std::string &cell) {
  return static_cast<size_t>(
      std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::vector<size_t> Table::widths() const {
  std::vector<size_t> widths(rows[0].size());
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], charactersOf(row[i]));
  return widths;
}

size_t Table::width() const {
  size_t longest = 0;
  std::vector<size_t> columns = widths();
  for (const auto &row : rows) {
    size_t line = 0, end = 0;
    for (size_t i = 0; i < row.size(); line += columns[i++] + 2)
      if (!row[i].empty())
        end = line + charactersOf(row[i]);
    longest = std::max(longest, end);
  }
  return longest;
}

std::string Table::text() const {
  std::vector<size_t> widths = this->widths();
  std::vector<bool> isRight(rows[0].size(), rows.size() > 1);
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      if (&row != &rows[0] && !row[i].empty() && !isNumber(row[i]))
        isRight[i] = false;
  std::string text;
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string padding(widths[i] - charactersOf(row[i]), ' ');
      line += (i ? "  " : "") + (isRight[i] ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += (&row == &rows[0] ? emphasised(line) : line) + "\n";
  }
  return text;
}

std::string formatNumber(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string formatBytes(int64_t bytes) {
  const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

std::string formatSeconds(double seconds) {
  char text[64];
  if (seconds >= 1)
    std::snprintf(text, sizeof text, "%.2f s", seconds);
  else if (seconds >= 1e-3)
    std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.2f us", seconds * 1e6);
  return text;
}

} // namespace heddle::cli
