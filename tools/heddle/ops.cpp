// heddle ops: the table of supported ONNX ops, as the importer's own table says.

#include "tools/heddle/command.h"
#include "tools/heddle/model.h"
#include "tools/heddle/table.h"

#include <iostream>
#include <sstream>

namespace heddle::cli {

/// Cells of a markdown table's rows, the header first, the rule left out.
static std::vector<std::vector<std::string>> rowsOf(const std::string &markdown) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(markdown);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != '|' || line.find("---") != std::string::npos)
      continue;
    std::vector<std::string> row;
    std::istringstream cells(line.substr(1));
    for (std::string cell; std::getline(cells, cell, '|');) {
      size_t first = cell.find_first_not_of(" `"), last = cell.find_last_not_of(" `");
      row.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
    }
    if (rows.empty() || row != rows.front()) // each category has the header again
      rows.push_back(row);
  }
  return rows;
}

Run addOps(Parser app) {
  auto isMarkdown = std::make_shared<bool>(false), isJson = std::make_shared<bool>(false);
  app.addFlag("--markdown", isMarkdown.get(), "print the table as Markdown");
  app.addJson(isJson.get());
  return [isMarkdown, isJson] {
    std::string markdown = heddle_support_table();
    auto rows = rowsOf(markdown);
    if (*isMarkdown) {
      std::cout << "# Supported ONNX ops\n\n" << markdown;
    } else if (*isJson) {
      auto ops = Json::array();
      for (size_t i = 1; i < rows.size(); ++i) {
        Json op;
        for (size_t c = 0; c < rows[0].size() && c < rows[i].size(); ++c)
          op[rows[0][c]] = rows[i][c];
        ops.push_back(op);
      }
      std::cout << Json{{"ops", ops}}.dump(2) << "\n";
    } else {
      Table table(rows.at(0));
      for (size_t i = 1; i < rows.size(); ++i)
        table.add(rows[i]);
      std::cout << table.text();
    }
    return 0;
  };
}

} // namespace heddle::cli
