#pragma once

#include <string_view>

#include "props/train/subject.h"

namespace zeroproof::mutation {

// Puts the decorator of that name into the subject: a fault that is said at a seam of the engine,
// and not in its code. False: no decorator has that name.
bool add_decorator(std::string_view name, train::Subject& subject);

}  // namespace zeroproof::mutation
