#pragma once

#include <memory>

#include "props/cli/verb.h"

namespace zeroproof {

std::unique_ptr<Verb> make_fault_list();

}  // namespace zeroproof
