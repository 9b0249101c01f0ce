#pragma once

#include "props/program/statement.h"

namespace zeroproof::program {

// Whether a body only looks at values.
bool reads_alone(const Body& body);
// Whether a body only throws, or is empty.
bool raises_alone(const Body& body);

}  // namespace zeroproof::program
