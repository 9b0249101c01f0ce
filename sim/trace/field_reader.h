#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/json_line.h"
#include "sim/trace/parse_result.h"

namespace zeroproof {

// Reads the members of one object of a line by name and remembers the first thing that is wrong.
// For records other than events, which are few.
class FieldReader {
 public:
  // `what` starts every message: "header", "graph node". `values` must outlive the reader.
  FieldReader(std::string_view what, std::span<const JsonLineValue> values, std::size_t object)
      : what_(what), values_(values), object_(object) {}

  // A required member; absent and null are errors.
  template <class T>
  FieldReader& need(std::string_view key, T& out) {
    const std::size_t at = find(key);
    if (at == 0 || values_[at].kind == JsonLineKind::null) {
      lacks(key);
    } else if (!assign(at, out)) {
      wrong(key, at);
    }
    return *this;
  }

  // An optional member; `out` stays as it is when absent or null.
  template <class T>
  FieldReader& want(std::string_view key, T& out) {
    const std::size_t at = find(key);
    if (at != 0 && values_[at].kind != JsonLineKind::null && !assign(at, out)) wrong(key, at);
    return *this;
  }

  // Index of the member, 0 when there is none.
  std::size_t find(std::string_view key) const;
  void lacks(std::string_view key);
  void wrong(std::string_view key, std::size_t at);
  void fail_with(std::string text);
  ParseResult result() const;

 private:
  bool assign(std::size_t at, std::string& out) const;
  bool assign(std::size_t at, bool& out) const;
  bool assign(std::size_t at, double& out) const;

  template <std::integral Int>
  bool assign(std::size_t at, Int& out) const {
    const std::int64_t value = values_[at].integer;
    if (values_[at].kind != JsonLineKind::integer || !std::in_range<Int>(value)) return false;
    out = static_cast<Int>(value);
    return true;
  }

  template <class T>
  bool assign(std::size_t at, std::optional<T>& out) const {
    if (values_[at].kind == JsonLineKind::null) {
      out.reset();
      return true;
    }
    return assign(at, out.emplace());
  }

  template <class T>
  bool assign(std::size_t at, std::vector<T>& out) const {
    if (values_[at].kind != JsonLineKind::array) return false;
    out.clear();
    for (std::size_t i = at + 1; i < values_[at].end; i = values_[i].end) {
      if (!assign(i, out.emplace_back())) return false;
    }
    return true;
  }

  std::string_view what_;
  std::span<const JsonLineValue> values_;
  std::size_t object_;
  std::optional<std::string> error_;
};

}  // namespace zeroproof
