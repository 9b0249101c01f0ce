#include "props/replay/story_level.h"

#include <fmt/format.h>

#include "props/replay/lost_kinds.h"
#include "props/replay/moment.h"
#include "props/report/event_words.h"
#include "sim/trace/point_to_point.h"

namespace zeroproof {
namespace {

constexpr std::size_t kOpenEventsMax = 4096;
constexpr std::size_t kShownMax = 8;

// Kinds that a reader wants to see as "what it did last".
bool is_telling(EventKind kind) {
  switch (kind) {
    case EventKind::param_post_acc:
    case EventKind::gt_begin:
    case EventKind::gt_end:
    case EventKind::coll_issue:
    case EventKind::coll_complete:
    case EventKind::bucket_ready:
    case EventKind::bucket_flush:
    case EventKind::opt_step:
    case EventKind::exc:
    case EventKind::mark:
    case EventKind::module_fwd_pre:
    case EventKind::ft_push:
      return true;
    default:
      return false;
  }
}

}  // namespace

StoryLevel::StoryLevel(const HeaderRecord& header, const NameTable& names, JobFacts& facts)
    : names_(names),
      facts_(facts),
      finder_(header),
      backward_(names),
      ddp_(names, facts, backward_),
      fsdp2_(names, backward_),
      plain_(names),
      deepspeed_(names, header, backward_),
      ledger_(names, facts, backward_),
      by_hand_(names, facts),
      optimizers_(names, facts),
      numbers_(names, backward_) {
  story_.rank = header.rank;
  story_.world = header.world;
  story_.stage = header.stage.value_or(-1);
  story_.run = fmt::format("{} stage {} {} {}", header.program, header.stage.value_or(-1),
                           header.dtype, header.world);
}

void StoryLevel::declare(const NumbersRecord& numbers) {
  has_numbers_ = true;
  story_.numbers.add(numbers, facts_, story_.stage);
  numbers_.on_numbers(numbers);
}

void StoryLevel::on_event(const HookEvent& event, std::string_view line) {
  story_.last_lc = event.lc;
  story_.open_transforms = event.transforms;
  story_.ends_by_exception = event.kind == EventKind::exc;
  has_steps_ = has_steps_ || event.kind == EventKind::opt_step;
  finder_.on_event(event, names_);
  backward_.on_event(event);
  follow_framework(event, line);
  plain_.on_event(event);
  by_hand_.on_event(event);
  optimizers_.on_event(event);
  numbers_.on_event(event);
  follow_collective(event);
  if (is_telling(event.kind)) remember(event);
}

// A framework that shows late has been followed from the beginning.
void StoryLevel::follow_framework(const HookEvent& event, std::string_view line) {
  switch (finder_.framework()) {
    case Framework::ddp:
      ddp_.on_event(event, line);
      ledger_.on_event(event);
      break;
    case Framework::fsdp2:
      fsdp2_.on_event(event, line);
      break;
    case Framework::deepspeed:
      deepspeed_.on_event(event, line);
      break;
    case Framework::plain:
      ddp_.on_event(event, line);
      ledger_.on_event(event);
      fsdp2_.on_event(event, line);
      break;
    case Framework::fsdp1:
    case Framework::dtensor:
    case Framework::unknown:
      break;
  }
}

void StoryLevel::follow_collective(const HookEvent& event) {
  if (event.kind == EventKind::coll_issue) {
    ++story_.collectives;
    if (open_.size() < kOpenEventsMax) open_.emplace(key_of(event), event);
  } else if (event.kind == EventKind::coll_complete) {
    open_.erase(key_of(event));
  } else if (event.kind == EventKind::exc) {
    if (story_.exceptions.size() == kShownMax) story_.exceptions.pop_back();
    story_.exceptions.push_back({event.lc, std::string(names_.text(event.name)),
                                 std::string(names_.text(event.message)), event.is_uncaught});
  }
}

StoryLevel::CollectiveKey StoryLevel::key_of(const HookEvent& event) const {
  return {event.group, is_point_to_point(names_.text(event.name)), event.index};
}

// Only what the words of a moment need: copying whole events would cost as much as reading them.
void StoryLevel::remember(const HookEvent& event) {
  Recent& slot = recent_[next_recent_++ % recent_.size()];
  slot = {event.kind,  event.rank,      event.lc,      event.graph_task, event.name, event.param,
          event.group, event.exception, event.message, event.index,      event.bytes};
}

DiagnosisMoment StoryLevel::moment(const Recent& slot) const {
  HookEvent event;
  event.kind = slot.kind;
  event.rank = slot.rank;
  event.lc = slot.lc;
  event.graph_task = slot.graph_task;
  event.name = slot.name;
  event.param = slot.param;
  event.group = slot.group;
  event.exception = slot.exception;
  event.message = slot.message;
  event.index = slot.index;
  event.bytes = slot.bytes;
  return moment_of(event, names_);
}

TraceStory StoryLevel::finish(bool is_complete) {
  story_.framework = finder_.framework();
  story_.is_complete = is_complete;
  for (const auto& [key, event] : open_) {
    if (story_.open_collectives.size() == kShownMax) break;
    story_.open_collectives.push_back({event.lc, collective_words(event, names_)});
  }
  const std::size_t first = next_recent_ > recent_.size() ? next_recent_ - recent_.size() : 0;
  for (std::size_t at = first; at < next_recent_; ++at)
    story_.last.push_back(moment(recent_[at % recent_.size()]));
  take_rules(is_complete);
  return std::move(story_);
}

// Rules whose events the recorder has lost are left out, and named.
void StoryLevel::take_rules(bool is_complete) {
  const Framework framework = story_.framework;
  const LostKinds lost(facts_.notes);
  std::vector<Diagnosis> found;
  const auto take = [&](std::string_view words, bool is_meant,
                        std::initializer_list<std::string_view> kinds, const auto& finish) {
    found.clear();
    finish();
    if (!is_meant) return;
    const std::string reason = lost.reason(kinds);
    if (reason.empty()) {
      story_.checked.rules.emplace_back(words);
      story_.found.insert(story_.found.end(), found.begin(), found.end());
    } else {
      story_.checked.left_out.push_back(fmt::format("{}: {}", words, reason));
    }
  };
  take("buckets of DDP", framework == Framework::ddp,
       {"bucket.ready", "param.post_acc", "gt.begin", "gt.end"}, [&] { ddp_.finish(found); });
  take("reduction before each step", framework == Framework::ddp && has_steps_,
       {"bucket.ready", "param.post_acc", "gt.begin", "gt.end", "coll.issue", "opt.step", "mark"},
       [&] { ledger_.finish(found); });
  take("units of FSDP2", framework == Framework::fsdp2,
       {"engine.call", "engine.return", "gt.begin", "gt.end", "zparam.partition",
        "zparam.gather_begin"},
       [&] { fsdp2_.finish(is_complete, found); });
  take("calls of DeepSpeed", framework == Framework::deepspeed,
       {"engine.call", "engine.return", "gt.begin", "gt.end"}, [&] { deepspeed_.finish(found); });
  take("callbacks of autograd", framework != Framework::deepspeed,
       {"cb.queue", "cb.begin", "gt.begin", "gt.end"}, [&] { plain_.finish(found); });
  take("what optimizers hold", has_steps_ && !facts_.optimizers.empty(),
       {"param.post_acc", "opt.step", "mark"}, [&] { optimizers_.finish(found); });
  take("numbers of each step", has_numbers_, {"gt.begin", "gt.end"},
       [&] { numbers_.finish(found); });
}

}  // namespace zeroproof
