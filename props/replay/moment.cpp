#include "props/replay/moment.h"

#include <fmt/format.h>

#include "props/report/event_words.h"

namespace zeroproof {

std::string collective_words(const HookEvent& event, const NameTable& names) {
  std::string text = fmt::format("{} number {} of group {}", names.text(event.name), event.index,
                                 names.text(event.group));
  if (event.bytes >= 0) text += fmt::format(" ({} bytes)", event.bytes);
  return text;
}

DiagnosisMoment moment_of(const HookEvent& event, const NameTable& names) {
  DiagnosisMoment moment{.rank = event.rank, .lc = event.lc};
  if (event.kind == EventKind::coll_issue || event.kind == EventKind::coll_complete)
    moment.text = collective_words(event, names) +
                  (event.kind == EventKind::coll_issue ? " issued" : " complete");
  else
    moment.text = event_words(event, names).text;
  const bool has_message = event.kind == EventKind::exc && !event.message.is_none();
  if (has_message && moment.text.find(names.text(event.message)) == std::string::npos)
    moment.text += fmt::format(": {}", names.text(event.message));
  if (event.is_exceptional() && moment.text.find(names.text(event.exception)) == std::string::npos)
    moment.text += fmt::format(" by {}", names.text(event.exception));
  return moment;
}

std::string_view line_text(std::string_view line, std::string_view key) {
  const std::string start = fmt::format("\"{}\":\"", key);
  const std::size_t at = line.find(start);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + start.size();
  return line.substr(begin, line.find('"', begin) - begin);
}

std::string with_article(std::string_view words) {
  const bool has_vowel =
      !words.empty() && std::string_view("aeiou").find(words[0]) != std::string_view::npos;
  return fmt::format("{} {}", has_vowel ? "an" : "a", words);
}

}  // namespace zeroproof
