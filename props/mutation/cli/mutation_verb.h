#pragma once

#include <memory>

#include "props/cli/verb.h"

namespace zeroproof {

// `zeroproof-mutation mutation`.
std::unique_ptr<Verb> make_mutation();

}  // namespace zeroproof
