#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "engine/config/config_keys.h"
#include "model/nearest_name.h"

namespace zeroproof {
namespace {

constexpr std::string_view kOptimizerParams = "/optimizer/params";

// DeepSpeed reads these objects key by key, and does not look for others. The rest it checks.
constexpr std::string_view kUnchecked[] = {"", "/optimizer", "/data_types", "/torch_autocast",
                                           "/pipeline"};

// Blocks that DeepSpeed takes for missing where they are null; it raises for any other.
constexpr std::string_view kNullable[] = {"/bf16", "/optimizer/params",
                                          "/zero_optimization/offload_optimizer",
                                          "/zero_optimization/offload_param"};

bool is_unchecked(std::string_view section) {
  return std::ranges::find(kUnchecked, section) != std::end(kUnchecked);
}

// Whether any "enabled" in or below an object says so; none where there is no such key.
std::optional<bool> enabled_below(const JsonValue& value) {
  std::optional<bool> found;
  for (std::size_t at = 0; at < value.values.size(); ++at) {
    const JsonValue& member = value.values[at];
    const bool is_switch = value.kind == JsonKind::object && value.names[at] == "enabled";
    const std::optional<bool> here =
        is_switch ? std::optional(member.boolean) : enabled_below(member);
    if (here) found = found.value_or(false) || *here;
  }
  return found;
}

double number_of(std::string_view text) {
  double value = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Whether a feature that is not modelled is asked for.
bool is_on(const JsonValue& value, const ConfigKey& key) {
  switch (value.kind) {
    case JsonKind::null:
      return false;
    case JsonKind::boolean:
      return value.boolean;
    case JsonKind::number:
      return value.number > number_of(key.off);
    case JsonKind::text:
      return value.text != key.off && value.text != "auto" && value.text != "none";
    case JsonKind::list:
    case JsonKind::object:
      break;
  }
  return enabled_below(value).value_or(!value.values.empty());
}

class KeyCheck {
 public:
  KeyCheck(std::string_view optimizer, const std::string& source, UnknownKeys unknown,
           const KeyFindings& findings)
      : optimizer_params_(fmt::format("{} ({})", kOptimizerParams, optimizer)),
        source_(source),
        unknown_(unknown),
        findings_(findings) {}

  Result<void> check(const JsonValue& object, const std::string& pointer) {
    const std::string_view section = section_of(pointer);
    for (std::size_t at = 0; at < object.names.size(); ++at) {
      const std::string& name = object.names[at];
      const std::string here = json_pointer(pointer, name);
      const ConfigKey* const key = find(section, name);
      auto done =
          key ? check_key(*key, object.values[at], here) : check_unknown(section, name, here);
      if (!done) return done;
    }
    return {};
  }

 private:
  Result<void> check_key(const ConfigKey& key, const JsonValue& value, const std::string& pointer) {
    if (key.use == KeyUse::modelled) return {};
    if (key.use == KeyUse::block) return check_block(value, pointer);
    if (key.use == KeyUse::refused && is_on(value, key)) {
      return wrong(pointer, fmt::format("is {}; {}", value.described(), key.note));
    }
    if (key.use == KeyUse::removed) {
      return wrong(pointer,
                   fmt::format("{}; DeepSpeed 0.19.8 has removed this and raises even where "
                               "it is off: delete the key",
                               key.note));
    }
    findings_.ignored.push_back(pointer);
    return {};
  }

  Result<void> check_unknown(std::string_view section, std::string_view name,
                             const std::string& pointer) {
    const std::string nearest = nearest_of(section, name);
    if (unknown_ == UnknownKeys::note && is_unchecked(section)) {
      findings_.notes.push_back({ConfigNoteKind::unknown, pointer, nearest});
      return {};
    }
    return wrong(pointer, fmt::format("unknown key; {}",
                                      nearest.empty() ? "docs/reference/config.md lists all keys"
                                                      : nearest));
  }

  Result<void> check_block(const JsonValue& value, const std::string& pointer) {
    if (value.kind == JsonKind::object) return check(value, pointer);
    const bool may_be_switch = pointer == "/zero_optimization" && value.kind == JsonKind::boolean;
    const bool may_be_null = std::ranges::find(kNullable, pointer) != std::end(kNullable);
    if (may_be_switch || (may_be_null && value.kind == JsonKind::null)) return {};
    return wrong(pointer, fmt::format("is {}; give an object", value.described()));
  }

  std::string_view section_of(std::string_view pointer) const {
    if (pointer == kOptimizerParams) return optimizer_params_;
    return pointer == "/bfloat16" ? "/bf16" : pointer;
  }

  static const ConfigKey* find(std::string_view section, std::string_view name) {
    for (const ConfigKey& key : config_keys()) {
      if (key.section == section && key.name == name) return &key;
    }
    return nullptr;
  }

  // "did you mean 'stage'?", or empty where no key is near.
  static std::string nearest_of(std::string_view section, std::string_view name) {
    std::vector<std::string_view> known;
    for (const ConfigKey& key : config_keys()) {
      if (key.section == section) known.push_back(key.name);
    }
    std::string nearest = did_you_mean(name, known);
    return nearest.starts_with("did you mean") ? nearest : std::string();
  }

  Result<void> wrong(const std::string& pointer, std::string_view what) {
    return fail(ErrorCode::usage, fmt::format("{}: {}: {}", source_, pointer, what));
  }

  std::string optimizer_params_;
  const std::string& source_;
  UnknownKeys unknown_;
  const KeyFindings& findings_;
};

}  // namespace

Result<void> check_config_keys(const JsonValue& document, std::string_view optimizer,
                               const std::string& source, UnknownKeys unknown,
                               const KeyFindings& findings) {
  return KeyCheck(optimizer, source, unknown, findings).check(document, "");
}

}  // namespace zeroproof
