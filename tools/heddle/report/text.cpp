// Text: see text.h.

#include "tools/heddle/report/text.h"

#include "tools/heddle/table.h"

#include <map>

namespace heddle::cli {

/// A size that is a number, else the expression of the symbols that it is.
static std::string bytesText(const Json &size) {
  return size.is_number() ? formatBytes(size.get<int64_t>())
         : size.is_null() ? "?"
                          : size.get<std::string>() + " B";
}

static std::string countText(const Json &count) {
  return count.is_number() ? formatNumber(count.get<double>()) : count.get<std::string>();
}

/// Shortens an expression, so that columns stay narrow.
static std::string cellOf(const Json &size, double unit) {
  return size.is_number() ? formatNumber(size.get<double>() / unit, 3) : "sym";
}

/// "m=8 n=48".
static std::string settingsText(const Json &knobs) {
  std::string text;
  for (const auto &[name, value] : knobs.items())
    text += (text.empty() ? "" : " ") + name + "=" + value.dump();
  return text;
}

static std::string knobsOf(const Json &group) {
  std::string text = settingsText(group.at("knobs"));
  if (size_t count = group.value("versions", Json::array()).size())
    text += " and " + std::to_string(count) + " more";
  return text;
}

/// The decision by sizes, as a run makes it; "" if there is none.
static std::string versionsText(const Json &group) {
  Json versions = group.value("versions", Json::array());
  if (versions.empty())
    return "";
  std::string text = "versions\n", word = "  if ";
  for (const Json &version : versions) {
    std::string bounds;
    for (const auto &[size, most] : version.at("when").items())
      bounds += (bounds.empty() ? "" : " and ") + size + " <= " + most.dump();
    text += word + bounds + ": " + settingsText(version.at("knobs")) + "\n";
    word = "  else if ";
  }
  return text + "  else: " + settingsText(group.at("knobs")) + "\n";
}

/// Numbers that led to the precision; "" if there are none.
static std::string precisionText(const Json &group) {
  const Json &measured = group.at("measured");
  if (measured.is_null())
    return "";
  auto number = [&](const char *name) { return measured.value(name, 0.0); };
  bool isShort = group.at("precision").is_string();
  std::string text = isShort ? "precision bf16 saves " : "precision f32: bf16 would save ";
  text += formatSeconds(number("saved")) + " of " + formatSeconds(number("seconds"));
  if (measured.contains("error")) {
    double others = number("groups") - 1;
    text += (isShort ? ", and moves outputs by " : ", but move outputs by ") +
            formatNumber(number("error"), 3) + " of their largest number" +
            (others > 0 ? ", together with " + formatNumber(others) + " other groups" : "");
  }
  return text + "\n";
}

static std::string cardOf(const Json &group) {
  return group.at("card").is_string() ? group.at("card").get<std::string>() : "-";
}

static std::string mechanismOf(const Json &group) {
  std::string text = group.at("mechanism").get<std::string>();
  if (group.at("precision").is_string())
    text += ", " + group.at("precision").get<std::string>();
  return text;
}

static size_t refusedOf(const Json &group) {
  size_t count = 0;
  for (const Json &offer : group.at("offers"))
    count += offer.at("refusal").is_string();
  return count;
}

static std::string regionOf(const Json &group) {
  return group.at("region").is_null() ? "" : group.at("region").dump();
}

static void addMeasures(const Json &explanation, const Json &group, std::vector<std::string> &row) {
  if (!explanation.contains("run"))
    return;
  if (group.contains("launched_with")) {
    row.insert(row.end(), {"in " + group.at("launched_with").dump(), "", "", "", ""});
    return;
  }
  double seconds = group.value("seconds", 0.0), whole = explanation.at("run").at("seconds");
  auto rate = [&](const char *name, double unit) {
    return group.contains(name) ? formatNumber(group.at(name).get<double>() / unit, 3) : "";
  };
  row.insert(row.end(), {formatNumber(1e6 * seconds), formatNumber(100 * seconds / whole, 3),
                         rate("flops_per_second", 1e9), rate("bytes_per_second", 1e9),
                         rate("of_bound", 0.01)});
}

/// The ops of a quantised model that are not computed with its integers, each with its reason.
static std::string unfoldedText(const Json &unfolded) {
  constexpr size_t kMost = 12;
  if (unfolded.empty())
    return "";
  std::string text = "unfolded " + std::to_string(unfolded.size()) +
                     " ops of quantised tensors are not computed with integers of 8 bits:\n";
  for (size_t i = 0; i < std::min(unfolded.size(), kMost); ++i)
    text += "         " + unfolded[i].at("node").get<std::string>() + " (" +
            unfolded[i].at("op").get<std::string>() +
            "): " + unfolded[i].at("why").get<std::string>() + "\n";
  if (unfolded.size() > kMost)
    text +=
        "         and " + std::to_string(unfolded.size() - kMost) + " more, which --json prints\n";
  return text;
}

/// "rows     8 of 'batch' with 211 of 512 'seq'; 1.2 GFLOP instead of 3.1 with padding, 1.23 with
/// what fills up tiles; a thread of 2 has at most 50.1 % of what rows do apart".
static std::string rowsText(const Json &rows) {
  auto text = [&](const char *name) { return rows.at(name).get<std::string>(); };
  auto gflop = [&](const char *name) {
    return rows.at(name).is_null() ? "?" : formatNumber(rows.at(name).get<double>() * 1e-9);
  };
  int64_t count = rows.at("count"), most = rows.at("padded_length");
  std::string share;
  if (const Json &largest = rows.at("largest_share"); !largest.is_null())
    share = "; a thread of " + rows.at("threads").dump() + " has at most " +
            formatNumber(100 * largest.get<double>(), 3) + " % of what rows do apart";
  return "rows     " + std::to_string(count) + " of '" + text("of") + "' with " +
         rows.at("sum_of_lengths").dump() + " of " + std::to_string(count * most) + " '" +
         text("size") + "'; " + gflop("flops") + " GFLOP instead of " + gflop("padded_flops") +
         " with padding, " + gflop("computed_flops") + " with what fills up tiles" + share + "\n";
}

/// "math     fast; subnormal results are flushed to 0 (--subnormals keep keeps them)".
static std::string mathText(const Json &explanation) {
  static const std::map<std::string, std::string> kSubnormals = {
      {"keep", "kept (--subnormals flush makes them 0)"},
      {"flush", "flushed to 0 (--subnormals keep keeps them)"},
      {"caller", "left to the program that the C file is linked into"}};
  return "math     " + explanation.at("math").get<std::string>() + "; subnormal results are " +
         kSubnormals.at(explanation.at("subnormals")) + "\n";
}

/// "device   86 groups on cuda, 1.21 ms by a roofline of the chip", or nothing.
static std::string devicesText(const Json &explanation) {
  std::map<std::string, std::pair<int64_t, double>> devices;
  for (const Json &group : explanation.at("groups"))
    if (const Json &device = group.at("device"); device.is_object()) {
      auto &[groups, seconds] = devices[device.at("name")];
      ++groups;
      seconds += device.at("roofline_seconds").get<double>();
    }
  std::string text;
  for (const auto &[name, found] : devices)
    text += "device   " + std::to_string(found.first) + " groups on " + name + ", " +
            formatSeconds(found.second) + " by a roofline of the chip\n";
  return text;
}

/// The device of a group, its kernels and the roofline.
static std::string deviceText(const Json &device) {
  if (!device.is_object())
    return "";
  std::string text = "device   " + device.at("name").get<std::string>() + ", " +
                     formatSeconds(device.at("roofline_seconds")) + " by a roofline of the chip\n";
  for (const Json &kernel : device.at("kernels"))
    text += "  " + kernel.at("name").get<std::string>() + ": " + kernel.at("threads").dump() +
            " threads a task, " + formatBytes(kernel.at("shared_bytes")) + " of shared memory\n";
  return text;
}

static std::string headOf(const Json &explanation) {
  auto text = [&](const char *name) { return explanation.at(name).get<std::string>(); };
  std::string head = "model    " + text("model") + "\ntarget   " + text("target") + "\n";
  head += mathText(explanation) + "groups   " + std::to_string(explanation.at("groups").size()) +
          " in " + explanation.at("launches").dump() + " launches\n";
  head += devicesText(explanation);
  head += "weights  " + formatBytes(explanation.at("weights_bytes")) + "\n";
  head += "arena    " + bytesText(explanation.at("memory").at("arena_bytes")) + " for " +
          std::to_string(explanation.at("memory").at("buffers").size()) + " buffers\n";
  std::string symbols;
  for (const Json &symbol : explanation.at("symbols"))
    symbols += (symbols.empty() ? "" : ", ") + symbol.get<std::string>();
  if (!symbols.empty())
    head += "symbols  " + symbols + ": give them with --dim to have sizes as numbers\n";
  if (explanation.contains("rows") && !explanation.at("rows").is_null())
    head += rowsText(explanation.at("rows"));
  if (const Json &splits = explanation.at("feedback"); !splits.empty())
    head += "split    " + std::to_string(splits.size()) + " groups were made and split again, as " +
            splits[0].at("group").get<std::string>() + " (" +
            splits[0].at("step").get<std::string>() +
            "): " + splits[0].at("why").get<std::string>() + "\n";
  head += unfoldedText(explanation.at("unfolded"));
  if (const Json &nodes = explanation.at("integers"); !nodes.empty())
    head += "integers " + std::to_string(nodes.size()) +
            " nodes have products of f32 that are computed with 8-bit integers, as " +
            nodes[0].get<std::string>() + "\n";
  if (explanation.contains("run")) {
    const Json &run = explanation.at("run");
    head += "time     " + formatSeconds(run.at("seconds")) + ", median of " +
            run.at("runs").dump() + " runs with " + run.at("threads").dump() + " threads\n";
  }
  if (explanation.contains("machine")) {
    const Json &machine = explanation.at("machine");
    head += "machine  " + formatNumber(machine.at("flops_per_second").get<double>() / 1e9) +
            " GFLOP/s, reads " + formatNumber(machine.at("bytes_per_second").get<double>() / 1e9) +
            " GB/s with " + machine.at("threads").dump() + " threads\n";
  }
  return head;
}

static std::string knobsText(const Json &choice) {
  std::string text = choice.at("card").is_null() ? "the default form" : choice.at("card");
  for (const auto &[name, value] : choice.at("knobs").items())
    text += " " + name + "=" + value.dump();
  return text;
}

/// "cost     1.21 times as fast as matmul m=8 n=48, by the cost model", and what speaks for it.
static std::string costText(const Json &explanation, const Json &group) {
  if (!explanation.contains("cost_model"))
    return "";
  const Json &said = explanation.at("cost_model").at("groups");
  std::string name = group.at("name");
  if (!said.contains(name))
    return "";
  const Json &decision = said.at(name);
  std::string promise = formatNumber(decision.at("speedup"), 3) + " times as fast";
  if (const Json &kept = decision.at("kept"); kept.is_string())
    return "cost     the cost model was not followed: " + kept.get<std::string>() + "\n";
  std::string text = "cost     " + promise + " as " + knobsText(decision.at("instead_of")) +
                     ", as the cost model says; what moved its score:\n";
  for (const Json &moved : decision.at("moved"))
    text += "  " + moved.at("feature").get<std::string>() + ": " +
            formatNumber(moved.at("factor"), 3) + " times as long as that one has it\n";
  return text;
}

/// Summary of all groups: "cost     4 of 9 groups as the cost model says".
static std::string costHead(const Json &explanation) {
  if (!explanation.contains("cost_model"))
    return "";
  const Json &model = explanation.at("cost_model");
  if (model.at("problem").is_string())
    return "cost     " + model.at("problem").get<std::string>() + "\n";
  int64_t followed = 0;
  for (const Json &decision : model.at("groups"))
    followed += decision.at("kept").is_null();
  return "cost     " + std::to_string(followed) + " of " +
         std::to_string(model.at("groups").size()) +
         " groups as the cost model says; --group tells why\n";
}

std::string tableOf(const Json &explanation) {
  std::vector<std::string> header{"#",       "group",  "ops",      "mechanism", "card", "knobs",
                                  "refused", "region", "read KiB", "written",   "MFLOP"};
  bool hasDevices = !devicesText(explanation).empty();
  if (hasDevices)
    for (const char *name : {"device", "roof us"})
      header.push_back(name);
  if (explanation.contains("run"))
    for (const char *name : {"us", "%", "GFLOP/s", "GB/s", "% of bound"})
      header.push_back(name);
  Table table(header);
  for (const Json &group : explanation.at("groups")) {
    std::vector<std::string> row{group.at("number").dump(),
                                 group.at("name").get<std::string>(),
                                 std::to_string(group.at("ops").size()),
                                 mechanismOf(group),
                                 cardOf(group),
                                 knobsOf(group),
                                 std::to_string(refusedOf(group)),
                                 regionOf(group),
                                 cellOf(group.at("read_bytes"), 1024),
                                 cellOf(group.at("written_bytes"), 1024),
                                 cellOf(group.at("flops"), 1e6)};
    if (const Json &device = group.at("device"); device.is_object()) {
      row.push_back(device.at("name"));
      row.push_back(formatNumber(1e6 * device.at("roofline_seconds").get<double>(), 3));
    } else if (hasDevices) {
      row.insert(row.end(), {"host", ""});
    }
    addMeasures(explanation, group, row);
    table.add(std::move(row));
  }
  return headOf(explanation) + costHead(explanation) + "\n" + table.text();
}

static std::string opsText(const Json &group) {
  std::string text = "ops\n";
  for (const Json &op : group.at("ops")) {
    std::string kinds;
    for (const Json &kind : op.at("graph_ops"))
      kinds += (kinds.empty() ? "" : ", ") + kind.get<std::string>();
    text += "  " + op.at("name").get<std::string>() + "  (" + kinds + ")\n";
  }
  return text;
}

static std::string offersText(const Json &group) {
  Table offers({"  card", "priority", "answer"});
  for (const Json &offer : group.at("offers")) {
    std::string name = offer.at("card").get<std::string>();
    const Json &refusal = offer.at("refusal");
    offers.add({"  " + name, offer.at("priority").dump(),
                refusal.is_string()     ? "refused: " + refusal.get<std::string>()
                : name == cardOf(group) ? "chosen"
                                        : "offered"});
  }
  return "offers\n" + offers.text();
}

static std::string sourceOf(const Json &explanation, const Json &input) {
  if (input.contains("group"))
    return "group " +
           explanation.at("groups")[input.at("group").get<size_t>()].at("name").get<std::string>();
  if (input.contains("input"))
    return "input " + input.at("input").get<std::string>();
  return input.contains("weight") ? "weight" : input.at("op").get<std::string>();
}

static std::string trafficText(const Json &explanation, const Json &group) {
  Table tensors({"  tensor", "from", "bytes"});
  for (const Json &input : group.at("inputs"))
    tensors.add({"  " + input.at("type").get<std::string>(), sourceOf(explanation, input),
                 bytesText(input.at("bytes"))});
  for (const Json &output : group.at("outputs"))
    tensors.add(
        {"  " + output.at("type").get<std::string>(), "written", bytesText(output.at("bytes"))});
  return "traffic  " + bytesText(group.at("read_bytes")) + " read (of them " +
         bytesText(group.at("weight_bytes")) + " weights), " +
         bytesText(group.at("written_bytes")) + " written\n" + tensors.text() + "work     " +
         countText(group.at("flops")) + " floating point operations\n";
}

static std::string memoryText(const Json &explanation, const Json &group) {
  Table buffers({"  buffer", "offset", "bytes", "first", "last"});
  bool hasAny = false;
  for (const Json &buffer : explanation.at("memory").at("buffers")) {
    if (buffer.at("group") != group.at("number"))
      continue;
    hasAny = true;
    buffers.add(
        {(buffer.at("is_temporary") ? "  temporary " : "  result ") + buffer.at("index").dump(),
         buffer.at("offset").is_null() ? "" : buffer.at("offset").dump(),
         bytesText(buffer.at("bytes")), buffer.at("first").dump(), buffer.at("last").dump()});
  }
  return hasAny ? "memory   (first and last are numbers of groups)\n" + buffers.text()
                : "memory   nothing in the arena\n";
}

static std::string launchedTogether(const Json &explanation, const Json &group) {
  int others = 0;
  for (const Json &other : explanation.at("groups"))
    others += other.contains("launched_with") && other.at("launched_with") == group.at("number");
  return others == 0 ? ""
                     : ", together with " + std::to_string(others) +
                           " groups that are launched at once with it";
}

std::string detailsOf(const Json &explanation, const Json &group) {
  std::string text = "group    " + group.at("name").get<std::string>() + " (number " +
                     group.at("number").dump() + ")\n";
  text += "key      " + group.at("key").get<std::string>() + "\n";
  text += "made for " + group.at("made_for").get<std::string>() + "\n";
  if (!regionOf(group).empty())
    text += "region   " + regionOf(group) + ": launched at once with its other groups\n";
  std::string knobs = settingsText(group.at("knobs"));
  text += "choice   " +
          (cardOf(group) == "-" ? "no card: its mechanism with numbers of its own"
                                : "card " + cardOf(group)) +
          (knobs.empty() ? "" : ", " + knobs) + "\n";
  text += versionsText(group) + precisionText(group) + costText(explanation, group);
  if (const Json &why = group.at("why_precision"); why.is_string())
    text += "factors  " + std::string(group.at("precision").is_string() ? "bf16: " : "f32: ") +
            why.get<std::string>() + "\n";
  if (group.at("is_fallback"))
    text += "note     its schedule could not be carried out; it runs element by element\n";
  text += deviceText(group.at("device")) + opsText(group) + offersText(group) +
          trafficText(explanation, group) + memoryText(explanation, group);
  if (group.contains("launched_with"))
    text += "time     in that of group " + group.at("launched_with").dump() + "\n";
  if (group.contains("seconds"))
    text += "time     " + formatSeconds(group.at("seconds")) +
            launchedTogether(explanation, group) + "\n";
  if (group.contains("of_bound"))
    text += "speed    " + formatNumber(group.at("flops_per_second").get<double>() / 1e9) +
            " GFLOP/s, " + formatNumber(group.at("bytes_per_second").get<double>() / 1e9) +
            " GB/s: " + formatNumber(100 * group.at("of_bound").get<double>(), 3) +
            " % of what the machine allows\n";
  return text;
}

} // namespace heddle::cli
