#include <nlohmann/json.hpp>

#include "props/report/answers_json.h"
#include "props/report/watch_report.h"

namespace zeroproof {
namespace {

using WatchJson = nlohmann::ordered_json;

double seconds(std::int64_t ns) {
  constexpr double kMillisecondNs = 1e6;
  return static_cast<double>(static_cast<std::int64_t>(static_cast<double>(ns) / kMillisecondNs)) /
         1e3;
}

WatchJson places_json(const std::vector<WatchPlace>& places) {
  WatchJson all = WatchJson::array();
  for (const WatchPlace& place : places)
    all.push_back({{"rank", place.rank},
                   {"lc", place.last.lc},
                   {"text", place.last.text},
                   {"quiet_seconds", seconds(place.quiet_ns)},
                   {"ended", place.is_over}});
  return all;
}

}  // namespace

std::string watch_json(const WatchNews& news) {
  WatchJson line = {{"schema", "zeroproof.watch/1"},
                    {"news", watch_kind_name(news.kind)},
                    {"seconds", seconds(news.at_ns)}};
  if (news.kind == WatchNews::Kind::unreadable) {
    line["text"] = news.text;
    return line.dump(-1, ' ', false, WatchJson::error_handler_t::replace);
  }
  line["run"] = news.run;
  line["world"] = news.world;
  line["ranks"] = news.ranks;
  if (!news.wait.text.empty()) {
    line["in"] = news.wait.text;
    line["waiting"] = news.wait.ranks;
    line["for"] = news.wait.for_ranks;
  }
  if (news.kind == WatchNews::Kind::waits || news.is_hang) {
    line["absent"] = places_json(news.absent);
    line["quiet_seconds"] = seconds(news.quiet_ns);
  }
  if (news.kind == WatchNews::Kind::finding || news.kind == WatchNews::Kind::goes_on)
    line["hang"] = news.is_hang;
  if (news.answer) line["diagnosis"] = diagnosis_json(*news.answer);
  return line.dump(-1, ' ', false, WatchJson::error_handler_t::replace);
}

}  // namespace zeroproof
