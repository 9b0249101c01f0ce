#include "props/report/picture/picture_spans.h"

#include <fmt/format.h>

#include <algorithm>

namespace zeroproof {

std::size_t PictureCollectives::find(const std::string& run, NameId group, std::int64_t number) {
  const auto [at, is_new] = index_.try_emplace({run, group, number}, all_.size());
  if (is_new) all_.emplace_back();
  return at->second;
}

void PictureSpans::add(const HookEvent& event, std::uint32_t id, const NameTable& names,
                       PictureDraft& draft, PictureCollectives& collectives) {
  const std::string& run = draft.picture.processes[process_].run;
  switch (event.kind) {
    case EventKind::coll_issue: {
      const std::size_t peer = collectives.find(run, event.group, event.index);
      collectives.at(peer).issues.push_back(id);
      return issue(event, id, names, draft, peer);
    }
    case EventKind::coll_complete:
      collectives.at(collectives.find(run, event.group, event.index)).completes.push_back(id);
      return complete(event, id, draft);
    case EventKind::zparam_gather_begin:
      for (const NameId param : event.params) begin_gather(param, id, names, draft);
      return;
    case EventKind::zparam_gather_end:
      for (const NameId param : event.params) end_gather(param, id, names, draft);
      return;
    case EventKind::zparam_partition:
      for (const NameId param : event.params) release(param, id, draft);
      return;
    case EventKind::bucket_add:
      return fill_bucket(event, id, draft);
    case EventKind::bucket_flush:
      return flush_bucket(event, id, draft);
    default:
      return;
  }
}

void PictureSpans::issue(const HookEvent& event, std::uint32_t id, const NameTable& names,
                         PictureDraft& draft, std::size_t peer) {
  const std::string_view group = event.group.is_none() ? "world" : names.text(event.group);
  const std::uint32_t track = draft.track(process_, PictureTrackKind::collectives,
                                          event.group.value, fmt::format("collectives {}", group));
  const std::uint32_t bar = draft.add_bar(
      id, track, draft.free_row(track), fmt::format("{} #{}", names.text(event.name), event.index));
  draft.picture.bars[bar].peer = static_cast<std::int64_t>(peer);
  collectives_[{event.group, event.index}] = bar;
}

void PictureSpans::complete(const HookEvent& event, std::uint32_t id, PictureDraft& draft) {
  const auto open = collectives_.find({event.group, event.index});
  if (open == collectives_.end()) return;
  draft.end_bar(open->second, id);
  collectives_.erase(open);
}

// Gathers of a parameter that is gathered already have no effect.
void PictureSpans::begin_gather(NameId param, std::uint32_t id, const NameTable& names,
                                PictureDraft& draft) {
  if (gathers_.contains(param) || residents_.contains(param)) return;
  const std::uint32_t track =
      draft.track(process_, PictureTrackKind::gathers, 0, "gathered parameters");
  gathers_[param] =
      draft.add_bar(id, track, draft.free_row(track), fmt::format("gather {}", names.text(param)));
}

// The parameter stays in the row of its gather.
void PictureSpans::end_gather(NameId param, std::uint32_t id, const NameTable& names,
                              PictureDraft& draft) {
  const auto open = gathers_.find(param);
  if (open == gathers_.end()) return;
  const PictureBar gather = draft.picture.bars[open->second];
  draft.picture.bars[open->second].end = id;
  gathers_.erase(open);
  const std::uint32_t resident =
      draft.add_bar(id, gather.track, gather.row, std::string(names.text(param)));
  draft.picture.bars[resident].is_faint = true;
  residents_[param] = resident;
}

void PictureSpans::release(NameId param, std::uint32_t id, PictureDraft& draft) {
  for (auto* open : {&gathers_, &residents_}) {
    const auto at = open->find(param);
    if (at == open->end()) continue;
    draft.end_bar(at->second, id);
    open->erase(at);
  }
}

void PictureSpans::fill_bucket(const HookEvent& event, std::uint32_t id, PictureDraft& draft) {
  const auto [at, is_new] = buckets_.try_emplace({event.name, event.group});
  Bucket& bucket = at->second;
  if (is_new) {
    const std::uint32_t track = draft.track(process_, PictureTrackKind::buckets, 0, "buckets");
    bucket.bar = draft.add_bar(id, track, draft.free_row(track), "bucket");
  }
  ++bucket.params;
  bucket.numel += std::max<std::int64_t>(event.numel, 0);
  draft.picture.bars[bucket.bar].label =
      draft.intern(fmt::format("bucket: {} parameter{}, {} elements", bucket.params,
                               bucket.params == 1 ? "" : "s", bucket.numel));
}

// A flush that does not say which bucket it empties means the only one there is.
void PictureSpans::flush_bucket(const HookEvent& event, std::uint32_t id, PictureDraft& draft) {
  auto at = buckets_.find({event.name, event.group});
  if (at == buckets_.end() && buckets_.size() == 1) at = buckets_.begin();
  if (at == buckets_.end()) return;
  draft.end_bar(at->second.bar, id);
  buckets_.erase(at);
}

void PictureSpans::leave_open(std::uint32_t last, PictureDraft& draft) {
  const auto leave = [&](std::uint32_t bar, bool is_open) {
    draft.picture.bars[bar].is_open = is_open;
    draft.end_bar(bar, last);
  };
  for (const auto& [key, bar] : collectives_) leave(bar, true);
  for (const auto& [param, bar] : gathers_) leave(bar, true);
  for (const auto& [param, bar] : residents_) leave(bar, false);
  for (const auto& [key, bucket] : buckets_) leave(bucket.bar, true);
}

}  // namespace zeroproof
