#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "props/museum/catalogue.h"
#include "props/train/plant.h"
#include "props/train/train_cell.h"

namespace zeroproof::museum {

// One bug of the catalogue as a fault of our engine, or why it is none (docs/MUSEUM.md).
struct Entry {
  std::string_view id;          // "A01"; "F18b" for the second of a pair of opposite faults
  std::string_view fault = "";  // what the engine does wrong, in a few words
  // Numbers of the properties that catch it; the first is the one that the report names. One of
  // them has to be falsified; none named: any.
  std::string_view properties = "";
  train::Plant plant = {};
  std::string_view quirks = "none";   // engine/quirks.h
  std::string_view policy = "exact";  // engine/hooks/policies.h
  train::AutogradApi api = train::AutogradApi::full;
  std::string_view reason = "";  // not modelled: what our engine lacks for it
  // Why the smallest case that shows it is larger than the catalogue's smallest configuration.
  std::string_view larger = "";
  // What has to hold where this one fails; null: the healthy engine. Static.
  const Entry* reference = nullptr;

  bool is_modelled() const { return reason.empty(); }
  // Q01 to Z80: written when the generator and the properties were there already, of no catalogue.
  bool is_further() const { return id[0] >= 'Q' && id[0] <= 'Z'; }
  bool is_hazard() const { return id.find('@') != std::string_view::npos; }
  bool is_of_catalogue() const { return !is_further() && !is_hazard(); }
  // Of the catalogue, or a row of no tier for further faults and for hazards.
  const CatalogueRow& row() const;
};

// A fault in the engine's own code: what "A01"_bug names.
constexpr train::Plant planted(Departure departure) {
  return {.departure = departure};
}

// One file a group of the catalogue: group_a.cpp and so on.
std::span<const Entry> group_a();
std::span<const Entry> group_b();
std::span<const Entry> group_c();
std::span<const Entry> group_d();
std::span<const Entry> group_e();
std::span<const Entry> group_f();
std::span<const Entry> group_g();
std::span<const Entry> group_h();
// The further faults; any property that is falsified counts.
std::span<const Entry> group_unseen();

// All of the catalogue in the order of their ids; and for the hunt's own check, a fault that
// anybody has to find. Static.
const std::vector<Entry>& entries();
const Entry& canary();

// What a hunt that names nothing is for: the catalogue's entries, then the further faults. Static.
std::vector<const Entry*> hunted_entries();
// These and the hazards.
std::vector<const Entry*> named_entries();

// Of these, or the canary; null: there is none.
const Entry* find_entry(std::string_view id);

// Hazards of zero_semantics 9 under the policies of upstream, "h16@deepspeed-0.19.6": the quirk
// under that policy, against the policy alone. Hunted by `museum --hazards`. Static.
const std::vector<Entry>& hazards();

// The cell with the entry's fault in it. `entry` null: the healthy engine.
void plant(const Entry* entry, train::TrainCell& cell);

}  // namespace zeroproof::museum
