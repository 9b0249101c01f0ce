#include "engine/config/config_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/config/converted_value.h"
#include "model/one_line.h"

namespace zeroproof {
namespace {

const JsonValue& empty_object() {
  static const JsonValue kEmpty = {.kind = JsonKind::object};
  return kEmpty;
}

constexpr std::pair<std::string_view, DType> kDTypes[] = {
    {"fp32", DType::float32},  {"float32", DType::float32},   {"float", DType::float32},
    {"fp16", DType::float16},  {"float16", DType::float16},   {"half", DType::float16},
    {"bf16", DType::bfloat16}, {"bfloat16", DType::bfloat16},
};

std::optional<DType> dtype_by_name(std::string_view name) {
  constexpr std::string_view kPrefix = "torch.";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  for (const auto& [known, dtype] : kDTypes) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

std::string range_text(IntegerRange range) {
  if (range.greatest == INT64_MAX) return fmt::format("at least {}", range.least);
  return fmt::format("{} to {}", range.least, range.greatest);
}

std::string range_text(NumberRange range) {
  if (range.greatest == NumberRange{}.greatest) return fmt::format("at least {}", range.least);
  return fmt::format("{} to {}", range.least, range.greatest);
}

}  // namespace

ConfigSection ConfigSection::below(std::string_view name) const {
  const JsonValue* const value = object_->find(name);
  ConfigSection section(value && value->kind == JsonKind::object ? *value : empty_object(),
                        *notes_);
  section.pointer_ = pointer(name);
  return section;
}

bool ConfigSection::is_auto(std::string_view name) const {
  const JsonValue* const value = object_->find(name);
  return value && value->kind == JsonKind::text && value->text == "auto";
}

const JsonValue* ConfigSection::find(std::string_view name) const {
  return is_auto(name) ? nullptr : object_->find(name);
}

void ConfigSection::note(ConfigNoteKind kind, std::string_view name, std::string text) const {
  ConfigNote added{kind, pointer(name), one_line(std::move(text))};
  const auto is_same = [&](const ConfigNote& known) { return known == added; };
  if (std::ranges::none_of(*notes_, is_same)) notes_->push_back(std::move(added));
}

void ConfigSection::note_auto(std::string_view name, std::string_view became) const {
  if (is_auto(name)) note(ConfigNoteKind::automatic, name, std::string(became));
}

bool ConfigSection::is_converted() const {
  constexpr std::string_view kBlocks[] = {"/zero_optimization", "/fp16", "/bf16", "/bfloat16"};
  const auto begins = [&](std::string_view block) { return pointer_.starts_with(block); };
  return std::ranges::any_of(kBlocks, begins);
}

void ConfigSection::note_conversion(std::string_view name, const JsonValue& value,
                                    std::string_view taken) const {
  note(ConfigNoteKind::converted, name, fmt::format("{} taken as {}", value.described(), taken));
}

void ConfigSection::reject(std::string_view name, std::string text) const {
  throw RejectedValue{pointer(name), one_line(std::move(text))};
}

void ConfigSection::reject_type(std::string_view name, const JsonValue& value,
                                std::string_view wanted) const {
  reject(name, fmt::format("is {}; give {}", value.described(), wanted));
}

void ConfigSection::read(std::string_view name, bool& value) const {
  note_auto(name, value ? "true" : "false");
  const JsonValue* const found = find(name);
  if (found == nullptr) return;
  const bool is_given = found->kind == JsonKind::boolean;
  const bool is_read = is_converted() || found->kind == JsonKind::number;
  const std::optional<bool> taken = is_given  ? found->boolean
                                    : is_read ? converted_switch(*found)
                                              : std::nullopt;
  if (!taken) reject_type(name, *found, "true or false");
  if (!is_given) note_conversion(name, *found, *taken ? "true" : "false");
  value = *taken;
}

void ConfigSection::read(std::string_view name, std::optional<bool>& value) const {
  note_auto(name, "the default of its stage");
  const JsonValue* const found = find(name);
  if (found == nullptr || found->kind == JsonKind::null) return;
  bool given = false;
  read(name, given);
  value = given;
}

void ConfigSection::read(std::string_view name, std::int64_t& value, IntegerRange range) const {
  note_auto(name, fmt::format("{}", value));
  const JsonValue* const found = find(name);
  if (found == nullptr) return;
  const bool is_given = found->kind == JsonKind::number;
  const std::optional<std::int64_t> taken = is_given         ? found->integer
                                            : is_converted() ? converted_integer(*found)
                                                             : std::nullopt;
  if (!taken || *taken < range.least || *taken > range.greatest) {
    reject_type(name, *found, fmt::format("a whole number, {}", range_text(range)));
  }
  if (!is_given) note_conversion(name, *found, fmt::format("{}", *taken));
  value = *taken;
}

void ConfigSection::read(std::string_view name, double& value, NumberRange range) const {
  note_auto(name, fmt::format("{}", value));
  const JsonValue* const found = find(name);
  if (found == nullptr) return;
  const bool is_given = found->kind == JsonKind::number;
  const std::optional<double> taken = is_given         ? found->number
                                      : is_converted() ? converted_number(*found)
                                                       : std::nullopt;
  if (!taken || *taken < range.least || *taken > range.greatest) {
    reject_type(name, *found, fmt::format("a finite number, {}", range_text(range)));
  }
  if (!is_given) note_conversion(name, *found, fmt::format("{}", *taken));
  value = *taken;
}

void ConfigSection::read(std::string_view name, std::vector<std::string>& value) const {
  note_auto(name, "none");
  const JsonValue* const found = find(name);
  if (found == nullptr) return;
  if (found->kind == JsonKind::text) {
    value = {found->text};
    return;
  }
  if (found->kind != JsonKind::list) reject_type(name, *found, "a list of names");
  std::vector<std::string> names;
  for (const JsonValue& item : found->values) {
    if (item.kind != JsonKind::text) {
      throw RejectedValue{fmt::format("{}/{}", pointer(name), names.size()),
                          fmt::format("is {}; give a name", item.described())};
    }
    names.push_back(item.text);
  }
  value = std::move(names);
}

void ConfigSection::read(std::string_view name, std::optional<DType>& value) const {
  note_auto(name, "the dtype of the model");
  const JsonValue* const found = find(name);
  if (found == nullptr || found->kind == JsonKind::null) return;
  const auto dtype = found->kind == JsonKind::text ? dtype_by_name(found->text) : std::nullopt;
  if (!dtype) reject_type(name, *found, "fp16, bf16 or fp32");
  value = dtype;
}

std::optional<std::string> ConfigSection::text(std::string_view name) const {
  note_auto(name, "the default");
  const JsonValue* const found = find(name);
  if (found == nullptr || found->kind == JsonKind::null) return std::nullopt;
  if (found->kind != JsonKind::text) reject_type(name, *found, "a name");
  return found->text;
}

}  // namespace zeroproof
