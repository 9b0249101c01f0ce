#include <fmt/format.h>

#include "props/replay/rank_set.h"
#include "props/report/diagnosis_report.h"
#include "props/report/text.h"
#include "props/report/watch_report.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::size_t kIndent = 9;  // of the clock
constexpr std::size_t kEntryLines = 60;
constexpr std::size_t kPlacesShown = 4;

std::string indented(std::string_view text, std::size_t columns) {
  std::string out;
  const std::size_t width = columns > kIndent + 30 ? columns - kIndent : 30;
  for (const std::string& line : wrapped_lines(visible(text), width))
    out += (out.empty() ? "" : std::string(kIndent, ' ')) + line + "\n";
  return out;
}

std::string place_text(const WatchPlace& place) {
  const std::string last = place.last.lc == 0
                               ? std::string("has recorded no event")
                               : fmt::format("lc {}: {}", place.last.lc, place.last.text);
  if (place.is_over) return fmt::format("rank {} has ended; {}", place.rank, last);
  return fmt::format("rank {} since {} s at {}", place.rank, place.quiet_ns / kSecondNs, last);
}

std::string places_text(const std::vector<WatchPlace>& places, std::size_t columns) {
  std::string text;
  for (std::size_t at = 0; at < places.size() && at < kPlacesShown; ++at)
    text += std::string(kIndent, ' ') + indented(place_text(places[at]), columns);
  if (places.size() > kPlacesShown)
    text += fmt::format("{}and {} more ranks\n", std::string(kIndent, ' '),
                        places.size() - kPlacesShown);
  return text;
}

std::string wait_words(const WatchNews& news) {
  const DiagnosisWait& wait = news.wait;
  std::string text =
      fmt::format("{} wait{}", rank_words(wait.ranks), wait.ranks.size() > 1 ? "" : "s");
  if (!wait.for_ranks.empty()) text += " for " + rank_words(wait.for_ranks);
  return fmt::format("{} in {}; no event for {} s", text, wait.text, news.quiet_ns / kSecondNs);
}

// The entry alone, without the heading of a page.
std::string answer_text(const Diagnosis& answer, std::size_t columns, const Palette& palette) {
  Diagnosis shown = answer;
  shown.files.clear();
  const std::string text = diagnosis_text({shown}, columns, kEntryLines, palette);
  return text.substr(text.find('\n') + 1);
}

// The colour is added afterwards, as it takes no column.
std::string hang_text(const WatchNews& news, std::size_t columns, const Palette& palette) {
  constexpr std::string_view kWord = "hang";
  const std::string text = indented(fmt::format("{}: {}", kWord, wait_words(news)), columns);
  return palette.bad(kWord) + text.substr(kWord.size());
}

}  // namespace

std::string watch_text(const WatchNews& news, std::size_t columns, const Palette& palette) {
  const std::string clock = padded(clock_text(news.at_ns / kSecondNs), kIndent);
  const bool has_several = news.ranks.size() > 1;
  const auto line = [&](const std::string& text) { return clock + indented(text, columns); };
  switch (news.kind) {
    case WatchNews::Kind::began:
      return line(fmt::format("{} of {} record{}", rank_words(news.ranks), news.world,
                              has_several ? "" : "s"));
    case WatchNews::Kind::ended:
      return line(fmt::format("{} {} ended", rank_words(news.ranks), has_several ? "have" : "has"));
    case WatchNews::Kind::died:
      return line(fmt::format("{} died: the recording has no end", rank_words(news.ranks)));
    case WatchNews::Kind::waits:
      return line(wait_words(news)) + places_text(news.absent, columns);
    case WatchNews::Kind::goes_on:
      return line(fmt::format("{} go{} on after {}", rank_words(news.ranks),
                              has_several ? "" : "es", news.wait.text));
    case WatchNews::Kind::finding:
      if (!news.is_hang) return line("finding") + answer_text(*news.answer, columns, palette);
      return clock + hang_text(news, columns, palette) + places_text(news.absent, columns) +
             answer_text(*news.answer, columns, palette);
    case WatchNews::Kind::unreadable:
      return line("unreadable: " + news.text);
    case WatchNews::Kind::over:
      return line("the job has ended");
  }
  return {};
}

}  // namespace zeroproof
