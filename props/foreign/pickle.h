#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace zeroproof {

enum class PickleKind : std::uint8_t { none, boolean, integer, number, text, list, dict };

// One value of a pickle. A tuple is a list; the items of a dict are key, value, key, value.
struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::int64_t integer = 0;  // also a boolean
  double number = 0;
  std::string_view text;             // into the bytes
  std::vector<std::uint32_t> items;  // indices into PickleDocument::values
};

// A pickle that only holds data. Values may share others and may even contain themselves: walk with
// a bound.
struct PickleDocument {
  std::vector<PickleValue> values;
  std::uint32_t root = 0;
};

// Reads a pickle of protocol 2 to 5 made of None, booleans, integers of 64 bits, floats, strings,
// lists, tuples and dicts. Nothing is executed or imported: any other opcode, above all those that
// name or call Python objects, is an error that names it and its offset. One sentence without a
// file name. The document refers to `bytes`. Memory is bounded by a small multiple of `bytes`.
tl::expected<PickleDocument, std::string> read_pickle(std::string_view bytes);

// True for the first bytes of a pickle of protocol 2 or later.
bool starts_like_pickle(std::string_view bytes);

}  // namespace zeroproof
