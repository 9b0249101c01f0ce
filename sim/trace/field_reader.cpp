#include "sim/trace/field_reader.h"

#include <fmt/format.h>

#include <cmath>

namespace zeroproof {

std::size_t FieldReader::find(std::string_view key) const {
  for (std::size_t i = object_ + 1; i < values_[object_].end; i = values_[i].end) {
    if (values_[i].key == key) return i;
  }
  return 0;
}

void FieldReader::lacks(std::string_view key) {
  fail_with(fmt::format("{} lacks \"{}\"; correct the producer", what_, key));
}

void FieldReader::wrong(std::string_view key, std::size_t at) {
  fail_with(fmt::format("{}: \"{}\" is {}, which has the wrong type or range; correct the producer",
                        what_, key, describe(values_[at])));
}

void FieldReader::fail_with(std::string text) {
  if (!error_) error_ = std::move(text);
}

ParseResult FieldReader::result() const {
  if (error_) return tl::unexpected(*error_);
  return {};
}

bool FieldReader::assign(std::size_t at, std::string& out) const {
  out = values_[at].text;
  return values_[at].kind == JsonLineKind::string;
}

bool FieldReader::assign(std::size_t at, bool& out) const {
  out = values_[at].boolean;
  return values_[at].kind == JsonLineKind::boolean;
}

// Section 8 of the format: what JSON has no number for is a string; a bool tensor is 0 and 1.
bool FieldReader::assign(std::size_t at, double& out) const {
  const JsonLineValue& value = values_[at];
  switch (value.kind) {
    case JsonLineKind::integer:
    case JsonLineKind::number:
      out = value.number;
      return std::isfinite(out);
    case JsonLineKind::boolean:
      out = value.boolean ? 1.0 : 0.0;
      return true;
    case JsonLineKind::string:
      if (value.text == "nan") out = std::numeric_limits<double>::quiet_NaN();
      if (value.text == "inf") out = std::numeric_limits<double>::infinity();
      if (value.text == "-inf") out = -std::numeric_limits<double>::infinity();
      return value.text == "nan" || value.text == "inf" || value.text == "-inf";
    default:
      return false;
  }
}

}  // namespace zeroproof
