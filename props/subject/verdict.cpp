#include "props/subject/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace zeroproof::subject {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kShownAnswer = 120;  // bytes of what is no answer

// A member where it is text, else empty.
std::string text_in(const OrderedJson& document, const char* key) {
  const auto at = document.find(key);
  return at != document.end() && at->is_string() ? at->get<std::string>() : std::string();
}

template <class Number>
Number number_in(const OrderedJson& document, const char* key) {
  const auto at = document.find(key);
  return at != document.end() && at->is_number() ? at->get<Number>() : Number{};
}

std::optional<Status> status_in(const OrderedJson& document) {
  const std::string name = text_in(document, "status");
  const auto at = std::ranges::find(kStatusNames, name);
  if (at == kStatusNames.end()) return std::nullopt;
  return static_cast<Status>(at - kStatusNames.begin());
}

Difference difference_of(const OrderedJson& document) {
  return {.rank = number_in<int>(document, "rank"),
          .at = text_in(document, "at"),
          .what = text_in(document, "what"),
          .text = text_in(document, "text"),
          .observed = text_in(document, "observed"),
          .expected = text_in(document, "expected")};
}

// Words, or an object of words.
std::optional<KnownFinding> known_in(const OrderedJson& document) {
  const auto at = document.find("known");
  if (at == document.end() || at->is_null()) return std::nullopt;
  if (at->is_string())
    return KnownFinding{.name = at->get<std::string>(), .verdict = "", .issue = "", .text = ""};
  if (!at->is_object()) return std::nullopt;
  return KnownFinding{.name = text_in(*at, "name"),
                      .verdict = text_in(*at, "verdict"),
                      .issue = text_in(*at, "issue"),
                      .text = text_in(*at, "text")};
}

// What differs and at which kind of statement.
std::string usual_signature(const Verdict& verdict) {
  if (!verdict.difference) return std::string(name_of(verdict.status));
  const std::string& at = verdict.difference->at;
  return fmt::format("{} at {}", verdict.difference->what, at.substr(at.rfind('/') + 1));
}

Result<Verdict> verdict_of(const OrderedJson& document, std::string_view where) {
  const auto status = document.is_object() ? status_in(document) : std::nullopt;
  if (!status)
    return fail(ErrorCode::usage, fmt::format("{}: no status that zeroproof knows: {}", where,
                                              document.dump().substr(0, kShownAnswer)));
  Verdict verdict{.status = *status,
                  .seconds = number_in<double>(document, "seconds"),
                  .signature = text_in(document, "signature"),
                  .known = known_in(document),
                  .detail = text_in(document, "detail")};
  if (const auto at = document.find("difference"); at != document.end() && at->is_object()) {
    verdict.difference = difference_of(*at);
    if (verdict.signature.empty()) verdict.signature = text_in(*at, "signature");
    if (!verdict.known) verdict.known = known_in(*at);
  }
  if (!verdict.is_finding())
    verdict.signature.clear();
  else if (verdict.signature.empty())
    verdict.signature = usual_signature(verdict);
  return verdict;
}

}  // namespace

std::string version_line(const Versions& versions) {
  std::string line;
  for (const auto& [name, version] : versions)
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, version);
  return line;
}

Result<Verdict> parse_answer(std::string_view line, std::uint64_t id) {
  const OrderedJson document = OrderedJson::parse(line, nullptr, false);
  if (!document.is_object())
    return fail(ErrorCode::cannot_run, fmt::format("the subject answered no JSON object: {}",
                                                   line.substr(0, kShownAnswer)));
  if (number_in<std::uint64_t>(document, "id") != id)
    return fail(ErrorCode::cannot_run,
                fmt::format("the subject answered another request than {}: {}", id,
                            line.substr(0, kShownAnswer)));
  auto verdict = verdict_of(document, "the subject's answer");
  if (!verdict) return fail(ErrorCode::cannot_run, verdict.error().text);
  return verdict;
}

std::string verdict_json(const Verdict& verdict) {
  OrderedJson document = {{"status", std::string(name_of(verdict.status))},
                          {"signature", verdict.signature}};
  if (verdict.difference)
    document["difference"] = {
        {"rank", verdict.difference->rank},         {"at", verdict.difference->at},
        {"what", verdict.difference->what},         {"text", verdict.difference->text},
        {"observed", verdict.difference->observed}, {"expected", verdict.difference->expected}};
  if (verdict.known)
    document["known"] = {{"name", verdict.known->name},
                         {"verdict", verdict.known->verdict},
                         {"issue", verdict.known->issue},
                         {"text", verdict.known->text}};
  if (!verdict.detail.empty()) document["detail"] = verdict.detail;
  return document.dump();
}

Result<Verdict> parse_verdict(std::string_view json, std::string_view where) {
  return verdict_of(OrderedJson::parse(json, nullptr, false), where);
}

}  // namespace zeroproof::subject
