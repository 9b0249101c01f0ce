#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "props/mutation/catalogue.h"
#include "props/train/subject.h"
#include "props/train/train_cell.h"

namespace zeroproof::mutation {

// One fault of our engine, or why a known bug is none (docs/explanation/mutation_testing.md).
struct Fault {
  std::string_view id;        // "A01"; "F18b" for the second of a pair of opposite faults
  std::string_view sentence;  // what the engine does wrong, in a few words
  // Numbers of the properties that catch it; the first is the one that the report names. One of
  // them has to be falsified; none named: any.
  std::string_view properties;
  train::Subject subject = {};
  bool is_woven = false;              // it changes the engine's code, which the subject enters
  std::string_view decorator;         // where it is said at a seam (decorators.h)
  std::string_view quirks = "none";   // zeroproof/engine/quirks.h
  std::string_view policy = "exact";  // zeroproof/engine/hooks/policies.h
  train::AutogradApi api = train::AutogradApi::full;
  std::string_view reason;  // not modelled: what our engine lacks for it
  // Why the smallest case that shows it is larger than the catalogue's smallest configuration.
  std::string_view larger;
  // What has to hold where this one fails; null: the unmutated engine. Static.
  const Fault* reference = nullptr;

  bool is_modelled() const { return reason.empty(); }
  // Q01 to Z80: written when the generator and the properties were there already, of no catalogue.
  bool is_further() const { return id[0] >= 'Q' && id[0] <= 'Z'; }
  bool is_hazard() const { return id.find('@') != std::string_view::npos; }
  bool is_of_catalogue() const { return !is_further() && !is_hazard(); }
  // Of the catalogue, or a row of no tier for further faults and for hazards.
  const CatalogueRow& row() const;
};

// All of the catalogue in the order of their ids, then the further faults, of which any property
// that is falsified counts; and for the hunt's own check, a fault that every hunt has to find.
// Static.
const std::vector<Fault>& catalogue_faults();
const std::vector<Fault>& further_faults();
const Fault& canary();

// What a hunt that names no fault is for: the catalogue's, then the further ones. Static.
std::vector<const Fault*> hunted_faults();
// These and the hazards.
std::vector<const Fault*> named_faults();

// Of these, or the canary; null: there is none.
const Fault* find_fault(std::string_view id);

// Hazards of docs/reference/hazards.md under the policies of upstream, "h16@deepspeed-0.19.6": the
// quirk under that policy, against the policy alone. Hunted by `mutation --hazards`. Static.
const std::vector<Fault>& hazards();

// The cell with the fault in it. `fault` null: the unmutated engine.
void mutate(const Fault* fault, train::TrainCell& cell);

}  // namespace zeroproof::mutation
