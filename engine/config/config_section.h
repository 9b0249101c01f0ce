#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/ds_config.h"
#include "engine/config/json_value.h"
#include "zeroproof/model/dtype.h"

namespace zeroproof {

// A value that cannot be used; parse_ds_config turns it into a Result.
struct RejectedValue {
  std::string pointer;
  std::string text;
};

struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t greatest = INT64_MAX;
};

struct NumberRange {
  double least = 0.0;
  double greatest = 1.7976931348623157e308;
};

// One object of the document. What is missing or "auto" leaves the default; what has the wrong
// type or lies out of range throws RejectedValue. A note is left of what is "auto", and of what is
// converted. `document` and `notes` must outlive it.
class ConfigSection {
 public:
  ConfigSection(const JsonValue& document, std::vector<ConfigNote>& notes)
      : object_(&document), notes_(&notes) {}

  // The object `name` in this one; empty when it is missing or null.
  ConfigSection below(std::string_view name) const;

  const JsonValue* find(std::string_view name) const;  // null when missing or "auto"
  bool is_auto(std::string_view name) const;
  bool has(std::string_view name) const { return object_->find(name) != nullptr; }
  const std::vector<std::string>& names() const { return object_->names; }
  std::string pointer(std::string_view name) const { return json_pointer(pointer_, name); }
  // Once for each key.
  void note(ConfigNoteKind kind, std::string_view name, std::string text) const;
  // Does no more than return unless `name` is "auto".
  void note_auto(std::string_view name, std::string_view became) const;
  [[noreturn]] void reject(std::string_view name, std::string text) const;

  void read(std::string_view name, bool& value) const;
  void read(std::string_view name, std::optional<bool>& value) const;  // may be null
  void read(std::string_view name, std::int64_t& value, IntegerRange range = {}) const;
  void read(std::string_view name, double& value, NumberRange range = {}) const;
  // A list of names, or one.
  void read(std::string_view name, std::vector<std::string>& value) const;
  // "fp16", "float16", "half", "torch.float16" and the like; may be null.
  void read(std::string_view name, std::optional<DType>& value) const;
  std::optional<std::string> text(std::string_view name) const;

 private:
  [[noreturn]] void reject_type(std::string_view name, const JsonValue& value,
                                std::string_view wanted) const;

  // Whether DeepSpeed checks the types of this object by pydantic, which converts texts.
  bool is_converted() const;
  void note_conversion(std::string_view name, const JsonValue& value, std::string_view taken) const;

  const JsonValue* object_;
  std::vector<ConfigNote>* notes_;
  std::string pointer_;
};

}  // namespace zeroproof
