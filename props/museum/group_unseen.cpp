// Twenty further faults, of no catalogue: written into the engine by somebody who had not seen the
// generator and the judges, and hunted as they are (docs/MUSEUM.md). Nothing may be tuned to them.
#include <array>
#include <string>

#include "props/museum/entry.h"
#include "props/registry.h"
#include "props/run_properties.h"

namespace zeroproof::museum {
namespace {

// Nobody has said beforehand what has to catch them.
std::string_view any_property() {
  static const std::string numbers = [] {
    std::string joined;
    for (const auto& properties : {std::span(all_properties()), run_properties()})
      for (const Property& property : properties) joined.append(property.number).append(" ");
    return joined;
  }();
  return numbers;
}

Entry further(std::string_view id, Departure departure, std::string_view fault) {
  return {.id = id, .fault = fault, .properties = any_property(), .plant = planted(departure)};
}

}  // namespace

std::span<const Entry> group_unseen() {
  static const std::array kGroup = {
      further("U01", "U01"_bug, "stage 0 leaves the place of a parameter without a gradient as is"),
      further("U02", "U02"_bug,
              "without pre-division nothing divides the all-reduced bucket of stages 1 and 2"),
      further("U03", "U03"_bug, "the epilogue stops at the first bucket that is empty"),
      further("U04", "U04"_bug, "the norm is that of the first parameter group alone"),
      further("U05", "U05"_bug,
              "a load refreshes the master weights and not those to compute with"),
      further("U06", "U06"_bug,
              "a load of stage 3 reads a short last shard from rank times its own length"),
      further("U07", "U07"_bug,
              "all-reduced gradients of stage 3 are cut into slices without the padding between"),
      further("U08", "U08"_bug, "the epilogue waits for reductions before it starts the last ones"),
      further("U09", "U09"_bug, "the computation waits for a gather, and not for its unpacking"),
      further("U10", "U10"_bug, "a forward's end releases what was gathered for its backward"),
      further("U11", "U11"_bug, "gathering ahead goes on when its room is exactly full"),
      further("U12", "U12"_bug, "a failed backward of stages 1 and 2 keeps what it has reduced"),
      further("U13", "U13"_bug, "a forward that throws leaves its modules' uses of parameters"),
      further("U14", "U14"_bug, "a step that overflows returns before the loss scale is lowered"),
      further("U15", "U15"_bug, "a gradient that is clipped is not unscaled"),
      further("U16", "U16"_bug,
              "stage 3 offloads the last window's gradient of a parameter that had none"),
      further("U17", "U17"_bug,
              "stage 1 adds a local sum at the boundary that hooks added already"),
      further("U18", "U18"_bug, "a no_sync block that throws stays open"),
      further("U19", "U19"_bug,
              "a checkpoint in a backward inside forward counts as the user's backward"),
      further("U20", "U20"_bug,
              "every owner of a part of a parameter is sent the parameter's first elements"),
  };
  return kGroup;
}

}  // namespace zeroproof::museum
