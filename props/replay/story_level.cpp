#include "props/replay/story_level.h"

#include <fmt/format.h>

#include "props/replay/moment.h"
#include "props/report/event_words.h"

namespace zeroproof {
namespace {

constexpr std::size_t kOpenMax = 4096;
constexpr std::size_t kShownMax = 8;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15U;
  hash = (hash ^ value) * kMultiplier;
  return hash ^ (hash >> 29);
}

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

StoryLevel::StoryLevel(const HeaderRecord& header, const NameTable& names)
    : names_(names),
      finder_(header),
      ddp_(names),
      fsdp2_(names),
      plain_(names),
      deepspeed_(names, header) {
  story_.rank = header.rank;
  story_.world = header.world;
  story_.run = fmt::format("{} stage {} {} {}", header.program, header.stage.value_or(-1),
                           header.dtype, header.world);
}

void StoryLevel::on_event(const HookEvent& event, std::string_view line) {
  story_.last_lc = event.lc;
  story_.open_transforms = event.transforms;
  finder_.on_event(event, names_);
  switch (finder_.framework()) {
    case Framework::ddp:
      ddp_.on_event(event, line);
      break;
    case Framework::fsdp2:
      fsdp2_.on_event(event, line);
      break;
    case Framework::deepspeed:
      deepspeed_.on_event(event, line);
      break;
    case Framework::plain:
      ddp_.on_event(event, line);  // the framework shows late: its rules have seen the beginning
      fsdp2_.on_event(event, line);
      break;
  }
  plain_.on_event(event);
  follow_collective(event);
  follow_order(event);
  if (is_telling(event.kind)) remember(event);
}

void StoryLevel::follow_collective(const HookEvent& event) {
  if (event.kind == EventKind::coll_issue) {
    ++story_.collectives;
    if (open_.size() < kOpenMax) open_.emplace(std::pair(event.group, event.index), event);
  } else if (event.kind == EventKind::coll_complete) {
    open_.erase({event.group, event.index});
  } else if (event.kind == EventKind::exc && story_.exceptions.size() < kShownMax) {
    story_.exceptions.push_back(
        {event.lc, std::string(names_.text(event.name)), std::string(names_.text(event.message))});
  }
}

void StoryLevel::follow_order(const HookEvent& event) {
  const bool is_hook = event.kind == EventKind::param_post_acc;
  if (is_hook) story_.order_hash = mix(story_.order_hash, hash_of(event.param));
  if (event.kind != EventKind::coll_issue) return;
  story_.order_hash =
      mix(mix(story_.order_hash, hash_of(event.name)), static_cast<std::uint64_t>(event.bytes));
  for (const NameId param : event.params)
    story_.order_hash = mix(story_.order_hash, hash_of(param));
}

// By text, so that files can be compared.
std::uint64_t StoryLevel::hash_of(NameId name) {
  if (name.is_none()) return 0;
  const auto at = static_cast<std::size_t>(name.value);
  if (at >= hashes_.size()) hashes_.resize(names_.size());
  if (hashes_[at] == 0) {
    std::uint64_t hash = 1;
    for (const char byte : names_.text(name)) hash = mix(hash, static_cast<unsigned char>(byte));
    hashes_[at] = hash | 1;
  }
  return hashes_[at];
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
  if (story_.framework == Framework::ddp) ddp_.finish(story_.found);
  if (story_.framework == Framework::fsdp2) fsdp2_.finish(story_.found);
  if (story_.framework == Framework::deepspeed) deepspeed_.finish(story_.found);
  if (story_.framework != Framework::deepspeed) plain_.finish(story_.found);
  return std::move(story_);
}

}  // namespace zeroproof
