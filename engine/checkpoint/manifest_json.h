#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "engine/checkpoint/manifest.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// What the files of JSON in a checkpoint have in common.

// Found by the readers below; becomes an error that names the file.
class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The largest that a double holds exactly: sums of a few are no overflow.
inline constexpr std::int64_t kLargestNumber = std::int64_t{1} << 53;

// A whole number from `least` on.
std::int64_t read_number(const nlohmann::json& value, std::int64_t least = 0);
std::string read_name(const nlohmann::json& value);
Shape read_shape(const nlohmann::json& value);
FileRecord read_file_record(const nlohmann::json& value);
nlohmann::json to_json(const FileRecord& file);
// None: more than `most`.
std::optional<std::int64_t> elements_within(const Shape& sizes, std::int64_t most);

// Checksum, then schema, then `read`, which may throw what nlohmann does, or Malformed.
Result<void> read_sealed(std::string_view text, const std::string& path, std::string_view schema,
                         const std::function<void(const nlohmann::json& value)>& read);

// The same for a `read` that makes something.
template <class Read>
auto parse_sealed(std::string_view text, const std::string& path, std::string_view schema,
                  const Read& read) {
  using Value = decltype(read(std::declval<const nlohmann::json&>()));
  Result<Value> value = Value();
  const auto keep = [&](const nlohmann::json& from) { value = read(from); };
  if (auto right = read_sealed(text, path, schema, keep); !right)
    value = tl::unexpected(right.error());
  return value;
}

}  // namespace zeroproof
