#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeroproof/model/result.h"

namespace zeroproof::subject {

// What a program runs on: versions by name.
using Versions = std::vector<std::pair<std::string, std::string>>;
std::string version_line(const Versions& versions);  // "torch 2.15.0, deepspeed 0.19.8"

// What became of one program on a subject, beside plain PyTorch (docs/reference/subject.md).
enum class Status : std::uint8_t {
  equal,
  differs,  // or raises what plain PyTorch does not raise
  crash,
  hang,
  no_reference,  // plain PyTorch cannot run it, either
  refused,       // the subject reads it as no program
  skipped,       // it may show a known finding; it did not run
  stopped,       // by the user, before an answer
};

inline constexpr std::array<std::string_view, 8> kStatusNames = {
    "equal", "differs", "crash", "hang", "no_reference", "refused", "skipped", "stopped"};

constexpr std::string_view name_of(Status status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

// The first place where a rank saw something else.
struct Difference {
  int rank = 0;
  std::string at;        // "/3/step": the statement by index and kind
  std::string what;      // gradients, parameters, loss, optimizer_state, error, crash, hang
  std::string text;      // one line
  std::string observed;  // where the subject says them apart
  std::string expected;
};

// A finding that was there before: a public report, or a documented limit.
struct KnownFinding {
  std::string name;
  std::string verdict;  // defect, limit, ours; or empty
  std::string issue;    // where; or empty
  std::string text;     // what it is about; or empty
};

struct Verdict {
  Status status = Status::equal;
  double seconds = 0.0;  // of the subject
  std::optional<Difference> difference = std::nullopt;
  // The same for findings that are likely the same; empty where there is none.
  std::string signature;
  std::optional<KnownFinding> known = std::nullopt;
  std::string detail;  // why it was refused

  // What distinguishes findings: an unknown cause is not one that has the same signature and is
  // known.
  std::string group() const { return known ? signature + " = " + known->name : signature; }

  bool is_finding() const {
    return status == Status::differs || status == Status::crash || status == Status::hang;
  }
};

// The answer to the request `compare` of that id. An error says what is no such answer.
Result<Verdict> parse_answer(std::string_view line, std::uint64_t id);

// A verdict as a document, and back. `where` is for messages.
std::string verdict_json(const Verdict& verdict);
Result<Verdict> parse_verdict(std::string_view json, std::string_view where);

}  // namespace zeroproof::subject
