#pragma once

#include <vector>

#include "props/report/picture/picture.h"

namespace zeroproof {

// One collective of one run: who issued it, and who saw it complete.
struct PictureCollective {
  std::vector<std::uint32_t> issues;     // events, at most one a process
  std::vector<std::uint32_t> completes;  // the same
};

// Gives each event its tick: a place that all processes share. Within a process ticks grow by one
// an event; a completion stands after every issue of its collective. Where ranks diverged so far
// that this cannot be, what waits goes on regardless.
void order_picture(Picture& picture, const std::vector<PictureCollective>& collectives);

}  // namespace zeroproof
