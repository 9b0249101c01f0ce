#include "props/cli/event_filter.h"

#include <fmt/format.h>

#include <charconv>

#include "model/nearest_name.h"
#include "props/cli/common_flags.h"

namespace zeroproof {
namespace {

Result<std::set<std::int64_t>> parse_numbers(const std::vector<std::string>& words,
                                             std::string_view flag) {
  std::set<std::int64_t> numbers;
  for (const std::string& word : words) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) {
      return fail(ErrorCode::usage, fmt::format("show: {}: '{}' is not a number", flag, word));
    }
    numbers.insert(value);
  }
  return numbers;
}

std::vector<EventKind> all_kinds() {
  std::vector<EventKind> kinds;
  for (int kind = 0; kind <= static_cast<int>(EventKind::mark); ++kind) {
    kinds.push_back(static_cast<EventKind>(kind));
  }
  return kinds;
}

// "engine" stands for "engine.call" and "engine.return".
Result<std::set<EventKind>> parse_kinds(const std::vector<std::string>& words) {
  std::set<EventKind> kinds;
  std::vector<std::string_view> known;
  for (const EventKind kind : all_kinds()) known.push_back(event_kind_name(kind));
  for (const std::string& word : words) {
    const std::size_t before = kinds.size();
    for (const EventKind kind : all_kinds()) {
      const std::string_view name = event_kind_name(kind);
      if (name == word || name.substr(0, name.find('.')) == word) kinds.insert(kind);
    }
    if (kinds.size() > before) continue;
    return fail(ErrorCode::usage, fmt::format("show: --kind: unknown kind '{}': {}", word,
                                              did_you_mean(word, known)));
  }
  return kinds;
}

}  // namespace

void EventFilter::declare(Flags& flags) {
  flags.add_list("rank", rank_words_, {"LIST", "only these ranks"});
  flags.add_list("gt", task_words_, {"LIST", "only these graph tasks; -1 is outside of all"});
  flags.add_list("kind", kind_words_,
                 {"LIST", "only these kinds or groups, for example gt.begin, engine"});
  flags.add_value("from", from_word_, {"LC", "first logical clock to show"});
  flags.add_value("to", to_word_, {"LC", "last logical clock to show"});
}

Result<void> EventFilter::prepare() {
  const auto ranks = parse_numbers(rank_words_, "--rank");
  if (!ranks) return tl::unexpected(ranks.error());
  const auto tasks = parse_numbers(task_words_, "--gt");
  if (!tasks) return tl::unexpected(tasks.error());
  const auto kinds = parse_kinds(kind_words_);
  if (!kinds) return tl::unexpected(kinds.error());
  const auto from = from_word_.empty() ? from_ : parse_count(from_word_, "show: --from");
  if (!from) return tl::unexpected(from.error());
  const auto to = to_word_.empty() ? to_ : parse_count(to_word_, "show: --to");
  if (!to) return tl::unexpected(to.error());
  ranks_ = *ranks;
  tasks_ = *tasks;
  kinds_ = *kinds;
  from_ = *from;
  to_ = *to;
  return {};
}

bool EventFilter::is_given() const {
  return !rank_words_.empty() || !task_words_.empty() || !kind_words_.empty() ||
         !from_word_.empty() || !to_word_.empty();
}

bool EventFilter::passes(const HookEvent& event) const {
  return event.lc >= from_ && event.lc <= to_ && (ranks_.empty() || ranks_.contains(event.rank)) &&
         (tasks_.empty() || tasks_.contains(event.graph_task.value)) &&
         (kinds_.empty() || kinds_.contains(event.kind));
}

}  // namespace zeroproof
