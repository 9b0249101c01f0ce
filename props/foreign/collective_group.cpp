#include "props/foreign/collective_group.h"

#include <algorithm>
#include <map>

namespace zeroproof {
namespace {

struct GroupKey {
  std::string name;
  std::vector<std::vector<std::int32_t>> members;  // one list; all of the rank's for a mixed group

  auto operator<=>(const GroupKey&) const = default;
};

bool is_default_group(const CollectiveShape& shape) {
  return shape.group == "0" || shape.group_desc == "default_pg";
}

class GroupCollector {
 public:
  explicit GroupCollector(const std::vector<RankDump>& run) : run_(run) {}

  std::vector<CollectiveGroup> collect() {
    for (const RankDump& dump : run_)
      for (const auto& [name, group] : dump.groups) known_[name].insert(group.members);
    for (const RankDump& dump : run_) add(dump);
    std::vector<CollectiveGroup> groups;
    for (auto& [key, views] : views_) groups.push_back(group_of(key, views));
    return groups;
  }

 private:
  using Views = std::map<std::int32_t, GroupView>;

  void add(const RankDump& dump) {
    std::map<const CollectiveShape*, GroupView*> known;
    for (const DumpedCollective& one : dump.collectives) {
      if (one.is_point_to_point) continue;
      GroupView*& view = known[one.shape];
      if (view == nullptr) view = &views_[key_of(dump, *one.shape)][dump.rank];
      view->dump = &dump;
      view->issued.push_back(&one);
      if (!one.shape->group_desc.empty()) descs_[one.shape->group] = one.shape->group_desc;
    }
  }

  // What the rank itself says of the group, else what the only other group of that name with this
  // rank in it says.
  GroupKey key_of(const RankDump& dump, const CollectiveShape& shape) const {
    GroupKey key{.name = shape.group, .members = {}};
    const auto own = dump.groups.find(shape.group);
    const auto known = known_.find(shape.group);
    if (own != dump.groups.end()) {
      key.members = {*own->second.members};
    } else if (known != known_.end()) {
      for (const auto* members : known->second)
        if (std::binary_search(members->begin(), members->end(), dump.rank))
          key.members.push_back(*members);
      if (key.members.size() != 1) key.members.clear();
    }
    if (!shape.group.empty()) return key;
    for (const auto& [name, group] : dump.groups)
      if (group.members->size() > 1 &&
          std::binary_search(group.members->begin(), group.members->end(), dump.rank))
        key.members.push_back(*group.members);
    return key;
  }

  // Who must be in the group: its members, or where these are unknown the ranks that were seen in
  // it, or for the default group every rank.
  std::vector<std::int32_t> members_of(const GroupKey& key, const Views& views) const {
    if (!key.name.empty() && !key.members.empty()) return key.members.front();
    const GroupView& first = views.begin()->second;
    const bool is_everyone = !key.name.empty() && is_default_group(*first.issued.front()->shape);
    std::vector<std::int32_t> members;
    for (const RankDump& dump : run_)
      if (is_everyone || views.contains(dump.rank)) members.push_back(dump.rank);
    return members;
  }

  CollectiveGroup group_of(const GroupKey& key, Views& views) const {
    const auto desc = descs_.find(key.name);
    CollectiveGroup group{.name = key.name, .desc = desc == descs_.end() ? "" : desc->second};
    const std::vector<std::int32_t> members = members_of(key, views);
    if (!key.members.empty() && !key.name.empty()) group.size = members.size();
    for (const std::int32_t rank : members) {
      const RankDump* const dump = dump_of(rank);
      if (dump == nullptr) {
        group.without_file.push_back(rank);
        continue;
      }
      GroupView view = views[rank];
      view.dump = dump;
      std::stable_sort(view.issued.begin(), view.issued.end(),
                       [](const auto* a, const auto* b) { return a->number < b->number; });
      group.views.push_back(std::move(view));
    }
    return group;
  }

  const RankDump* dump_of(std::int32_t rank) const {
    const auto found = std::lower_bound(
        run_.begin(), run_.end(), rank,
        [](const RankDump& dump, std::int32_t wanted) { return dump.rank < wanted; });
    return found != run_.end() && found->rank == rank ? &*found : nullptr;
  }

  const std::vector<RankDump>& run_;
  std::map<GroupKey, Views> views_;
  std::map<std::string, std::string> descs_;
  std::map<std::string, std::set<const std::vector<std::int32_t>*>> known_;  // members, by name
};

}  // namespace

std::size_t GroupView::find(std::int64_t wanted) const {
  const auto found =
      std::lower_bound(issued.begin(), issued.end(), wanted - shift,
                       [](const auto* one, std::int64_t number) { return one->number < number; });
  return static_cast<std::size_t>(found - issued.begin());
}

const DumpedCollective* GroupView::at(std::int64_t wanted) const {
  const std::size_t found = find(wanted);
  return found < issued.size() && number(found) == wanted ? issued[found] : nullptr;
}

const DumpedCollective* GroupView::first_waiting() const {
  const auto found =
      std::find_if(issued.begin(), issued.end(), [](const auto* one) { return one->is_waiting(); });
  return found == issued.end() ? nullptr : *found;
}

std::vector<CollectiveGroup> collective_groups(const std::vector<RankDump>& run) {
  return GroupCollector(run).collect();
}

}  // namespace zeroproof
