#include "props/foreign/pickle_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace zeroproof {
namespace {

using Json = nlohmann::json;

constexpr int kDepthMax = 8;
constexpr std::size_t kJsonValuesMax = 200'000;

struct TooLarge {};

class PickleConverter {
 public:
  explicit PickleConverter(const PickleDocument& document) : document_(document) {}

  Json convert(std::uint32_t index, int depth) {
    if (depth == 0 || values_left_ == 0) throw TooLarge{};
    --values_left_;
    const PickleValue& value = document_.values[index];
    switch (value.kind) {
      case PickleKind::none:
        return nullptr;
      case PickleKind::boolean:
        return PickleDocument::integer(value) != 0;
      case PickleKind::integer:
        return PickleDocument::integer(value);
      case PickleKind::number:
        return PickleDocument::number(value);
      case PickleKind::text:
        return std::string(document_.text(value));
      case PickleKind::list:
        return list(value, depth);
      case PickleKind::dict:
        break;
    }
    return dict(value, depth);
  }

 private:
  Json list(const PickleValue& value, int depth) {
    Json list = Json::array();
    for (const std::uint32_t item : document_.items(value))
      list.push_back(convert(item, depth - 1));
    return list;
  }

  Json dict(const PickleValue& value, int depth) {
    Json dict = Json::object();
    const std::span<const std::uint32_t> items = document_.items(value);
    for (std::size_t at = 0; at + 1 < items.size(); at += 2) {
      const PickleValue& key = document_.values[items[at]];
      const std::string name = key.kind == PickleKind::text
                                   ? std::string(document_.text(key))
                                   : fmt::format("{}", PickleDocument::integer(key));
      dict[name] = convert(items[at + 1], depth - 1);
    }
    return dict;
  }

  const PickleDocument& document_;
  std::size_t values_left_ = kJsonValuesMax;
};

}  // namespace

tl::expected<Json, std::string> pickle_json(const PickleDocument& document, std::uint32_t index) {
  try {
    return PickleConverter(document).convert(index, kDepthMax);
  } catch (const TooLarge&) {
    return tl::unexpected(
        fmt::format("a value of the pickle is nested deeper than {} levels or holds more than {} "
                    "values",
                    kDepthMax, kJsonValuesMax));
  }
}

}  // namespace zeroproof
