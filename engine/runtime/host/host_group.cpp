#include "engine/runtime/host/host_group.h"

#include <utility>

#include "model/check.h"

namespace zeroproof::host {

HostGroup::HostGroup(GroupMembers members, std::shared_ptr<Rendezvous> rendezvous, StreamLog& log)
    : CollectiveGroup(std::move(members), log), rendezvous_(std::move(rendezvous)) {}

Work HostGroup::issue(Stream& stream, const Collective& collective) {
  check_and_note(stream, collective);
  noticing([&] { rendezvous_->meet(rank(), issued_, collective); });
  if (log_.observer) completions_.push_back(stream.record());
  return {issued_++};
}

void HostGroup::wait(Work work, Stream& stream) {
  noticing([&] { rendezvous_->throw_if_failed(); });
  if (work.sequence < 0) return;
  check_issued(work);
  if (log_.observer) stream.wait(completions_[static_cast<std::size_t>(work.sequence)]);
}

bool HostGroup::is_completed(Work work) {
  noticing([&] { rendezvous_->throw_if_failed(); });
  check_issued(work);
  return true;
}

void HostGroup::abort(const std::string& reason) {
  rendezvous_->abort(reason);
}

void HostGroup::check_issued(Work work) const {
  ZP_CHECK(work.sequence < issued_, "a work that the group did not issue");
}

template <class Act>
void HostGroup::noticing(Act act) {
  try {
    act();
  } catch (const RuntimeFault& fault) {
    notice(fault.what());
    throw;
  }
}

}  // namespace zeroproof::host
