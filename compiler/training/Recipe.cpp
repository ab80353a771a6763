// Recipe: fields are taken one by one, and all that is wrong is told at once.

#include "compiler/training/Recipe.h"

#include "compiler/support/Error.h"
#include "compiler/support/Json.h"
#include "compiler/support/Suggest.h"
#include "compiler/training/Losses.h"
#include "compiler/training/Optimizers.h"

#include "llvm/Support/GlobPattern.h"

#include <cmath>

using llvm::StringRef;
using llvm::Twine;

namespace heddle::training {

namespace {
class RecipeReader {
public:
  llvm::Expected<Recipe> read(StringRef text) {
    Json json = parseJson(text.str());
    if (!json.is_object())
      return makeError(ErrorCode::Usage, "error: the training recipe is no JSON object");
    checkFields(json, "there is no field", {"phase",
                                            "loss",
                                            "output",
                                            "labels",
                                            "class_axis",
                                            "ignore_index",
                                            "label_smoothing",
                                            "delta",
                                            "optimizer",
                                            "trainable",
                                            "frozen",
                                            "groups",
                                            "clip_norm",
                                            "clip_value",
                                            "accumulate",
                                            "batch_norm",
                                            "running_variance",
                                            "dropout",
                                            "activations",
                                            "variables"});
    readPhase(json);
    readLoss(json);
    readOptimizer(json);
    take(json, "trainable", recipe.trainable, "a list of names or patterns such as '*.weight'");
    take(json, "frozen", recipe.frozen, "a list of names or patterns such as 'encoder.*'");
    readGroups(json);
    takeNumber(json, "clip_norm", recipe.clipNorm, {0, kLargest});
    takeNumber(json, "clip_value", recipe.clipValue, {0, kLargest});
    takeInteger(json, "accumulate", recipe.accumulate);
    if (recipe.accumulate < 1)
      complain("'accumulate' is " + Twine(recipe.accumulate) + ", but must be at least 1");
    recipe.usesBatchStatistics = !takesSecond(json, "batch_norm", "batch", "running");
    recipe.keepsUnbiased = takesSecond(json, "running_variance", "biased", "unbiased");
    take(json, "dropout", recipe.drops, "true or false");
    recipe.narrowsActivations = takesSecond(json, "activations", "f32", "bf16");
    take(json, "variables", recipe.variables, "a list of names");
    if (recipe.phase == Phase::Derivative && recipe.variables.empty())
      complain("'variables' must name what is differentiated with respect to");
    if (!problems.empty())
      return makeError(ErrorCode::Usage, llvm::join(problems, "\n"));
    return std::move(recipe);
  }

private:
  void complain(const Twine &what) { problems.push_back(("error: recipe: " + what).str()); }

  void checkFields(const Json &json, const Twine &where, llvm::ArrayRef<StringRef> known) {
    for (auto &[name, value] : json.items())
      if (!llvm::is_contained(known, StringRef(name)))
        unknown(where, name, known);
  }
  void unknown(const Twine &what, StringRef name, llvm::ArrayRef<StringRef> known) {
    std::string near = support::nearest(name, known);
    complain(what + " '" + name + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
             "; there are: " + llvm::join(known, ", "));
  }

  template <typename T> void take(const Json &json, const char *name, T &value, const char *form) {
    if (!json.contains(name))
      return;
    try {
      value = json[name].get<T>();
    } catch (const Json::exception &) {
      complain("'" + Twine(name) + "' must be " + form);
    }
  }
  void takeInteger(const Json &json, const char *name, int64_t &value) {
    if (!json.contains(name))
      return;
    const Json &given = json[name];
    if (!given.is_number_integer() ||
        (given.is_number_unsigned() && given.get<uint64_t>() > uint64_t(INT64_MAX)))
      return complain("'" + Twine(name) + "' is " + given.dump() + ", but must be an integer");
    value = given.get<int64_t>();
  }
  void takeNumber(const Json &json, const char *name, double &value, Range range) {
    take(json, name, value, "a number");
    if (!range.contains(value))
      complain("'" + Twine(name) + "' is " + json[name].dump() + ", but must be " + range.text());
  }
  /// Whether a field of two choices has the second one, and not the first, its default.
  bool takesSecond(const Json &json, const char *name, StringRef first, StringRef second) {
    std::string value = first.str(), form = ("'" + first + "' or '" + second + "'").str();
    take(json, name, value, form.c_str());
    if (value != first && value != second)
      complain("'" + Twine(name) + "' is '" + value + "', but must be " + form);
    return value == second;
  }

  void readPhase(const Json &json) {
    static const std::pair<StringRef, Phase> kPhases[] = {
        {"step", Phase::Step},       {"gradients", Phase::Gradients},
        {"update", Phase::Update},   {"evaluate", Phase::Evaluate},
        {"predict", Phase::Predict}, {"derivative", Phase::Derivative}};
    std::string name = "step";
    take(json, "phase", name, "a string");
    llvm::SmallVector<StringRef> known;
    for (auto &[text, phase] : kPhases) {
      known.push_back(text);
      if (text == name)
        recipe.phase = phase;
    }
    if (!llvm::is_contained(known, StringRef(name)))
      unknown("there is no phase", name, known);
  }

  void readLoss(const Json &json) {
    take(json, "loss", recipe.loss, "a string");
    if (!llvm::is_contained(lossNames(), StringRef(recipe.loss)))
      unknown("there is no loss", recipe.loss, lossNames());
    take(json, "output", recipe.output, "a string");
    take(json, "labels", recipe.labels, "a string");
    takeInteger(json, "class_axis", recipe.classAxis);
    if (json.contains("ignore_index")) {
      recipe.ignoreIndex = 0;
      takeInteger(json, "ignore_index", *recipe.ignoreIndex);
    }
    takeNumber(json, "label_smoothing", recipe.labelSmoothing, {0, 1});
    takeNumber(json, "delta", recipe.delta, kPositive);
  }

  /// "adam", or {"name": "adam", "beta1": 0.9}.
  void readOptimizer(const Json &json) {
    Json given = json.value("optimizer", Json("sgd"));
    if (given.is_string())
      given = {{"name", given}};
    if (!given.is_object() || !given.contains("name") || !given["name"].is_string()) {
      complain("'optimizer' must be a name, or an object with one and its settings: "
               "{\"name\": \"adam\", \"beta1\": 0.9}");
      return;
    }
    recipe.optimizer = given["name"];
    const Optimizer *optimizer = findOptimizer(recipe.optimizer);
    if (!optimizer) {
      unknown("there is no optimizer", recipe.optimizer, optimizerNames());
      return;
    }
    llvm::SmallVector<StringRef> known = {"name"};
    for (const Setting &setting : optimizer->settings) {
      known.push_back(setting.name);
      double &value = recipe.settings[setting.name.str()];
      value = setting.otherwise;
      takeNumber(given, setting.name.data(), value, setting.range);
    }
    if (recipe.optimizer == "momentum") {
      known.push_back("nesterov");
      take(given, "nesterov", recipe.isNesterov, "true or false");
    }
    checkFields(given, "optimizer '" + recipe.optimizer + "' has no setting", known);
  }

  void readGroups(const Json &json) {
    Json groups = json.value("groups", Json::array());
    if (!groups.is_array()) {
      complain("'groups' must be a list of {\"match\": [\"*.bias\"], \"weight_decay\": 0}");
      return;
    }
    for (const Json &each : groups) {
      if (!each.is_object() || !each.contains("match")) {
        complain("each of 'groups' must be {\"match\": [\"*.bias\"], \"weight_decay\": 0}");
        continue;
      }
      checkFields(each, "a group has no field", {"match", "weight_decay", "learning_rate"});
      Group group;
      take(each, "match", group.match, "a list of names or patterns");
      takeNumber(each, "learning_rate", group.rate, {0, kLargest});
      if (each.contains("weight_decay")) {
        group.weightDecay = 0;
        takeNumber(each, "weight_decay", *group.weightDecay, {0, kLargest});
      }
      recipe.groups.push_back(std::move(group));
    }
  }

  Recipe recipe;
  std::vector<std::string> problems;
};
} // namespace

std::string Range::text() const {
  auto shown = [](double x) { return Json(x).dump(); };
  if (isBelow)
    return "at least " + shown(least) + " and less than " + shown(most);
  return "from " + shown(least) + " to " + shown(most);
}

llvm::Expected<Recipe> readRecipe(StringRef json) { return RecipeReader().read(json); }

bool matches(StringRef name, const std::vector<std::string> &patterns) {
  return llvm::any_of(patterns, [&](const std::string &text) {
    auto pattern = llvm::GlobPattern::create(text);
    if (!pattern)
      llvm::consumeError(pattern.takeError());
    return name == text || (pattern && pattern->match(name));
  });
}

} // namespace heddle::training
