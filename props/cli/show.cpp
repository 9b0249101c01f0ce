// `zeroproof show`: a trace as a timeline.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "props/cli/event_filter.h"
#include "props/cli/interrupt.h"
#include "props/cli/show_picture.h"
#include "props/cli/verb.h"
#include "props/foreign/dump_format.h"
#include "props/report/json_values.h"
#include "props/report/text.h"
#include "props/report/timeline.h"
#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kEventsAPage = 5000;  // lanes are laid out a page at a time

OrderedJson header_json(const HeaderRecord& header) {
  OrderedJson checks = OrderedJson::array();
  for (const TraceCheck& check : header.checks) {
    checks.push_back({{"name", check.name}, {"ok", check.is_ok}, {"detail", check.detail}});
  }
  OrderedJson producer = OrderedJson::object();
  for (const auto& [key, value] : header.producer) {
    producer[key] = value ? OrderedJson(*value) : OrderedJson(nullptr);
  }
  return {{"program", header.program},
          {"description", header.description},
          {"rank", header.rank},
          {"world", header.world},
          {"dtype", header.dtype},
          {"stage", header.stage ? OrderedJson(*header.stage) : OrderedJson(nullptr)},
          {"producer", producer},
          {"checks", checks}};
}

std::string header_text(const HeaderRecord& header, const Palette& palette) {
  std::string line =
      fmt::format("{}  rank {} of {}", visible(header.program), header.rank, header.world);
  if (header.stage) line += fmt::format("  stage {}", *header.stage);
  if (!header.dtype.empty()) line += fmt::format("  {}", visible(header.dtype));
  if (!header.policy.empty()) line += fmt::format("  {}", visible(header.policy));
  std::string text = palette.title(line) + "\n";
  if (!header.description.empty()) text += fmt::format("  {}\n", visible(header.description));
  std::string producer;
  for (const auto& [key, value] : header.producer) {
    producer += fmt::format("{}{} {}", producer.empty() ? "" : ", ", key, value.value_or("none"));
  }
  text += fmt::format("  recorded by {}\n", visible(producer));
  for (const TraceCheck& check : header.checks) {
    if (check.is_ok) continue;
    text += fmt::format("  recorder's check failed: {}: {}\n", visible(check.name),
                        visible(check.detail));
  }
  return text;
}

class ShowVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(words_, {"TRACE", "traces of one or several ranks, a folder, or a schedule"});
    filter_.declare(flags);
    flags.add_switch("all", shows_all_, "show bookkeeping events inside a step too");
    picture_.declare(flags);
  }

  Result<VerbResult> run(Session& session) override {
    if (words_.empty()) return fail(ErrorCode::usage, "show: name a trace, a folder or a schedule");
    if (auto ready = filter_.prepare(); !ready) return tl::unexpected(ready.error());
    if (picture_.is_meant(words_)) return picture_.run(words_, filter_, shows_all_, session);
    if (auto dump = refuse_dump(words_.front()); !dump) return tl::unexpected(dump.error());
    NameTable names;
    auto reader = TraceReader::open(words_.front(), names);
    if (!reader) return tl::unexpected(reader.error());
    return session.common.wants_json ? print_json(*reader, session)
                                     : print_text(*reader, names, session);
  }

 private:
  // Calls `take` for each event that passes; the error is the trace's fault.
  template <class Take>
  Result<void> each_event(TraceReader& reader, const Session& session, Take take) {
    while (!session.out.error() && !was_interrupted()) {
      const auto record = reader.next();
      if (!record) return tl::unexpected(record.error());
      if (*record == nullptr) break;
      const HookEvent* event = (*record)->event();
      if (event == nullptr) continue;
      ++events_;
      if (!filter_.passes(*event)) continue;
      ++shown_;
      ++counts_[static_cast<std::size_t>(event->kind)];
      take(*event, **record);
    }
    if (reader.truncation()) return fail(ErrorCode::unreadable, *reader.truncation());
    return {};
  }

  Result<VerbResult> print_text(TraceReader& reader, const NameTable& names, Session& session) {
    session.out.write(header_text(reader.header(), session.palette) + "\n");
    const TimelineOptions options{.columns = std::max<std::size_t>(session.terminal.columns, 60),
                                  .shows_details = shows_all_ || filter_.has_kinds(),
                                  .palette = session.palette};
    std::vector<HookEvent> page;
    const auto print_page = [&] {
      session.out.write(timeline_text(page, names, {}, options));
      page.clear();
    };
    const auto read = each_event(reader, session, [&](const HookEvent& event, const Record&) {
      page.push_back(event);
      if (page.size() == kEventsAPage) print_page();
    });
    print_page();
    session.out.write(fmt::format("\n{} of {} events\n", shown_, events_));
    if (!read) return tl::unexpected(read.error());
    return VerbResult{};
  }

  Result<VerbResult> print_json(TraceReader& reader, Session& session) {
    const OrderedJson header = header_json(reader.header());
    session.out.write(fmt::format("{{\"schema\":\"zeroproof.show/1\",\"header\":{},\"events\":[",
                                  document_text(header)));
    const char* separator = "\n";
    const auto read = each_event(reader, session, [&](const HookEvent&, const Record& record) {
      session.out.write(separator);
      session.out.write(record.line);
      separator = ",\n";
    });
    OrderedJson counts = OrderedJson::object();
    for (std::size_t kind = 0; kind < counts_.size(); ++kind) {
      if (counts_[kind] == 0) continue;
      counts[std::string(event_kind_name(static_cast<EventKind>(kind)))] = counts_[kind];
    }
    session.out.write(fmt::format("],\n\"events_in_trace\":{},\"counts\":{},\"error\":{}}}\n",
                                  events_, counts.dump(),
                                  read ? "null" : document_text(OrderedJson(read.error().text))));
    if (!read) return tl::unexpected(read.error());
    return VerbResult{};
  }

  std::vector<std::string> words_;
  EventFilter filter_;
  ShowPicture picture_;
  bool shows_all_ = false;
  std::uint64_t events_ = 0;
  std::uint64_t shown_ = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(EventKind::mark) + 1> counts_ = {};
};

}  // namespace

std::unique_ptr<Verb> make_show() {
  return std::make_unique<ShowVerb>();
}

}  // namespace zeroproof
