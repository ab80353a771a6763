// Schedules: see Schedules.h.

#include "compiler/mechanism/Schedules.h"

#include "compiler/mechanism/Mechanism.h"
#include "compiler/mechanism/Versions.h"

using namespace mlir;

namespace heddle::mechanism {
namespace {

/// The schedule of one group.
struct Reader {
  graph::GroupOp group;
  StringAttr key = group.getMechanismAttrName();
  const Mechanism *mechanism = nullptr;

  InFlightDiagnostic refuse(StringRef label) const {
    return graph::GroupOp(group).emitOpError() << label << ": ";
  }

  LogicalResult read(DictionaryAttr schedule) {
    mechanism = chosenFor(group);
    return mechanism ? readFields(schedule, /*isVersion=*/false)
                     : refuseName(group.chosenMechanism());
  }

  LogicalResult refuseName(StringRef name) const {
    auto names = llvm::map_range(all(), [](const Mechanism *each) { return each->name; });
    return refuse("SK1") << "there is no mechanism '" << name
                         << "'; known: " << llvm::join(names, ", ");
  }

private:
  bool isKernel() const { return mechanism->type == CardType::Kernel; }

  LogicalResult readFields(DictionaryAttr schedule, bool isVersion) const {
    for (NamedAttribute field : schedule)
      if (failed(readField(field, isVersion)))
        return failure();
    return success();
  }

  LogicalResult readField(NamedAttribute field, bool isVersion) const {
    StringRef name = field.getName();
    if (name == key || (isVersion && name == kWhen))
      return success();
    if (name == kVersions && !isVersion)
      return readVersions(field.getValue());
    if (name == kPrecision && isVersion) {
      auto text = dyn_cast<StringAttr>(field.getValue());
      return text && (text == graph::GroupOp::kExact || text == graph::GroupOp::kShort)
                 ? success()
                 : LogicalResult(refuse("SK4")
                                 << "a version's precision is \"f32\" or \"bf16\", but "
                                    "this is "
                                 << field.getValue());
    }
    if (isKernel() && (name == "source" || name == "code"))
      return isa<StringAttr>(field.getValue())
                 ? success()
                 : LogicalResult(refuse("SK2") << "'" << name << "' of a kernel is text, but is "
                                               << field.getValue());
    auto knobs = mechanism->allKnobs();
    if (!isKernel() && !llvm::is_contained(knobs, name)) {
      std::string known = knobs.empty() ? "none" : llvm::join(knobs, ", ");
      return refuse("SK2") << "mechanism '" << mechanism->name << "' has no knob '" << name
                           << "'; its knobs: " << known;
    }
    auto number = dyn_cast<IntegerAttr>(field.getValue());
    bool isNumber = number && number.getType().isSignlessInteger(64);
    int64_t most = mostOf(name);
    if (isNumber && (isKernel() || (number.getInt() >= 1 && number.getInt() <= most)))
      return success();
    if (isKernel())
      return refuse("SK3") << "knob '" << name << "' must be an i64, but is " << field.getValue();
    return refuse("SK3") << "knob '" << name << "' must be an i64 from 1 to " << most << ", but is "
                         << field.getValue() << "; leave it out, and lower finds a number";
  }

  LogicalResult readVersions(Attribute versions) const {
    auto list = dyn_cast<ArrayAttr>(versions);
    if (!list)
      return refuse("SK4") << "'versions' must be a list of schedules, but is " << versions;
    for (Attribute version : list) {
      auto schedule = dyn_cast<DictionaryAttr>(version);
      auto named = schedule ? schedule.getAs<StringAttr>(key) : StringAttr();
      if (!named || named.getValue() != mechanism->name)
        return refuse("SK4") << "a version must be a schedule of '" << mechanism->name
                             << "', as the group's, but is " << version;
      auto bounds = schedule.getAs<DictionaryAttr>(kWhen);
      if (!bounds || !llvm::all_of(bounds, isBound))
        return refuse("SK4") << "a version says under 'when' what sizes are at most, such as "
                                "{batch = 4 : i64}, but this is "
                             << version;
      if (failed(readFields(schedule, /*isVersion=*/true)))
        return failure();
    }
    return success();
  }

  static bool isBound(NamedAttribute bound) {
    auto number = dyn_cast<IntegerAttr>(bound.getValue());
    return number && number.getType().isSignlessInteger(64) &&
           graph::Dim::parse(bound.getName().strref()).has_value();
  }
};
} // namespace

int64_t mostOf(StringRef knob) {
  return knob == "m" || knob == "n" ? 256 : std::numeric_limits<int32_t>::max();
}

LogicalResult verifySchedules(Operation *root) {
  bool isValid = true;
  root->walk([&](graph::GroupOp group) {
    Reader reader{group};
    if (auto name = group.getMechanism(); name && !of(group))
      isValid &= succeeded(reader.refuseName(*name));
    if (DictionaryAttr schedule = group.getScheduleAttr())
      isValid &= succeeded(reader.read(schedule));
  });
  return success(isValid);
}

} // namespace heddle::mechanism
