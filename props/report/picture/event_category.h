#pragma once

#include "model/event.h"
#include "model/names.h"
#include "props/report/picture/picture.h"

namespace zeroproof {

PictureCategory picture_category(const HookEvent& event, const NameTable& names);

}  // namespace zeroproof
