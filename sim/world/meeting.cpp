#include "sim/world/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/runtime/host/rendezvous.h"
#include "model/check.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::sim {

bool Part::agrees_with(const Part& other) const {
  host::Collective ours = collective;
  host::Collective theirs = other.collective;
  ours.input = input.span();
  theirs.input = other.input.span();
  return host::is_same_kind(ours, theirs) && content == other.content;
}

std::string Part::description() const {
  host::Collective there = collective;
  there.input = input.span();
  std::string text = host::description(there);
  for (std::size_t i = 0; i < content.size(); ++i)
    text += fmt::format("{}parameter {} from element {}", i == 0 ? " (" : ", ",
                        content[i].parameter, content[i].begin);
  return content.empty() ? text : text + ")";
}

bool Rendezvous::is_ready() const {
  return std::ranges::all_of(parts, [](const auto& part) { return part && part->is_at_head; });
}

MeetingPoint::MeetingPoint(std::string name, std::size_t size, bool has_garbage)
    : name_(std::move(name)), size_(size), has_garbage_(has_garbage) {}

Rendezvous& MeetingPoint::call(std::size_t rank, std::int64_t sequence,
                               const host::Collective& collective,
                               std::vector<ContentPart> content) {
  raise_if_failed();
  while (first_ + static_cast<std::int64_t>(meetings_.size()) <= sequence) {
    meetings_.push_back(std::make_unique<Rendezvous>());
    meetings_.back()->sequence = first_ + static_cast<std::int64_t>(meetings_.size()) - 1;
    meetings_.back()->parts.resize(size_);
  }
  Rendezvous& meeting = *meetings_[static_cast<std::size_t>(sequence - first_)];
  ZP_CHECK(!meeting.parts[rank], "a rank called the same collective twice");
  Part part{collective, std::move(content), HeldSpan(collective.input),
            HeldSpan(collective.output)};
  for (std::size_t r = 0; r < size_; ++r) {
    const std::optional<Part>& other = meeting.parts[r];
    if (!other || other->agrees_with(part)) continue;
    fail(fmt::format("{}, collective {}: rank {} of the group issued {}, but rank {} of the group "
                     "issued {}",
                     name_, sequence, r, other->description(), rank, part.description()),
         false);
    raise_if_failed();
  }
  meeting.parts[rank] = std::move(part);
  return meeting;
}

std::optional<std::size_t> MeetingPoint::run(Rendezvous& meeting) {
  if (meeting.has_run) return std::nullopt;
  meeting.has_run = true;
  std::optional<std::size_t> gone;
  std::vector<const host::Collective*> all;
  for (std::size_t r = 0; r < size_; ++r) {
    Part& part = *meeting.parts[r];
    if (!part.input.acquire() || !part.output.acquire()) gone = r;
    part.collective.input = part.input.span();
    part.collective.output = part.output.span();
    all.push_back(&part.collective);
  }
  if (!gone) host::run_collective(all, scratch_, has_garbage_);
  for (std::optional<Part>& part : meeting.parts) {
    part->input.release();
    part->output.release();
  }
  return gone;
}

void MeetingPoint::complete(Rendezvous& meeting, std::size_t rank) {
  meeting.parts[rank]->is_complete = true;
  while (!meetings_.empty() && std::ranges::all_of(meetings_.front()->parts, [](const auto& part) {
    return part && part->is_complete;
  })) {
    meetings_.pop_front();
    ++first_;
  }
}

void MeetingPoint::fail(const std::string& text, bool is_abort) {
  if (!failure_.empty()) return;
  failure_ = text;
  is_aborted_ = is_abort;
}

void MeetingPoint::raise_if_failed() const {
  if (failure_.empty()) return;
  if (is_aborted_) throw host::GroupAborted(failure_);
  throw RuntimeFault(failure_);
}

}  // namespace zeroproof::sim
