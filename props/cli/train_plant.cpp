#include "props/cli/train_plant.h"

#include <fmt/format.h>

#include "props/museum/entry.h"

namespace zeroproof {

Result<void> plant_in(train::TrainCell& cell, const std::string& id) {
  if (id.empty()) return {};
  const museum::Entry* const entry = museum::find_entry(id);
  if (entry == nullptr || !entry->is_modelled())
    return fail(ErrorCode::usage, fmt::format("train: --plant {}: no fault that the museum plants; "
                                              "'zeroproof museum' lists them",
                                              id));
  museum::plant(entry, cell);
  return {};
}

}  // namespace zeroproof
