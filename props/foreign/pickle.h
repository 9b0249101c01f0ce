#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace zeroproof {

enum class PickleKind : std::uint8_t { none, boolean, integer, number, text, list, dict };

// One value of a pickle, small because there are many; see PickleDocument for what it holds.
struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::uint8_t capacity_log2 = 0;  // of items
  std::uint32_t size = 0;          // bytes of a text, items of a list or dict
  std::uint64_t payload = 0;       // bits of a number, or where the text or the items begin
};
static_assert(sizeof(PickleValue) == 16);

// A pickle that only holds data. Values may share others and may even contain themselves: walk with
// a bound.
struct PickleDocument {
  std::string_view bytes;
  std::vector<PickleValue> values;
  std::vector<std::uint32_t> pool;  // items of all values
  std::uint32_t root = 0;

  static std::int64_t integer(const PickleValue& of) {  // also a boolean
    return static_cast<std::int64_t>(of.payload);
  }
  static double number(const PickleValue& of) { return std::bit_cast<double>(of.payload); }
  std::string_view text(const PickleValue& of) const {  // empty for any other kind
    return of.kind == PickleKind::text ? bytes.substr(of.payload, of.size) : std::string_view();
  }
  // Indices into values. A tuple is a list; the items of a dict are key, value, key, value.
  std::span<const std::uint32_t> items(const PickleValue& of) const {
    const bool has_items = of.kind == PickleKind::list || of.kind == PickleKind::dict;
    return std::span(pool).subspan(has_items ? of.payload : 0, has_items ? of.size : 0);
  }
};

// Reads a pickle of protocol 2 to 5 made of None, booleans, integers of 64 bits, floats, strings,
// lists, tuples and dicts. Does not execute or import: any other opcode, above all those that
// name or call Python objects, is an error that names it and its offset. One sentence without a
// file name. The document refers to `bytes`. Takes at most 64 bytes of memory for each of them, and
// at most 1.2 GB.
tl::expected<PickleDocument, std::string> read_pickle(std::string_view bytes);

// True for the first bytes of a pickle of protocol 2 or later.
bool starts_like_pickle(std::string_view bytes);

}  // namespace zeroproof
