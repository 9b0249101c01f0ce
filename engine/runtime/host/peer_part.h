#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/runtime/host/collective.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof::host {

// What a rank brings to a collective, as bytes for the other processes of its group.
std::string packed_part(const Collective& collective);

// Another rank's part, on memory of its own.
struct PeerPart {
  Tensor input;
  Tensor output;
  Collective collective;
};

// Of any bytes. None: they are no part of a collective of so many ranks, as an operation that does
// not exist or an output that the ranks' inputs do not fill.
std::optional<PeerPart> unpacked_part(std::string_view bytes, int ranks);

}  // namespace zeroproof::host
