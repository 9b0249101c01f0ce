#pragma once

#include "props/program/statement.h"

namespace zeroproof::program {

// Whether a body looks at values and does nothing else.
bool reads_alone(const Body& body);
// Whether a body throws and does nothing else, or is empty.
bool raises_alone(const Body& body);

}  // namespace zeroproof::program
