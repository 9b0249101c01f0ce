#include "props/subject/program_reduction.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "props/program/contract.h"
#include "props/program/program_json.h"

namespace zeroproof::subject {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Pointer = OrderedJson::json_pointer;

std::size_t statements_in(const OrderedJson& body) {
  std::size_t count = 0;
  for (const OrderedJson& statement : body) {
    const OrderedJson& members = statement.front();
    ++count;
    if (members.contains("body")) count += statements_in(members["body"]);
    if (!members.contains("hooks")) continue;
    for (const OrderedJson& hook : members["hooks"]) count += statements_in(hook["body"]);
  }
  return count;
}

// Every value of a document, those inside it after it; later elements before earlier ones.
void add_places(const OrderedJson& value, const Pointer& at, std::vector<Pointer>& places) {
  if (!at.empty()) places.push_back(at);
  if (value.is_object())
    for (const auto& [key, below] : value.items()) add_places(below, at / key, places);
  if (value.is_array())
    for (std::size_t index = value.size(); index-- > 0;)
      add_places(value[index], at / index, places);
}

OrderedJson without(OrderedJson document, const Pointer& at) {
  OrderedJson& parent = document[at.parent_pointer()];
  if (parent.is_array())
    parent.erase(std::stoul(at.back()));
  else
    parent.erase(at.back());
  return document;
}

// The members of a statement or a module, whose one key is its kind; a module has a name, too.
const OrderedJson* members_of(const OrderedJson& part) {
  if (!part.is_object()) return nullptr;
  for (const auto& [key, members] : part.items())
    if (members.is_object()) return &members;
  return nullptr;
}

bool names(const OrderedJson& value, const std::string& name) {
  if (value.is_string()) return value.get<std::string>() == name;
  return value.is_structured() &&
         std::ranges::any_of(value, [&](const OrderedJson& it) { return names(it, name); });
}

// All statements that name a value go.
void forget(OrderedJson& body, const std::string& name) {
  OrderedJson left = OrderedJson::array();
  for (OrderedJson& statement : body) {
    OrderedJson& members = statement.front();
    if (members.contains("body")) {
      forget(members["body"], name);
      left.push_back(std::move(statement));
    } else if (!names(statement, name)) {
      left.push_back(std::move(statement));
    }
  }
  body = std::move(left);
}

// The body in the place of what is around it.
OrderedJson unwrapped(OrderedJson document, const Pointer& at, const OrderedJson& inner) {
  OrderedJson& parent = document[at.parent_pointer()];
  const auto place = static_cast<std::ptrdiff_t>(std::stoul(at.back()));
  parent.erase(parent.begin() + place);
  parent.insert(parent.begin() + place, inner.begin(), inner.end());
  return document;
}

// What may stand in the place of a document, with one place simpler; the simplest first.
std::vector<OrderedJson> simpler(const OrderedJson& document, const Pointer& at) {
  std::vector<OrderedJson> documents;
  const OrderedJson& value = document[at];
  const bool is_element = document[at.parent_pointer()].is_array();
  const OrderedJson* const members = is_element ? members_of(value) : nullptr;
  if (members && members->contains("as")) {
    documents.push_back(document);
    forget(documents.back()["body"], (*members)["as"].get<std::string>());
  }
  documents.push_back(without(document, at));
  if (members && members->contains("body"))
    documents.push_back(unwrapped(document, at, (*members)["body"]));
  for (const int lower : {1, 2})
    if (value.is_number_integer() && value > lower) {
      documents.push_back(document);
      documents.back()[at] = lower;
    }
  return documents;
}

// Without some statements of the body; the last ones first, which no other names.
OrderedJson without_statements(OrderedJson document, std::size_t first, std::size_t count) {
  OrderedJson& body = document["body"];
  const auto begin = body.begin() + static_cast<std::ptrdiff_t>(first);
  body.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(count, body.size() - first)));
  return document;
}

std::optional<program::Program> program_of(const OrderedJson& document) {
  auto program = program::parse_program(document.dump(), "");
  if (!program || !program::Contract::of(*program)) return std::nullopt;
  return std::move(*program);
}

}  // namespace

std::size_t statements_of(const program::Program& program) {
  return statements_in(OrderedJson::parse(program::program_line(program))["body"]);
}

program::Program reduced(const program::Program& program,
                         const std::function<bool(const program::Program&)>& still_fails) {
  program::Program best = program;
  OrderedJson document = OrderedJson::parse(program::program_line(program));
  const auto attempt = [&](const OrderedJson& candidate) {
    const auto simpler_program = program_of(candidate);
    if (!simpler_program || !still_fails(*simpler_program)) return false;
    best = *simpler_program;
    document = OrderedJson::parse(program::program_line(best));
    return true;
  };
  // Many statements at once, where one by one takes a run each.
  for (std::size_t count = document["body"].size() / 2; count > 1; count /= 2)
    for (std::size_t end = document["body"].size(); end >= count; end -= count)
      attempt(without_statements(document, end - count, count));
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    std::vector<Pointer> places;
    add_places(document, Pointer(), places);
    // A change moves what stands after it, which has been tried.
    for (const Pointer& at : places) {
      if (!document.contains(at)) continue;
      const std::vector<OrderedJson> candidates = simpler(document, at);
      has_changed |= std::ranges::any_of(candidates, attempt);
    }
  }
  return best;
}

}  // namespace zeroproof::subject
