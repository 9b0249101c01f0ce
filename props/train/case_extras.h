#pragma once

#include <cstdint>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every second case a few things more.
Additions extra_additions();
// In every third one visits: what the user looks at, keeps and uses again.
Additions visit_additions();
// In every fourth one what comes when an order of modules is known, and leaves it.
Additions departure_additions();

}  // namespace zeroproof::train
