#include "sim/trace/structure_check.h"

#include <fmt/format.h>

#include <iterator>

#include "sim/trace/point_to_point.h"

namespace zeroproof {

bool StructureCheck::IssuedNumbers::contains(std::int64_t number) const {
  const auto after = ranges_.upper_bound(number);
  return after != ranges_.begin() && std::prev(after)->second >= number;
}

void StructureCheck::IssuedNumbers::add(std::int64_t number) {
  auto [range, is_new] = ranges_.emplace(number, number);
  if (!is_new) return;
  if (range != ranges_.begin()) {
    const auto before = std::prev(range);
    if (before->second >= number) {
      ranges_.erase(range);
      return;
    }
    if (before->second + 1 == number) {
      before->second = number;
      ranges_.erase(range);
      range = before;
    }
  }
  const auto next = std::next(range);
  if (next != ranges_.end() && next->first - 1 == range->second) {
    range->second = next->second;
    ranges_.erase(next);
  }
}

void StructureCheck::report(std::string rule, std::string text) {
  ++finding_count_;
  if (findings_.size() == kMaxFindings) return;
  findings_.push_back({std::move(rule), line_number_, lc_, std::move(text)});
}

void StructureCheck::on_record(const Record& record) {
  line_number_ = record.line_number;
  lc_ = 0;
  if (std::holds_alternative<HeaderRecord>(record.body)) return;
  if (const auto* end = std::get_if<EndRecord>(&record.body)) {
    has_end_ = true;
    if (*end != seen_) {
      report("end.counts", fmt::format("the end record says {} events in {} records, but {} in {} "
                                       "stand above it",
                                       end->events, end->records, seen_.events, seen_.records));
    }
    return;
  }
  ++seen_.records;
  if (const auto* param = std::get_if<ParamRecord>(&record.body)) params_.insert(param->name);
  if (const HookEvent* event = record.event()) {
    ++seen_.events;
    lc_ = event->lc;
    on_event(*event);
  }
}

void StructureCheck::on_event(const HookEvent& event) {
  check_time(event);
  switch (event.kind) {
    case EventKind::gt_begin:
    case EventKind::gt_end:
      return check_graph_task(event);
    case EventKind::ft_push:
    case EventKind::ft_pop:
      return check_transform(event);
    case EventKind::coll_issue:
    case EventKind::coll_complete:
      return check_collective(event);
    case EventKind::param_post_acc:
      return check_param(event);
    default:
      return;
  }
}

void StructureCheck::check_time(const HookEvent& event) {
  const auto [last, is_new] = last_time_ns_.try_emplace({event.rank, event.thread}, event.time_ns);
  if (event.time_ns < last->second) {
    report("time.backwards", fmt::format("t {} after {} on thread {}; times of one thread must not "
                                         "decrease",
                                         event.time_ns, last->second, event.thread));
  }
  last->second = event.time_ns;
}

void StructureCheck::check_graph_task(const HookEvent& event) {
  if (event.kind == EventKind::gt_begin) {
    open_calls_.insert(event.call);
    return;
  }
  const auto open = open_calls_.find(event.call);
  if (open == open_calls_.end()) {
    report("graph_task.end", fmt::format("gt.end of call {}, which is not open", event.call));
  } else {
    open_calls_.erase(open);
  }
}

void StructureCheck::check_transform(const HookEvent& event) {
  std::vector<std::int64_t>& stack = transforms_[{event.rank, event.thread}];
  if (event.kind == EventKind::ft_push) {
    stack.push_back(event.index);
  } else if (stack.empty() || stack.back() != event.index) {
    report("transform.pop", fmt::format("ft.pop of level {}, but the last push is {}", event.index,
                                        stack.empty() ? "none" : fmt::format("{}", stack.back())));
  } else {
    stack.pop_back();
  }
}

void StructureCheck::check_collective(const HookEvent& event) {
  IssuedNumbers& issued = issued_[{event.group, is_point_to_point(names_.text(event.name))}];
  const bool is_known = issued.contains(event.index);
  if (event.kind == EventKind::coll_issue) {
    if (is_known) {
      report("collective.number", fmt::format("second coll.issue {} of group \"{}\"", event.index,
                                              names_.text(event.group)));
    }
    issued.add(event.index);
  } else if (!is_known) {
    report("collective.complete", fmt::format("coll.complete {} of group \"{}\" before its issue",
                                              event.index, names_.text(event.group)));
  }
}

// Scripts declare no params at all; then any name will do.
void StructureCheck::check_param(const HookEvent& event) {
  const std::string_view name = names_.text(event.param);
  if (params_.empty() || params_.find(name) != params_.end()) return;
  report("param.undeclared", fmt::format("param.post_acc of \"{}\", which no param record above "
                                         "declares",
                                         name));
}

void StructureCheck::finish() {
  lc_ = 0;
  if (!has_end_) {
    // What is open at a crash is no fault of its own.
    report("end.missing", "no end record: the trace is truncated");
    return;
  }
  for (const std::int64_t call : open_calls_) {
    report("graph_task.open", fmt::format("call {} was begun and never ended", call));
  }
}

}  // namespace zeroproof
