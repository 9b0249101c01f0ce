#pragma once

#include "props/report/picture/picture.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

PictureCategory picture_category(const HookEvent& event, const NameTable& names);

}  // namespace zeroproof
