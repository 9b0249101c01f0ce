#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/trace/json_text.h"

namespace zeroproof {

inline void append_json(std::string_view value, std::string& out) {
  append_json_string(value, out);
}
inline void append_json(bool value, std::string& out) {
  out += value ? "true" : "false";
}

template <class Int>
requires std::is_integral_v<Int> &&
    (!std::is_same_v<Int, bool>)void append_json(Int value, std::string& out) {
  out += std::to_string(value);
}

template <class T>
void append_json(const std::vector<T>& values, std::string& out) {
  out += '[';
  bool is_first = true;
  for (const T& value : values) {
    if (!is_first) out += ',';
    is_first = false;
    append_json(value, out);
  }
  out += ']';
}

// Writes the members of one JSON object in the order of the calls.
class JsonObject {
 public:
  explicit JsonObject(std::string& out) : out_(out) { out_ += '{'; }

  template <class T>
  JsonObject& set(std::string_view name, const T& value) {
    append_json(value, key(name));
    return *this;
  }

  // No effect for an empty string or list, which stands for an absent member.
  template <class T>
  JsonObject& set_unless_empty(std::string_view name, const T& value) {
    return value.empty() ? *this : set(name, value);
  }

  // The key; the caller appends the value.
  std::string& key(std::string_view name) {
    if (has_members_) out_ += ',';
    has_members_ = true;
    append_json_string(name, out_);
    out_ += ':';
    return out_;
  }

  void close() { out_ += '}'; }

 private:
  std::string& out_;
  bool has_members_ = false;
};

}  // namespace zeroproof
