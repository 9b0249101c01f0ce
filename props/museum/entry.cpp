#include "props/museum/entry.h"

#include <algorithm>

#include "engine/hooks/policies.h"
#include "model/check.h"

namespace zeroproof::museum {
namespace {

// "h16@pr7886" and "h16@deepspeed-0.19.2" mean the hazard under the policy that behaves so.
std::string canonical_id(std::string_view id) {
  const std::size_t at = id.find('@');
  if (at == std::string_view::npos) return std::string(id);
  return std::string(id.substr(0, at + 1)) + policy_id(id.substr(at + 1));
}

}  // namespace

const CatalogueRow& Entry::row() const {
  static constexpr CatalogueRow kOfNoCatalogue{.id = "U", .slug = "further", .tier = 0};
  static constexpr CatalogueRow kHazard{.id = "hazard", .slug = "zero_semantics 9"};
  if (is_further()) return kOfNoCatalogue;
  if (is_hazard()) return kHazard;
  const CatalogueRow* const found = find_row(id.substr(0, 3));
  ZP_CHECK(found, "an entry is of the catalogue: " + std::string(id));
  return *found;
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> joined;
    for (const auto group :
         {group_a(), group_b(), group_c(), group_d(), group_e(), group_f(), group_g(), group_h()})
      joined.insert(joined.end(), group.begin(), group.end());
    for (const CatalogueRow& row : bug_catalogue())
      if (std::ranges::none_of(joined, [&](const Entry& it) { return it.id.starts_with(row.id); }))
        joined.push_back({.id = row.id, .reason = "nobody has modelled it yet"});
    std::ranges::stable_sort(joined, {}, &Entry::id);
    return joined;
  }();
  return all;
}

// Gradients arrive doubled: every program with a backward shows it.
const Entry& canary() {
  static const Entry entry{.id = "A00",
                           .fault = "every bucket is divided once more",
                           .properties = "P26 R7",
                           .plant = planted("A00"_bug)};
  return entry;
}

std::vector<const Entry*> hunted_entries() {
  std::vector<const Entry*> hunted;
  for (const Entry& entry : entries()) hunted.push_back(&entry);
  for (const Entry& entry : group_unseen()) hunted.push_back(&entry);
  return hunted;
}

std::vector<const Entry*> named_entries() {
  std::vector<const Entry*> named = hunted_entries();
  for (const Entry& entry : hazards()) named.push_back(&entry);
  return named;
}

const Entry* find_entry(std::string_view id) {
  const std::string canonical = canonical_id(id);
  if (canonical == canary().id) return &canary();
  for (const Entry* entry : named_entries())
    if (entry->id == canonical) return entry;
  return nullptr;
}

void plant(const Entry* entry, train::TrainCell& cell) {
  if (!entry) return;
  const auto quirks = Quirks::parse(entry->quirks);
  ZP_CHECK(quirks.has_value(), "an entry names quirks that exist: " + std::string(entry->id));
  cell.quirks = *quirks;
  cell.policy = entry->policy;
  if (entry->api != train::AutogradApi::full) cell.api = entry->api;
  cell.plant = &entry->plant;
}

}  // namespace zeroproof::museum
