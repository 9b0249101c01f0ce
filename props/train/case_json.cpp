#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/train/case_fields.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <class Spec>
OrderedJson fields_of(Spec spec) {
  OrderedJson json = OrderedJson::object();
  visit_fields(spec, [&](const char* name, int& value, int simple) {
    if (value != simple) json[name] = value;
  });
  return json;
}

template <class Spec>
OrderedJson list_of(const std::vector<Spec>& specs) {
  OrderedJson list = OrderedJson::array();
  for (const Spec& spec : specs) list.push_back(fields_of(spec));
  return list;
}

template <class Spec>
Result<void> read_fields(const OrderedJson& json, Spec& spec, const std::string& where) {
  if (!json.is_object()) return fail(ErrorCode::usage, where + ": not an object");
  std::size_t known = 0;
  std::string problem;
  visit_fields(spec, [&](const char* name, int& value, int) {
    const auto at = json.find(name);
    if (at == json.end()) return;
    ++known;
    if (!at->is_number_integer()) {
      problem = fmt::format("{}/{}: not an integer", where, name);
      return;
    }
    value = at->template get<int>();
  });
  if (!problem.empty()) return fail(ErrorCode::usage, problem);
  for (const char* list : {"layers", "calls", "micros"}) known += json.count(list);
  if (known != json.size()) return fail(ErrorCode::usage, where + ": a key that no case has");
  return {};
}

template <class Spec>
Result<void> read_list(const OrderedJson& json, const char* name, std::vector<Spec>& specs,
                       const std::string& where) {
  const auto at = json.find(name);
  if (at == json.end() || !at->is_array())
    return fail(ErrorCode::usage, fmt::format("{}: no list {}", where, name));
  for (const OrderedJson& one : *at)
    if (auto read = read_fields(one, specs.emplace_back(),
                                fmt::format("{}/{}/{}", where, name, specs.size() - 1));
        !read)
      return read;
  return {};
}

}  // namespace

std::string case_json(const CaseSpec& spec) {
  OrderedJson json = fields_of(spec);
  json["layers"] = list_of(spec.layers);
  json["calls"] = list_of(spec.calls);
  json["micros"] = list_of(spec.micros);
  return json.dump();
}

Result<CaseSpec> parse_case(std::string_view text, std::string_view where) {
  const OrderedJson json = OrderedJson::parse(text, nullptr, false);
  const std::string at(where);
  if (json.is_discarded()) return fail(ErrorCode::usage, at + ": not JSON");
  CaseSpec spec;
  if (auto read = read_fields(json, spec, at); !read) return tl::unexpected(read.error());
  if (auto read = read_list(json, "layers", spec.layers, at); !read)
    return tl::unexpected(read.error());
  if (auto read = read_list(json, "calls", spec.calls, at); !read)
    return tl::unexpected(read.error());
  if (auto read = read_list(json, "micros", spec.micros, at); !read)
    return tl::unexpected(read.error());
  if (const std::string problem = why_invalid(spec); !problem.empty())
    return fail(ErrorCode::usage, at + ": " + problem);
  return spec;
}

}  // namespace zeroproof::train
