#pragma once

#include <memory>

#include "props/cli/verb.h"

namespace zeroproof {

// `zeroproof-mutation programs`.
std::unique_ptr<Verb> make_programs();

}  // namespace zeroproof
