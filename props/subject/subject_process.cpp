#include "props/subject/subject_process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "props/program/program_json.h"
#include "props/program/refusals.h"

namespace zeroproof::subject {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kProtocol = 1;
constexpr std::size_t kShownErrors = 3;  // last lines of stderr
constexpr std::size_t kShown = 120;      // bytes of what is no hello

std::string last_words(const ChildProcess& child) {
  std::vector<std::string> lines = child.last_errors();
  if (lines.size() > kShownErrors)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kShownErrors));
  return lines.empty() ? "it printed no text"
                       : fmt::format("it printed: {}", fmt::join(lines, " | "));
}

std::string text_of(const OrderedJson& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Result<Hello> parse_hello(const std::string& line) {
  const OrderedJson document = OrderedJson::parse(line, nullptr, false);
  if (!document.is_object() || !document.contains("zeroproof_subject"))
    return fail(ErrorCode::cannot_run,
                fmt::format("no hello of a subject: {}", line.substr(0, kShown)));
  const OrderedJson& version = document["zeroproof_subject"];
  if (version != kProtocol)
    return fail(ErrorCode::cannot_run,
                fmt::format("it speaks version {} of the protocol, zeroproof version {}: install "
                            "the zeroproof-subject of this zeroproof",
                            version.dump(), kProtocol));
  Hello hello{.engine = text_of(document.value("engine", OrderedJson(""))),
              .versions = {},
              .capabilities = document.value("capabilities", OrderedJson()).dump()};
  const OrderedJson versions = document.value("versions", OrderedJson::object());
  for (const auto& [name, value] : versions.items())
    hello.versions.emplace_back(name, text_of(value));
  return hello;
}

}  // namespace

std::vector<std::string> package_words(const SubjectCommand& command,
                                       const std::vector<std::string>& verb) {
  std::vector<std::string> words = {command.python, "-m", "zeroproof_subject"};
  words.insert(words.end(), verb.begin(), verb.end());
  words.insert(words.end(), {"--engine", command.engine});
  for (const std::string& setting : command.settings) words.insert(words.end(), {"--set", setting});
  return words;
}

std::vector<std::pair<std::string, std::string>> package_variables(const SubjectCommand& command) {
  const char* const given = std::getenv("PYTHONPATH");
  std::string path;
  for (const std::string& part :
       {command.python_path, std::string(given == nullptr ? "" : given), command.package_folder})
    if (!part.empty()) path += (path.empty() ? "" : ":") + part;
  if (path.empty()) return {};
  return {{"PYTHONPATH", path}};
}

Result<std::unique_ptr<SubjectProcess>> SubjectProcess::start(SubjectCommand command,
                                                              std::function<bool()> should_stop) {
  auto subject = std::make_unique<SubjectProcess>(std::move(command), std::move(should_stop));
  if (auto begun = subject->begin(); !begun) return tl::unexpected(begun.error());
  return subject;
}

Result<void> SubjectProcess::begin() {
  const std::vector<std::string> words = package_words(command_, {"serve"});
  auto child = ChildProcess::start(words, package_variables(command_));
  if (!child) return tl::unexpected(child.error());
  std::string line;
  const auto outcome = (*child)->next_line({command_.hello_limit_ns, should_stop_}, line);
  if (outcome != ChildProcess::Outcome::line) {
    const std::string why = outcome == ChildProcess::Outcome::ended     ? (*child)->state()
                            : outcome == ChildProcess::Outcome::stopped ? "interrupted"
                                                                        : "no hello in time";
    return fail(ErrorCode::cannot_run,
                fmt::format("'{}': {}; {}", fmt::join(words, " "), why, last_words(**child)));
  }
  auto hello = parse_hello(line);
  if (!hello)
    return fail(hello.error().code,
                fmt::format("'{}': {}", fmt::join(words, " "), hello.error().text));
  hello_ = std::move(*hello);
  child_ = std::move(*child);
  return {};
}

Result<Verdict> SubjectProcess::compare(const program::Program& program, KnownCauses known_causes) {
  if (!child_)
    if (auto begun = begin(); !begun) return tl::unexpected(begun.error());
  const std::uint64_t id = ++last_id_;
  const std::string request =
      fmt::format(R"({{"id":{},"compare":{}{}{}}})", id, program::program_line(program),
                  program::refusals_member(program),
                  known_causes == KnownCauses::skip ? R"(,"skip_known":true)" : "");
  std::string line;
  const auto outcome = child_->ask(request, {command_.answer_limit_ns, should_stop_}, line);
  if (outcome == ChildProcess::Outcome::line) return parse_answer(line, id);
  return trouble(outcome);
}

Verdict SubjectProcess::trouble(ChildProcess::Outcome outcome) {
  Verdict verdict{.status = Status::stopped};
  if (outcome != ChildProcess::Outcome::stopped) {
    const bool is_late = outcome == ChildProcess::Outcome::late;
    const std::string_view what = is_late ? "hang" : "crash";
    verdict.status = is_late ? Status::hang : Status::crash;
    verdict.signature =
        is_late ? "hang of the subject" : fmt::format("crash of the subject, {}", child_->state());
    verdict.difference = Difference{
        .rank = 0,
        .at = "run",
        .what = std::string(what),
        .text = fmt::format("the subject {}; {}",
                            is_late ? "did not answer in time" : "ended: " + child_->state(),
                            last_words(*child_))};
  }
  child_.reset();
  return verdict;
}

}  // namespace zeroproof::subject
